"""Schemas that manifests are held against: Kubernetes's own, and the LeaderWorkerSet's from its CRD.

They prove names and types. What they cannot see (quantities, requests against limits, mounts without volume, labels)
is checked by `test_manifests.py` itself, and by the API server of the local control plane.
"""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES_VERSION = "1.35"
LWS_MODULE = "sigs.k8s.io/lws@v0.8.0"
"""The newest operator whose source the Go module proxy serves."""

CRD_PATH = "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"
ADDED_IN_0_9 = "RecreateGroupAfterStart"


def validate(manifest: dict[str, Any]) -> None:
    """Raises where a manifest has an unknown field, a wrong type, or no schema at all."""
    if manifest["kind"] == "LeaderWorkerSet":
        jsonschema.validate(manifest, leader_worker_set())
    else:
        kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)


@functools.cache
def leader_worker_set() -> dict[str, Any]:
    """The CRD's schema, closed to unknown fields, with the one restart policy that 0.9 added."""
    answer = subprocess.run(["go", "mod", "download", "-json", LWS_MODULE], capture_output=True, text=True, check=True)
    crd = yaml.load((Path(json.loads(answer.stdout)["Dir"]) / CRD_PATH).read_text(), Loader=yaml.CSafeLoader)
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    _close(schema)
    schema["properties"]["metadata"] = {"type": "object"}
    template = schema["properties"]["spec"]["properties"]["leaderWorkerTemplate"]["properties"]
    template["restartPolicy"]["enum"].append(ADDED_IN_0_9)
    return schema


def _close(schema: Any) -> None:
    """The API server drops unknown fields without a word; here they are errors."""
    if isinstance(schema, list):
        for entry in schema:
            _close(entry)
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        if schema.get("x-kubernetes-int-or-string"):
            schema["type"] = ["integer", "string"]
            schema.pop("anyOf", None)
        for entry in schema.values():
            _close(entry)
