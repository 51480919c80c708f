"""Weights on the disks of the nodes, through a bucket, in a claim that is there, and kept over a destroy."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from components import gang, node_caches, weight_bucket
from planner import plan as plan_of
from planner.checks import LONGEST_NAME
from planner.hardware import GPU_TYPES, GPUS, InstanceType
from planner.plan import Plan
from tests.components import graph as recorded
from tests.components.graph import Graph, record
from tests.components.manifests import template

REVISION = "4d01dfe0332d63057c186e0b262165819efb6611"
NETWORK = {
    "kind": "existing",
    "vpcId": "vpc-0123456789abcdef0",
    "controlPlaneSubnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "gpuSubnetId": "subnet-0123456789abcdef2",
}

SMALLEST = InstanceType(
    name="smallest described", gpu=GPUS["l4-24gb"], gpus=1, vcpus=8, memory_mib=32 * 1024, network_gbps=10
)


def planned() -> Plan:
    return plan_of(recorded.stack_file(), api_key_given=True)


def on_disks(**more: Any) -> Graph:
    def change(deployment: dict[str, Any]) -> None:
        deployment["weights"] = {"kind": "nvme", "revision": REVISION, **more}

    return record(change, {"apiKey": "a-test-key", "huggingFaceToken": "hf_planted"})


@pytest.fixture(scope="module")
def disks() -> Graph:
    return on_disks()


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def fill(graph: Graph) -> dict[str, Any]:
    spec: dict[str, Any] = graph.one("node-caches-fill").inputs["spec"]["template"]["spec"]
    return spec


def stage(graph: Graph) -> dict[str, Any]:
    spec: dict[str, Any] = graph.one("staging-job").inputs["spec"]["template"]["spec"]
    return spec


def test_the_hub_is_asked_once_and_nodes_read_from_the_bucket(disks: Graph) -> None:
    job, node = environment(stage(disks)["containers"][0]), environment(fill(disks)["initContainers"][0])
    assert (job["STAGE_SOURCE"], job["STAGE_TARGET"]) == ("hub", "s3://kimi-k25-weights-000000000000-us-east-1")
    assert node["STAGE_SOURCE"] == job["STAGE_TARGET"]
    assert "STAGE_TARGET" not in node
    assert node["AWS_REGION"] == job["AWS_REGION"] == "us-east-1"


@pytest.mark.parametrize("nodes", [*GPU_TYPES.values(), SMALLEST], ids=lambda item: item.name)
def test_the_pod_that_fills_the_disks_has_room_beside_the_gang(nodes: InstanceType) -> None:
    """An AL2023 node lets pods have all but a thirtieth and 2 GiB of its memory, and EFA's huge pages."""
    plan = replace(planned(), instance=nodes)
    asked, beside = gang.resources(plan)["requests"], gang.cpu_left(nodes.vcpus) // 2
    assert int(asked["cpu"]) >= 4
    assert beside >= 2
    assert int(asked["cpu"]) + beside + 2 <= nodes.vcpus
    room = nodes.memory_gib * 29 / 30 - 2 - (10 if nodes.efa else 0)
    assert int(asked["memory"].removesuffix("Gi")) + int(node_caches.MEMORY.removesuffix("Gi")) <= room


def test_stacks_whose_names_begin_alike_have_buckets_of_their_own() -> None:
    names = ["kimi-k25-production-blue", "kimi-k25-production-green", "kimi-k25", "k" * LONGEST_NAME]
    made = {f"{weight_bucket.short(name)}-weights-{'0' * 12}-ap-southeast-1" for name in names}
    assert len(made) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]{3,63}", name) for name in made)


