"""Rules of the gang, its Service and its operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.components.graph import Graph, record
from tests.components.manifests import ROLES, container, gang, options, template, variables


def operator_at(version: str, *, install: bool = False) -> Graph:
    def choose(deployment: dict[str, Any]) -> None:
        deployment["charts"] = {"leaderWorkerSet": {"install": install, "version": version}}

    return record(choose)


def test_one_group_of_two_starts_together(graph: Graph) -> None:
    spec = gang(graph)["spec"]
    assert (spec["replicas"], spec["startupPolicy"]) == (1, "LeaderCreated")
    assert spec["leaderWorkerTemplate"]["size"] == 2


@pytest.mark.parametrize(
    ("version", "policy", "annotated"),
    [
        ("0.10.0", "RecreateGroupAfterStart", False),
        ("0.9.1", "RecreateGroupAfterStart", False),
        ("0.8.0", "RecreateGroupOnPodRestart", True),
    ],
)
def test_restart_follows_the_operators_version(version: str, policy: str, annotated: bool) -> None:
    made = gang(operator_at(version))
    assert made["spec"]["leaderWorkerTemplate"]["restartPolicy"] == policy
    name = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"
    assert (made["metadata"]["annotations"].get(name) == "true") is annotated


def test_the_default_operator_is_installed_and_ready_before_the_gang(graph: Graph) -> None:
    release = graph.one("gang-operator-lws")
    assert release.inputs["version"] == "0.10.0"
    assert release.inputs["chart"] == "oci://registry.k8s.io/lws/charts/lws"
    assert release.inputs["createNamespace"] is True
    assert graph.one("system-nodes-group").urn in release.dependencies
    assert release.urn in graph.one("serving-gang", "LeaderWorkerSet").dependencies


def test_a_reused_operator_is_not_installed() -> None:
    assert "gang-operator-lws" not in [resource.name for resource in operator_at("0.8.0").resources]


def test_a_changed_gang_is_a_new_gang(graph: Graph) -> None:
    made = graph.one("serving-gang", "LeaderWorkerSet")
    assert made.replace_on_changes == ("spec",)
    assert made.delete_before_replace
    assert graph.one("serving-gang", "NetworkPolicy").urn in made.dependencies


def test_pulumi_waits_for_the_gang_and_deletes_it_in_the_foreground(graph: Graph) -> None:
    annotations = gang(graph)["metadata"]["annotations"]
    assert annotations["pulumi.com/waitFor"] == "condition=Available"
    assert annotations["pulumi.com/deletionPropagationPolicy"] == "foreground"


@pytest.mark.parametrize("role", ROLES)
def test_every_pod_takes_all_gpus_and_all_fabric_devices(graph: Graph, role: str) -> None:
    resources = container(graph, role)["resources"]
    for name, count in (("nvidia.com/gpu", "8"), ("vpc.amazonaws.com/efa", "32")):
        assert resources["requests"][name] == resources["limits"][name] == count


@pytest.mark.parametrize("role", ROLES)
def test_requests_leave_the_node_what_it_needs(graph: Graph, role: str) -> None:
    requests = container(graph, role)["resources"]["requests"]
    assert int(requests["cpu"]) <= 191
    assert int(requests["memory"].removesuffix("Gi")) < 1957 - 42


@pytest.mark.parametrize("role", ROLES)
def test_pods_have_no_more_privilege_than_rdma_needs(graph: Graph, role: str) -> None:
    spec = template(graph, role)
    security = container(graph, role)["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert security["allowPrivilegeEscalation"] is False
    assert "privileged" not in security
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert not [volume for volume in spec["volumes"] if "hostPath" in volume]


@pytest.mark.parametrize("role", ROLES)
def test_added_capabilities_reach_the_process_because_it_is_root(graph: Graph, role: str) -> None:
    for context in (template(graph, role)["securityContext"], container(graph, role)["securityContext"]):
        assert context.get("runAsUser", 0) == 0
        assert not context.get("runAsNonRoot")


def test_leader_and_worker_differ_in_the_commands_tail_alone(graph: Graph) -> None:
    leader, worker = (container(graph, role)["args"] for role in ROLES)
    assert worker[-1] == "--headless"
    assert leader[: len(worker) - 1] == worker[:-1]
    assert leader[len(worker) - 1 :] == ["--host", "0.0.0.0", "--port", "8000"]


@pytest.mark.parametrize("role", ROLES)
def test_the_rank_comes_from_the_operators_variables(graph: Graph, role: str) -> None:
    given = options(graph, role)
    assert given["--nnodes"] == "$(LWS_GROUP_SIZE)"
    assert given["--node-rank"] == "$(LWS_WORKER_INDEX)"
    assert given["--master-addr"] == "$(LWS_LEADER_ADDRESS)"
    assert given["--distributed-executor-backend"] == "mp"


@pytest.mark.parametrize("role", ROLES)
def test_serving_is_offline_and_fails_without_the_fabric(graph: Graph, role: str) -> None:
    given = variables(graph, role)
    assert given["HF_HUB_OFFLINE"]["value"] == "1"
    assert given["NCCL_NET"]["value"] == "OFI"
    assert given["NCCL_SOCKET_IFNAME"]["value"] == given["GLOO_SOCKET_IFNAME"]["value"] == "eth0"
    assert given["VLLM_HOST_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert not {"VLLM_PORT", "NCCL_IB_GID_INDEX", "HF_TOKEN"} & set(given)


@pytest.mark.parametrize("role", ROLES)
def test_huge_pages_are_neither_asked_for_nor_used(graph: Graph, role: str) -> None:
    assert variables(graph, role)["FI_EFA_USE_HUGE_PAGE"]["value"] == "0"
    assert not [name for name in container(graph, role)["resources"]["requests"] if "hugepages" in name]


def test_the_api_key_comes_from_a_secret_to_the_leader_alone(graph: Graph) -> None:
    reference = variables(graph, "leaderTemplate")["VLLM_API_KEY"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "kimi-k25-api-key", "key": "api-key"}
    assert "VLLM_API_KEY" not in variables(graph, "workerTemplate")


def test_anonymous_use_is_possible_when_it_is_asked_for() -> None:
    def open_up(deployment: dict[str, Any]) -> None:
        deployment["serving"]["allowAnonymous"] = True

    graph = record(open_up, secrets={})
    assert not graph.all("Secret")
    assert "VLLM_API_KEY" not in variables(graph, "leaderTemplate")


@pytest.mark.parametrize("role", ROLES)
def test_pods_go_to_gpu_nodes_by_instance_type(graph: Graph, role: str) -> None:
    spec = template(graph, role)
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize("role", ROLES)
def test_weights_are_read_only_and_complete_before_vllm_starts(graph: Graph, role: str) -> None:
    spec = template(graph, role)
    volume = next(volume for volume in spec["volumes"] if volume["name"] == "weights")
    assert volume["persistentVolumeClaim"] == {"claimName": "weights-claim-0123abc"}
    for made in (*spec["initContainers"], *spec["containers"]):
        mount = next(mount for mount in made["volumeMounts"] if mount["name"] == "weights")
        assert mount["readOnly"] is True
    check = spec["initContainers"][0]
    told = {entry["name"]: entry["value"] for entry in check["env"]}
    assert check["command"] == ["python3", "-m", "payloads.check_cache"]
    assert told["STAGE_MODEL_DIRECTORY"] == container(graph, role)["args"][0]
    assert told["STAGE_REVISION"] == "4d01dfe0332d63057c186e0b262165819efb6611"
    assert told["STAGE_REPOSITORY"] == "moonshotai/Kimi-K2.5"


def test_the_check_of_the_weights_has_every_module_it_imports(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "payloads"
    folder.mkdir()
    for name, text in graph.one("serving-payload").inputs["data"].items():
        (folder / name).write_text(text)
    environment = {"PYTHONPATH": str(tmp_path), "STAGE_TERMINATION_LOG": str(tmp_path / "log")}
    done = subprocess.run(
        [sys.executable, "-m", "payloads.check_cache"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 10, done.stderr
    assert "STAGE_MODEL_DIRECTORY" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("role", ROLES)
def test_what_is_compiled_is_kept_apart_for_each_node(graph: Graph, role: str) -> None:
    mount = next(mount for mount in container(graph, role)["volumeMounts"] if mount["name"] == "compiled")
    assert mount["subPathExpr"] == "compiled/$(LWS_WORKER_INDEX)"
    assert not mount.get("readOnly")


def test_the_client_service_has_a_name_of_its_own_and_selects_the_leader(graph: Graph) -> None:
    service = graph.one("serving-api").inputs
    name = service["metadata"]["name"]
    assert name != gang(graph)["metadata"]["name"]
    assert not name.startswith("vllm")
    assert service["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"
    assert service["spec"]["type"] == "ClusterIP"


def test_only_the_gang_reaches_the_gangs_own_ports(graph: Graph) -> None:
    policy = graph.one("serving-gang", "NetworkPolicy").inputs["spec"]
    selector = {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "kimi-k25"}}
    assert policy["podSelector"] == selector
    assert policy["ingress"] == [
        {"from": [{"podSelector": selector}]},
        {"ports": [{"port": 8000, "protocol": "TCP"}]},
    ]


def test_serving_starts_after_plugins_and_weights(graph: Graph) -> None:
    before = graph.after(graph.one("serving-gang", "LeaderWorkerSet"))
    for name in ("device-plugins-nvidia-device-plugin", "gpu-nodes-group", "staging-job"):
        assert graph.one(name).urn in before


def test_the_namespace_admits_ipc_lock_and_warns_beyond_restricted(graph: Graph) -> None:
    labels = graph.one("namespace-namespace").inputs["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"


def test_one_node_of_h200_needs_no_multi_node_flags() -> None:
    def single(deployment: dict[str, Any]) -> None:
        deployment["gpuNodes"] = {"instanceType": "p5en.48xlarge", "count": 1}

    graph = record(single)
    assert gang(graph)["spec"]["leaderWorkerTemplate"]["size"] == 1
    assert "--nnodes" not in container(graph, "leaderTemplate")["args"]
