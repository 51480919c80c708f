"""The stack in a cluster that is there already: nothing of AWS, the user's own labels, InfiniBand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.components.graph import Graph, record
from tests.components.manifests import container, template
from tests.components.schemas import validate

NODE = {"gpu": "h100-80gb", "gpus": 8, "vcpus": 192, "memoryGib": 2000, "nvmeGb": 28_000}
REVISION = "4d01dfe0332d63057c186e0b262165819efb6611"


def existing(weights: dict[str, Any] | None = None, **fabric: Any) -> Graph:
    def change(deployment: dict[str, Any]) -> None:
        deployment["platform"] = {
            "kind": "existing",
            "context": "lab",
            "gpuNodeLabels": {"pool": "h100"},
            "gpuNodeTolerations": [{"key": "dedicated", "operator": "Equal", "value": "llm"}],
            "cpuNodeLabels": {"pool": "cpu"},
        }
        deployment["gpuNodes"] = {"instanceType": NODE, "count": 2}
        deployment["fabric"] = {"kind": "infiniband", **fabric}
        deployment["weights"] = {"kind": "nvme", "revision": REVISION} if weights is None else weights

    return record(change, {"apiKey": "a-test-key", "huggingFaceToken": "hf_planted"})


@pytest.fixture(scope="module")
def lab() -> Graph:
    return existing()


def test_nothing_of_aws_is_in_the_graph(lab: Graph) -> None:
    assert not [resource.name for resource in lab.resources if "aws" in resource.type]
    assert "account" not in lab.outputs


def test_everything_goes_through_the_given_context(lab: Graph) -> None:
    provider = lab.one("cluster-kubernetes")
    assert provider.inputs["context"] == "lab"
    for resource in lab.resources:
        if resource.type.startswith("kubernetes:"):
            assert resource.provider.rpartition("::")[0] == provider.urn, resource.name


def test_pods_go_where_the_stack_file_says(lab: Graph) -> None:
    for role in ("leaderTemplate", "workerTemplate"):
        assert template(lab, role)["nodeSelector"] == {"pool": "h100"}
        assert template(lab, role)["tolerations"] == [
            {"key": "dedicated", "operator": "Equal", "value": "llm", "effect": "NoSchedule"}
        ]


def test_the_node_check_knows_what_the_pods_tolerate(lab: Graph) -> None:
    pod = lab.one("fabric-gate-check", "Job").inputs["spec"]["template"]["spec"]
    told = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    assert json.loads(told["NODES_TOLERATIONS"]) == template(lab, "leaderTemplate")["tolerations"]


def test_the_gang_asks_for_gpus_and_the_rdma_resource_and_locked_memory(lab: Graph) -> None:
    made = container(lab, "leaderTemplate")
    devices = {"nvidia.com/gpu": "8", "rdma/hca_shared_devices_a": "1"}
    for kind in ("requests", "limits"):
        assert devices.items() <= made["resources"][kind].items()
        assert "vpc.amazonaws.com/efa" not in made["resources"][kind]
    assert made["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert made["image"] == "vllm/vllm-openai:v0.27.1"


def test_the_plugin_offers_what_the_gang_asks_for_from_infiniband_adapters_alone(lab: Graph) -> None:
    entry = json.loads(lab.one("device-plugins-rdma-devices").inputs["data"]["config.json"])["configList"][0]
    assert f"{entry['resourcePrefix']}/{entry['resourceName']}" == "rdma/hca_shared_devices_a"
    assert entry["selectors"]["linkTypes"] == ["infiniband"]
    assert "devices" not in entry, "deprecated, and an error together with selectors"


def test_the_plugin_runs_on_the_gpu_nodes_and_is_valid(lab: Graph) -> None:
    plugin = lab.one("device-plugins-rdma-plugin").inputs
    pod = plugin["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"pool": "h100"}
    assert pod["tolerations"][0]["key"] == "dedicated"
    for name in ("device-plugins-rdma-plugin", "device-plugins-rdma-devices", "node-caches-fill"):
        validate(dict(lab.one(name).inputs))


def test_the_gpu_plugin_starts_on_nodes_that_no_feature_discovery_has_labelled(lab: Graph) -> None:
    affinity = lab.one("device-plugins-nvidia-device-plugin").inputs["values"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "pool", "operator": "In", "values": ["h100"]}]


def test_a_plugin_that_the_cluster_has_is_used_as_it_is() -> None:
    made = existing(install=False, resource="nvidia.com/host-dev", quantity=8)
    assert not [resource.name for resource in made.resources if "rdma" in resource.name]
    assert container(made, "workerTemplate")["resources"]["limits"]["nvidia.com/host-dev"] == "8"


def test_without_a_bucket_each_node_asks_the_hub(lab: Graph) -> None:
    filling = lab.one("node-caches-fill").inputs["spec"]["template"]["spec"]["initContainers"][0]
    told = {entry["name"] for entry in filling["env"]}
    assert "HF_TOKEN" in told
    assert "staging-job" not in {resource.name for resource in lab.resources}


def test_a_claim_is_filled_in_its_own_namespace_which_the_stack_does_not_make() -> None:
    claim = {"kind": "existing_claim", "revision": REVISION, "namespace": "models", "claim": "weights"}
    made = existing(claim)
    assert not made.all("Namespace")
    job = made.one("staging-job").inputs
    assert job["metadata"]["namespace"] == "models"
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "cpu"}
    volume = next(volume for volume in template(made, "leaderTemplate")["volumes"] if volume["name"] == "weights")
    assert volume["persistentVolumeClaim"] == {"claimName": "weights"}


def test_a_directory_of_a_claim_is_served_without_staging_and_without_writing() -> None:
    claim = {"kind": "existing_claim", "revision": REVISION, "namespace": "models", "claim": "weights"}
    made = existing({**claim, "directory": "kimi"})
    assert "staging-job" not in {resource.name for resource in made.resources}
    check = template(made, "leaderTemplate")["initContainers"][0]
    told = {entry["name"]: entry["value"] for entry in check["env"]}
    assert told["STAGE_MODEL_DIRECTORY"] == "/weights/kimi"
    assert not {"STAGE_REVISION", "STAGE_REPOSITORY"} & set(told), "it has no marker of ours"
    compiled = next(volume for volume in template(made, "leaderTemplate")["volumes"] if volume["name"] == "compiled")
    assert compiled["emptyDir"] == {}