def test_all_nodes_take_another_revision_at_once(disks: Graph) -> None:
    spec = disks.one("node-caches-fill").inputs["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}


def test_no_file_system_is_made_beside_the_bucket(disks: Graph) -> None:
    assert not disks.all("LustreFileSystem")


def test_the_hub_token_stays_with_the_job(disks: Graph) -> None:
    assert "HF_TOKEN" in environment(stage(disks)["containers"][0])
    assert "HF_TOKEN" not in environment(fill(disks)["initContainers"][0])


def test_the_job_writes_and_the_nodes_only_read(disks: Graph) -> None:
    def actions(name: str) -> set[str]:
        document = json.loads(disks.one(f"{name}-access-policy").inputs["policy"])
        return {action for statement in document["Statement"] for action in statement["Action"]}

    assert "s3:PutObject" in actions("staging")
    assert actions("node-caches") == {"s3:GetObject", "s3:ListBucket"}


def test_access_is_of_one_service_account_to_one_bucket_and_there_before_the_pod(disks: Graph) -> None:
    for name, account, workload in (
        ("staging", "kimi-k25-staging", "staging-job"),
        ("node-caches", "kimi-k25-node-cache", "node-caches-fill"),
    ):
        identity = disks.one(f"{name}-access-identity")
        assert (identity.inputs["namespace"], identity.inputs["serviceAccount"]) == ("kimi-k25", account)
        document = json.loads(disks.one(f"{name}-access-policy").inputs["policy"])
        for statement in document["Statement"]:
            assert statement["Resource"].startswith("arn:aws:s3:::kimi-k25-weights-000000000000-us-east-1")
        assert identity.urn in disks.one(workload).dependencies


def test_every_gpu_node_fills_its_own_disk_beside_the_gang(disks: Graph) -> None:
    spec = fill(disks)
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert "nvidia.com/gpu" not in str([entry["resources"] for entry in (*spec["initContainers"], *spec["containers"])])


def test_staging_and_serving_mean_the_same_folder_of_the_node(disks: Graph) -> None:
    written = next(volume["hostPath"]["path"] for volume in fill(disks)["volumes"] if volume["name"] == "weights")
    for role in ("leaderTemplate", "workerTemplate"):
        volumes = {volume["name"]: volume for volume in template(disks, role)["volumes"]}
        assert volumes["weights"]["hostPath"]["path"] == written == "/mnt/k8s-disks/0/kimi-k25/weights"
        assert volumes["compiled"]["hostPath"]["path"] == "/mnt/k8s-disks/0/kimi-k25/compiled"


def test_the_gang_waits_for_the_disks(disks: Graph) -> None:
    assert disks.one("node-caches-fill").urn in disks.after(disks.one("serving-gang", "LeaderWorkerSet"))


def test_the_bucket_is_private_and_forgets_unfinished_uploads(disks: Graph) -> None:
    private = disks.one("weights-private").inputs
    assert all(private[key] for key in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls"))
    rule = disks.one("weights-lifecycle").inputs["rules"][0]
    assert rule["abortIncompleteMultipartUpload"] == {"daysAfterInitiation": 2}


def test_the_bucket_goes_with_the_stack_unless_it_is_retained(disks: Graph) -> None:
    bucket = disks.one("weights-bucket")
    assert bucket.inputs["forceDestroy"] is True
    assert not bucket.retain_on_delete
    kept = on_disks(retain=True).one("weights-bucket")
    assert kept.retain_on_delete
    assert kept.inputs["forceDestroy"] is False


def test_scratch_disks_are_fast_where_the_download_goes_through_them(disks: Graph, graph: Graph) -> None:
    def throughput(made: Graph) -> Any:
        mapping = made.one("system-nodes-template").inputs["blockDeviceMappings"][0]["ebs"]
        return mapping.get("throughput")

    assert (throughput(disks), throughput(graph)) == (500, None)
    scratch = next(volume for volume in stage(disks)["volumes"] if volume["name"] == "weights")
    assert scratch["emptyDir"] == {"sizeLimit": "120Gi"}


def test_a_bucket_of_the_users_own_is_read_below_its_prefix_by_the_nodes_alone() -> None:
    made = on_disks(source={"kind": "s3", "bucket": "models", "prefix": "kimi"})
    assert not made.all("Bucket")
    assert "staging-job" not in {resource.name for resource in made.resources}
    document = json.loads(made.one("node-caches-access-policy").inputs["policy"])
    objects, listing = document["Statement"]
    assert objects["Resource"] == "arn:aws:s3:::models/kimi/*"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["kimi", "kimi/*"]}}
    assert environment(fill(made)["initContainers"][0])["STAGE_SOURCE"] == "s3://models/kimi"


def test_gpu_nodes_boot_beside_the_staging_when_told_to(graph: Graph) -> None:
    def overlap(deployment: dict[str, Any]) -> None:
        deployment["weights"]["start"] = "overlap"

    beside = record(overlap)
    for made, waits in ((graph, True), (beside, False)):
        nodes, job = made.one("gpu-nodes-group"), made.one("staging-job")
        assert (job.urn in made.after(nodes)) is waits
        assert job.urn in made.after(made.one("serving-gang", "LeaderWorkerSet"))
        # Nodes that boot before there is anything to stage to would be paid for nothing.
        assert made.one("weights-lustre", "LustreFileSystem").urn in made.after(nodes)


def test_a_retained_file_system_outlives_the_stack_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def retain(deployment: dict[str, Any]) -> None:
        deployment["platform"]["network"] = NETWORK
        deployment["weights"]["retain"] = True

    found = {
        "id": "found",
        "resourceTagMappingLists": [{"resourceArn": "arn:aws:fsx:us-east-1:000000000000:file-system/fs-0abc"}],
    }
    monkeypatch.setitem(recorded.CALLS, "aws:resourcegroupstaggingapi/getResources:getResources", found)
    made = record(retain)
    kept = {resource.name for resource in made.resources if resource.retain_on_delete}
    assert kept == {"weights-lustre"}
    system = made.one("weights-lustre", "LustreFileSystem")
    assert system.retain_on_delete
    assert made.one("weights-lustre", "SecurityGroup").retain_on_delete
    assert system.imported == "fs-0abc"
    assert system.ignore_changes == ("securityGroupIds",)
    assert made.one("weights-lustre", "SecurityGroup").inputs["name"] == "kimi-k25-lustre"


def test_what_nobody_kept_is_made_anew() -> None:
    assert not on_disks(retain=True).one("weights-bucket").imported
