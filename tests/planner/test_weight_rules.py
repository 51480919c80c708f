"""Where weights may be kept, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from planner import SettingsError, plan

REVISION = "4d01dfe0332d63057c186e0b262165819efb6611"
NETWORK = {
    "kind": "existing",
    "vpcId": "vpc-0123456789abcdef0",
    "controlPlaneSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "gpuSubnetId": "subnet-0123456789abcdef2",
}
EXISTING = {"kind": "existing", "context": "lab", "gpuNodeLabels": {"pool": "h100"}}
NODE = {"gpu": "h100-80gb", "gpus": 8, "vcpus": 192, "memoryGib": 2000, "nvmeGb": 28_000}


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=True)
    return str(caught.value)


def on_existing_cluster(raw: dict[str, Any], weights: dict[str, Any]) -> dict[str, Any]:
    nodes = {"instanceType": NODE, "count": 2}
    return {
        **raw,
        "platform": EXISTING,
        "gpuNodes": nodes,
        "fabric": {"kind": "infiniband"},
        "weights": {"revision": REVISION, **weights},
    }


def test_the_kind_may_be_left_out_and_is_fsx(raw: dict[str, Any]) -> None:
    del raw["weights"]["kind"]
    assert plan(raw, api_key_given=True).settings.weights.kind == "fsx"


def test_disks_of_the_nodes_are_filled_through_a_bucket_that_a_job_fills(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": REVISION}
    found = plan(raw, api_key_given=True).weights
    assert (found.staged_by_job, found.through_bucket) == (True, True)


def test_on_eks_weights_lie_on_the_array_of_the_nodes_disks(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": REVISION, "hostPath": "/mnt/k8s-disks/0/models"}
    assert plan(raw, api_key_given=True)
    raw["weights"]["hostPath"] = "/mnt/nvme"
    assert "pulumi config rm --path 'deployment.weights.hostPath'" in refused(raw)


def test_a_bucket_of_the_users_own_needs_no_job(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": REVISION, "source": {"kind": "s3", "bucket": "models"}}
    found = plan(raw, api_key_given=True).weights
    assert (found.staged_by_job, found.through_bucket) == (False, False)


def test_disks_too_small_for_the_model_are_refused(raw: dict[str, Any]) -> None:
    raw["gpuNodes"] = {"instanceType": "g7e.48xlarge", "count": 2}
    raw["model"] = "glm-5"
    raw["weights"] = {"kind": "nvme", "revision": REVISION}
    raw["gpuNodes"]["instanceType"] = "g6e.12xlarge"
    text = refused(raw)
    assert "g6e.12xlarge has 3800 GB of local disk" not in text, "1.5 TB fit there"
    raw["gpuNodes"]["instanceType"] = "g6e.2xlarge"
    raw["model"] = "qwen3-235b-a22b-instruct-2507-fp8"
    text = refused(raw)
    assert "g6e.2xlarge has 450 GB of local disk" in text
    assert "pulumi config set --path 'deployment.weights.kind' fsx" in text


def test_a_retained_file_system_needs_a_network_that_stays(raw: dict[str, Any]) -> None:
    raw["weights"]["retain"] = True
    assert "a file system holds its subnet" in refused(raw).replace("\n            ", " ")
    raw["platform"]["network"] = NETWORK
    assert plan(raw, api_key_given=True).settings.weights.kind == "fsx"


def test_a_retained_bucket_needs_nothing_else(raw: dict[str, Any]) -> None:
    raw["weights"] = {"kind": "nvme", "revision": REVISION, "retain": True}
    assert plan(raw, api_key_given=True).weights.through_bucket
    raw["weights"]["source"] = {"kind": "s3", "bucket": "models"}
    assert "a bucket that is yours" in refused(raw)


def test_a_claim_needs_a_cluster_that_is_there(raw: dict[str, Any]) -> None:
    claim = {"kind": "existing_claim", "namespace": "models", "claim": "weights"}
    raw["weights"] = {"revision": REVISION, **claim}
    assert "platform.kind existing" in refused(raw)
    found = plan(on_existing_cluster(raw, claim), api_key_given=True)
    assert found.settings.namespace == "models"
    assert found.weights.staged_by_job


def test_a_claim_may_have_dots_in_its_name_and_a_namespace_none(raw: dict[str, Any]) -> None:
    claim = {"kind": "existing_claim", "namespace": "models", "claim": "weights.v2"}
    assert plan(on_existing_cluster(raw, claim), api_key_given=True)
    assert "a namespace's name" in refused(on_existing_cluster(raw, {**claim, "namespace": "models.v2"}))


def test_a_directory_of_a_claim_is_served_as_it_is(raw: dict[str, Any]) -> None:
    claim = {"kind": "existing_claim", "namespace": "models", "claim": "weights", "directory": "kimi/K2.5"}
    found = plan(on_existing_cluster(raw, claim), api_key_given=True)
    assert not found.weights.staged_by_job
    assert found.weights.model_directory == "kimi/K2.5"
    assert found.serving is not None
    assert found.serving.leader.args[0] == "/weights/kimi/K2.5"


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"kind": "fsx"}, "outside of EKS the stack makes no file system"),
        ({"kind": "nvme", "retain": True}, "neither nodes nor a bucket"),
        ({"kind": "nvme", "start": "overlap"}, "neither nodes nor a bucket"),
        ({"kind": "nvme", "hostPath": "/"}, "an absolute path"),
        ({"kind": "nvme", "hostPath": "/mnt/../etc"}, "an absolute path"),
        ({"kind": "nvme", "source": {"kind": "s3", "bucket": "Up_per"}}, "a bucket's name"),
        ({"kind": "nvme", "source": {"kind": "gcs", "bucket": "models"}}, "hub or s3"),
        (
            {"kind": "existing_claim", "namespace": "models", "claim": "w", "directory": "../up"},
            "without / at its ends",
        ),
        ({"kind": "nvme", "source": {"kind": "s3", "bucket": "m", "prefix": "modèles"}}, "without / at its ends"),
        ({"kind": "tape"}, "fsx or nvme or existing_claim"),
    ],
)
def test_what_cannot_be_on_an_existing_cluster_is_refused(
    raw: dict[str, Any], weights: dict[str, Any], said: str
) -> None:
    assert said in refused(on_existing_cluster(raw, weights)).replace("\n            ", " ")
