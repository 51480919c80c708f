"""Rules of the weight cache and of staging."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from components import payloads
from payloads.staging_settings import ExitCode, model_directory
from tests.components.graph import Graph, record
from tests.components.manifests import container

REVISION = "4d01dfe0332d63057c186e0b262165819efb6611"


def pod(graph: Graph) -> dict[str, Any]:
    spec: dict[str, Any] = graph.one("staging-job").inputs["spec"]["template"]["spec"]
    return spec


def environment(graph: Graph) -> dict[str, Any]:
    return {entry["name"]: entry for entry in pod(graph)["containers"][0]["env"]}


def test_the_file_system_is_persistent_2_at_a_version_that_nodes_can_mount(graph: Graph) -> None:
    system = graph.one("weights-lustre", "LustreFileSystem").inputs
    assert (system["deploymentType"], system["fileSystemTypeVersion"]) == ("PERSISTENT_2", "2.15")
    assert (system["storageCapacity"], system["perUnitStorageThroughput"]) == (2400, 1000)
    assert system["subnetIds"] == "network-gpu-id", "a single subnet, as a string"


def test_lustre_ports_are_open_both_ways_before_the_file_system_is_made(graph: Graph) -> None:
    rules = [rule for rule in graph.resources if rule.name.startswith(("weights-lustre-in", "weights-lustre-out"))]
    opened = {
        (
            rule.type.rpartition(":")[2],
            rule.inputs["referencedSecurityGroupId"],
            rule.inputs["fromPort"],
            rule.inputs["toPort"],
        )
        for rule in rules
    }
    assert opened == {
        (kind, peer, *ports)
        for kind in ("SecurityGroupIngressRule", "SecurityGroupEgressRule")
        for peer in ("weights-lustre-id", "sg-cluster")
        for ports in ((988, 988), (1018, 1023))
    }
    own = {rule.urn for rule in rules if "self" in rule.name}
    assert own <= graph.one("weights-lustre", "LustreFileSystem").dependencies
    assert {rule.urn for rule in rules} - own <= graph.one("weights-volume").dependencies


def test_the_file_system_and_the_cluster_are_made_side_by_side(graph: Graph) -> None:
    cluster = graph.one("cluster-eks")
    assert cluster.urn not in graph.after(graph.one("weights-lustre", "LustreFileSystem"))


def test_the_servers_may_call_their_clients_back(graph: Graph) -> None:
    back = [rule for rule in graph.resources if rule.name.startswith("weights-lustre-back-")]
    assert {(rule.inputs["fromPort"], rule.inputs["toPort"]) for rule in back} == {(988, 988), (1018, 1023)}
    for rule in back:
        assert rule.inputs["securityGroupId"] == "sg-cluster"
        assert rule.inputs["referencedSecurityGroupId"] == "weights-lustre-id"


def test_the_file_system_keeps_no_backup_that_would_bill(graph: Graph) -> None:
    system = graph.one("weights-lustre", "LustreFileSystem").inputs
    assert (system["automaticBackupRetentionDays"], system["skipFinalBackup"]) == (0, True)


def test_the_volume_is_static_and_kept_by_kubernetes(graph: Graph) -> None:
    volume = graph.one("weights-volume").inputs["spec"]
    assert volume["csi"]["driver"] == "fsx.csi.aws.com"
    assert volume["csi"]["volumeAttributes"] == {"dnsname": "fs.example", "mountname": "abcdef"}
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["mountOptions"] == ["flock"]
    claim = graph.one("weights-claim").inputs["spec"]
    assert (claim["storageClassName"], claim["volumeName"]) == ("", "weights-volume-0123abc")


def test_volume_and_claim_have_no_fixed_names_that_would_wait_on_each_other(graph: Graph) -> None:
    for name in ("weights-volume", "weights-claim"):
        made = graph.one(name)
        assert "name" not in (made.inputs.get("metadata") or {})
        assert not made.delete_before_replace


def test_a_larger_file_system_changes_neither_volume_nor_claim(graph: Graph) -> None:
    def grow(deployment: dict[str, Any]) -> None:
        deployment["weights"]["capacityGib"] = 4800

    grown = record(grow)
    for name in ("weights-volume", "weights-claim"):
        assert grown.one(name).inputs == graph.one(name).inputs


def test_the_volume_waits_for_the_csi_driver(graph: Graph) -> None:
    assert graph.one("system-nodes-aws-fsx-csi-driver").urn in graph.one("weights-volume").dependencies


def test_staging_has_one_writer(graph: Graph) -> None:
    job = graph.one("staging-job")
    assert job.delete_before_replace
    assert job.inputs["spec"].get("parallelism", 1) == 1


def test_staging_runs_on_the_system_nodes_with_a_pinned_image(graph: Graph) -> None:
    spec = pod(graph)
    assert spec["nodeSelector"] == {"vllm-multinode/role": "system"}
    assert "@sha256:" in spec["containers"][0]["image"]
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "8", "memory": "16Gi"}


def test_a_failed_staging_job_runs_again_on_the_next_up(graph: Graph) -> None:
    assert graph.one("staging-job").inputs["metadata"]["annotations"]["pulumi.com/replaceUnready"] == "true"


def test_a_failed_pod_fails_the_job_at_once_for_a_reason_that_pulumi_sees(graph: Graph) -> None:
    spec = graph.one("staging-job").inputs["spec"]
    assert spec["backoffLimit"] == 0
    assert {rule["action"] for rule in spec["podFailurePolicy"]["rules"]} == {"Ignore"}


def test_the_job_gives_up_before_pulumi_stops_waiting(graph: Graph) -> None:
    assert graph.one("staging-job").inputs["spec"]["activeDeadlineSeconds"] < 4 * 3600


def test_the_payload_runs_from_its_config_map(graph: Graph, tmp_path: Path) -> None:
    data = graph.one("staging-payload").inputs["data"]
    assert sum(len(text.encode()) for text in data.values()) < 900 * 1024
    folder = tmp_path / "payloads"
    folder.mkdir()
    for name, text in data.items():
        (folder / name).write_text(text)
    environment = {"PYTHONPATH": str(tmp_path), "STAGE_TERMINATION_LOG": str(tmp_path / "log")}
    command = [sys.executable, "-m", "payloads.stage_weights"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.BAD_CONFIGURATION, done.stderr
    assert "STAGE_REPOSITORY" in (tmp_path / "log").read_text()


def test_every_wheel_that_is_installed_is_locked_in_the_payload(graph: Graph) -> None:
    command = pod(graph)["containers"][0]["command"][-1]
    locks = re.findall(r"-r /payload/payloads/(\S+)", command)
    assert locks
    assert set(locks) <= set(graph.one("staging-payload").inputs["data"])


def test_a_changed_payload_runs_again(graph: Graph) -> None:
    template = graph.one("staging-job").inputs["spec"]["template"]
    files = graph.one("staging-payload").inputs["data"]
    assert template["metadata"]["annotations"]["vllm-multinode/payload"] == payloads.digest(files)
    changed = {**files, "stage_weights.py": files["stage_weights.py"] + "#"}
    assert payloads.digest(changed) != payloads.digest(files)


def test_staging_may_patch_one_config_map_and_nothing_else(graph: Graph) -> None:
    role = graph.one("staging-role", "Role").inputs
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["kimi-k25-staging-progress"],
            "verbs": ["get", "patch"],
        }
    ]
    assert environment(graph)["STAGE_PROGRESS_CONFIGMAP"]["value"] == "kimi-k25-staging-progress"


def test_progress_is_the_jobs_own_to_write(graph: Graph) -> None:
    assert "data" not in graph.one("staging-progress").inputs


def test_the_revision_is_pinned_and_serving_reads_the_directory_that_staging_writes(graph: Graph) -> None:
    assert environment(graph)["STAGE_REVISION"]["value"] == REVISION
    repository = environment(graph)["STAGE_REPOSITORY"]["value"]
    assert container(graph, "leaderTemplate")["args"][0] == f"/weights/{model_directory(repository, REVISION)}"


def test_without_a_hub_token_there_is_no_secret_for_it(graph: Graph) -> None:
    assert "HF_TOKEN" not in environment(graph)
    assert [secret.name for secret in graph.all("Secret")] == ["serving-api-key"]


def test_the_hub_token_reaches_the_staging_pod_alone() -> None:
    graph = record(secrets={"apiKey": "a-test-key", "huggingFaceToken": "hf_planted"})
    reference = environment(graph)["HF_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "kimi-k25-staging-secrets", "key": "HF_TOKEN"}
    gang = graph.one("serving-gang", "LeaderWorkerSet")
    assert "staging-secrets" not in str(gang.inputs)


def test_a_package_index_and_a_hub_endpoint_of_ones_own_are_used() -> None:
    def mirror(deployment: dict[str, Any]) -> None:
        deployment["staging"] = {"packageIndex": "https://pypi.example/simple", "hubEndpoint": "https://hub.example"}

    given = environment(record(mirror))
    assert given["PIP_INDEX_URL"]["value"] == "https://pypi.example/simple"
    assert given["HF_ENDPOINT"]["value"] == "https://hub.example"
