"""How a payload says what it does and how it ended: its log, one ConfigMap, the container's termination message.

Nothing here can fail the payload: whatever goes wrong with a report is logged once and forgotten.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from pathlib import Path

API_TIMEOUT_SECONDS = 5.0
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_MESSAGE_BYTES = 4096  # the kubelet cuts there
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def log(line: str) -> None:
    """Write one line to the pod's log at once."""
    print(line, flush=True)


def write_termination_message(verdict: str, path: str) -> None:
    """Leave the verdict where `kubectl describe` and the Kubernetes provider show it; `path` empty: the default."""
    try:
        Path(path or TERMINATION_LOG).write_bytes(verdict.encode()[:TERMINATION_MESSAGE_BYTES])
    except OSError as error:
        log(f"no termination message: {error}")


class ConfigMapBoard:
    """One existing ConfigMap that the pod's service account may patch; without a name nothing is posted.

    `account` is the folder with the files `token` and `ca.crt`, empty for where Kubernetes mounts them.
    """

    def __init__(self, *, namespace: str, name: str, account: str) -> None:
        """Nothing is opened before the first post."""
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        self._name = name
        self._account = Path(account or SERVICE_ACCOUNT)
        self._complained = False

    def post(self, **data: str) -> None:
        """Merge `data` and the time (`updated`, UTC) into the ConfigMap."""
        if not self._name:
            return
        data["updated"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self._patch(json.dumps({"data": data}))
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            if not self._complained:
                log(f"progress is not reported to ConfigMap {self._name}: {error!r}")
            self._complained = True

    def _patch(self, body: str) -> None:
        connection = http.client.HTTPSConnection(
            os.environ["KUBERNETES_SERVICE_HOST"],
            int(os.environ["KUBERNETES_SERVICE_PORT"]),
            timeout=API_TIMEOUT_SECONDS,
            context=ssl.create_default_context(cafile=str(self._account / "ca.crt")),
        )
        headers = {
            # Read each time: the kubelet renews it.
            "Authorization": f"Bearer {(self._account / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        }
        try:
            connection.request("PATCH", self._path, body=body, headers=headers)
            response = connection.getresponse()
            if response.status >= 300:
                raise OSError(f"HTTP {response.status} {response.reason}")
        finally:
            connection.close()
