"""The LeaderWorkerSet operator: its resource definition, its webhooks by URL, its configuration.

The webhooks are not optional: without them pods get no `LWS_LEADER_ADDRESS` and the controller fails. Unlike
on a real cluster the controller is no Deployment and its certificates are made here, so this proves nothing
about installing it.
"""

from __future__ import annotations

import json

from simulation import paths, tools
from simulation.control_plane import certificates as authority
from simulation.control_plane.api import Api, Json
from simulation.control_plane.state import State, certificates

GROUP = "leaderworkerset.x-k8s.io"
DEFINITION = f"leaderworkersets.{GROUP}"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1"


def flags(state: State) -> list[str]:
    """The flags of lws-manager; writes the configuration file that they name."""
    file = paths.control_plane() / "lws.json"
    file.write_text(json.dumps(_configuration(state), indent=2))
    return [f"--config={file}", "--zap-log-level=info"]


def define(api: Api) -> None:
    """Creates the LeaderWorkerSet resource definition: 1.3 MB, too large for client-side apply."""
    file = tools.resource(f"lws/config/crd/bases/{GROUP}_leaderworkersets.yaml")
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION}"
    api.apply(path, file.read_bytes())


def is_defined(api: Api) -> bool:
    """Whether the API server serves LeaderWorkerSets."""
    return any(group["name"] == GROUP for group in api.get("/apis")["groups"])


def register_webhooks(api: Api, state: State) -> None:
    """Has the API server call the running lws-manager for every LeaderWorkerSet and each of its pods."""
    for verb, kind in (("mutate", "Mutating"), ("validate", "Validating")):
        name = f"lws-{kind.lower()}-webhook-configuration"
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [_sets_webhook(verb, state), _pods_webhook(verb, state)],
        }
        api.apply(f"{WEBHOOKS}/{kind.lower()}webhookconfigurations/{name}", configuration)


def _configuration(state: State) -> Json:
    return {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {
            "host": "127.0.0.1",
            "port": state.ports["lws-manager"],
            "certDir": str(certificates() / "webhook"),
        },
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{state.ports['lws-health']}"},
    }


def _sets_webhook(verb: str, state: State) -> Json:
    path = f"/{verb}-{GROUP.replace('.', '-')}-v1-leaderworkerset"
    rule = {"apiGroups": [GROUP], "resources": ["leaderworkersets"], "operations": ["CREATE", "UPDATE"]}
    return _webhook(f"{verb[0]}leaderworkerset.kb.io", path, rule, state)


def _pods_webhook(verb: str, state: State) -> Json:
    operations = ["CREATE"] if verb == "mutate" else ["CREATE", "UPDATE"]
    rule = {"apiGroups": [""], "resources": ["pods"], "operations": operations}
    group_pods = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
    return _webhook(f"{verb[0]}pod.kb.io", f"/{verb}--v1-pod", rule, state) | {"objectSelector": group_pods}


def _webhook(name: str, path: str, rule: Json, state: State) -> Json:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {
            "url": f"https://127.0.0.1:{state.ports['lws-manager']}{path}",
            "caBundle": authority.authority(certificates()),
        },
        "rules": [rule | {"apiVersions": ["v1"]}],
    }
