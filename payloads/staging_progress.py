"""Where staging says how far it is: log lines, one ConfigMap, and the container's termination message.

Nothing here can fail staging: whatever goes wrong with a report is logged once and forgotten.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from pathlib import Path

from payloads.staging_settings import Settings

API_TIMEOUT_SECONDS = 5.0
TERMINATION_MESSAGE_BYTES = 4096  # the kubelet cuts there
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def log(line: str) -> None:
    """Write one line to the pod's log at once."""
    print(line, flush=True)


def without_token(text: str) -> str:
    """Hide the Hub token, which an error message may repeat."""
    token = os.environ.get("HF_TOKEN")
    return text.replace(token, "***") if token else text


def write_termination_message(verdict: str) -> None:
    """Leave the verdict where `kubectl describe` and the Kubernetes provider show it."""
    path = Path(os.environ.get("STAGE_TERMINATION_LOG") or "/dev/termination-log")
    try:
        path.write_bytes(verdict.encode()[:TERMINATION_MESSAGE_BYTES])
    except OSError as error:
        log(f"no termination message: {error}")


class ProgressBoard:
    """Reports bytes done, rate and time left, at most every `report_seconds`."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is reported until `begin`."""
        self._settings = settings
        self._complained = False
        self._whole = self._before = 0
        self.begin("starting", total=0, done=0)

    def is_part(self, *, whole: int, before: int) -> None:
        """The phases that follow are about a part of `whole` bytes, of which `before` went before that part."""
        self._whole, self._before = whole, before

    def begin(self, phase: str, *, total: int, done: int) -> None:
        """Start a phase of `total` bytes, of which `done` are there already."""
        self._phase, self._total = phase, self._whole or total
        self._reported_at, self._reported_bytes = time.monotonic(), self._before + done

    def update(self, done: int) -> None:
        """Report when the last report is old enough."""
        now = time.monotonic()
        done += self._before
        elapsed = now - self._reported_at
        if elapsed < self._settings.report_seconds:
            return
        rate = max(done - self._reported_bytes, 0) / elapsed
        self._reported_at, self._reported_bytes = now, done
        percent = min(100.0 * done / self._total, 100.0) if self._total else 100.0
        eta = f"{max(self._total - done, 0) / rate:.0f}" if rate else "unknown"
        line = f"{self._phase}: {percent:.1f} %, {rate / 1e9:.2f} GB/s, {eta} s left"
        log(line)
        self.post(
            phase=self._phase,
            percent=f"{percent:.1f}",
            gigabytesPerSecond=f"{rate / 1e9:.2f}",
            secondsLeft=eta,
            message=line,
        )

    def post(self, **data: str) -> None:
        """Merge `data` into the ConfigMap, when one is configured."""
        if not self._settings.progress_configmap:
            return
        data["updated"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            self._patch(json.dumps({"data": data}))
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            if not self._complained:
                log(f"progress is not reported to ConfigMap {self._settings.progress_configmap}: {error!r}")
            self._complained = True

    def _patch(self, body: str) -> None:
        account = Path(os.environ.get("STAGE_SERVICE_ACCOUNT") or SERVICE_ACCOUNT)
        connection = http.client.HTTPSConnection(
            os.environ["KUBERNETES_SERVICE_HOST"],
            int(os.environ["KUBERNETES_SERVICE_PORT"]),
            timeout=API_TIMEOUT_SECONDS,
            context=ssl.create_default_context(cafile=str(account / "ca.crt")),
        )
        path = f"/api/v1/namespaces/{self._settings.progress_namespace}/configmaps/{self._settings.progress_configmap}"
        headers = {
            # Read each time: the kubelet renews it.
            "Authorization": f"Bearer {(account / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        }
        try:
            connection.request("PATCH", path, body=body, headers=headers)
            response = connection.getresponse()
            if response.status >= 300:
                raise OSError(f"HTTP {response.status} {response.reason}")
        finally:
            connection.close()
