"""What kwok leaves out of the kubelet's side of the API: device plugins' resources and the ends of Jobs.

A process: `python -m simulation.control_plane.node_agent` looks at the API server several times a second and
sets right what differs, so that a missed event cannot matter.

- Nodes offer devices as `devices` says.
- Pods of Jobs end as `jobs` was told. No container runs: nothing is proved about what a payload does. A pod
  that fails ends as with `restartPolicy: Never`; containers are not restarted in place.
"""

from __future__ import annotations

import datetime
import http.client
import sys
import time

from simulation.control_plane import devices
from simulation.control_plane.api import Api, ApiError, Json
from simulation.control_plane.jobs import Outcome, outcome_of, told
from simulation.control_plane.state import certificates, load

PERIOD_SECONDS = 0.25
MESSAGE_BYTES = 4096


def main() -> int:
    """Runs until it is killed."""
    state = load()
    if state is None:
        print("No control plane is recorded; there is nothing to look after.", file=sys.stderr)
        return 1
    api = Api(state.ports["kube-apiserver"], certificates(), "node-agent")
    while True:
        try:
            pods = api.items("/api/v1/pods")
            devices.provide(api, pods)
            end_jobs(api, pods)
        except (ApiError, OSError, http.client.HTTPException) as error:
            # An object that changed or went meanwhile, or a server that restarts: the next look sees it anew.
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        time.sleep(PERIOD_SECONDS)


def end_jobs(api: Api, pods: list[Json]) -> None:
    """Ends the running pods of Jobs as told."""
    outcomes = told()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences", [])
        job = next((owner["name"] for owner in owners if owner["kind"] == "Job"), None)
        if job is None or pod["status"].get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
            continue
        outcome = outcome_of(job, outcomes)
        if not outcome.held and _age_seconds(pod) >= outcome.seconds:
            api.patch(f"{_path(pod)}/status", {"status": _ended(pod, _after_reporting(api, pod, outcome))})


def _age_seconds(pod: Json) -> float:
    started = datetime.datetime.fromisoformat(pod["status"]["startTime"])
    return (datetime.datetime.now(datetime.UTC) - started).total_seconds()


def _after_reporting(api: Api, pod: Json, outcome: Outcome) -> Outcome:
    """Writes the ConfigMaps as the pod's service account; a refusal becomes the outcome."""
    namespace = pod["metadata"]["namespace"]
    account = pod["spec"].get("serviceAccountName", "default")
    for name, data in outcome.config_map.items():
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        try:
            api.patch(path, {"data": data}, impersonate=f"system:serviceaccount:{namespace}:{account}")
        except ApiError as error:
            return Outcome(exit_code=1, message=str(error))
    return outcome


def _ended(pod: Json, outcome: Outcome) -> Json:
    """The status that the kubelet reports for a pod whose containers have all exited."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    succeeded = outcome.exit_code == 0
    terminated = {
        "exitCode": outcome.exit_code,
        "reason": "Completed" if succeeded else "Error",
        "startedAt": pod["status"].get("startTime", now),
        "finishedAt": now,
    }
    if outcome.message:
        terminated["message"] = outcome.message.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    containers = [
        status | {"ready": False, "started": False, "state": {"terminated": terminated}}
        for status in pod["status"].get("containerStatuses", [])
    ]
    conditions = [
        condition | ({"status": "False", "reason": "PodCompleted"} if condition["type"] in NOT_AFTER_END else {})
        for condition in pod["status"].get("conditions", [])
    ]
    phase = "Succeeded" if succeeded else "Failed"
    return {"phase": phase, "containerStatuses": containers, "conditions": conditions}


NOT_AFTER_END = ("Ready", "ContainersReady")


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


if __name__ == "__main__":
    sys.exit(main())
