"""The fabric test in the graph: what it waits for, what waits for it, and when it runs again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.fabric_gate import figures
from payloads import fabric_settings
from tests.components.graph import Graph, record
from tests.components.manifests import container


def gate(graph: Graph) -> dict[str, Any]:
    spec: dict[str, Any] = graph.one("fabric-gate-test", "Job").inputs["spec"]
    return spec


def test_the_pod_runs_the_test_and_shows_why_it_failed(graph: Graph) -> None:
    spec = gate(graph)["template"]["spec"]
    assert spec["containers"][0]["command"] == ["python3", "-m", "payloads.fabric_test"]
    assert spec["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def told(graph: Graph) -> dict[str, str]:
    variables = gate(graph)["template"]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry["value"] for entry in variables if "value" in entry}


def test_nothing_is_served_before_the_test_has_passed(graph: Graph) -> None:
    assert graph.one("fabric-gate-test", "Job").urn in graph.after(graph.one("serving-gang", "LeaderWorkerSet"))


def test_nodes_are_named_before_pods_wait_on_them(graph: Graph) -> None:
    before = graph.after(graph.one("fabric-gate-test", "Job"))
    assert graph.one("fabric-gate-check", "Job").urn in before
    assert graph.one("gpu-nodes-group").urn in before
    assert graph.one("device-plugins-aws-efa-k8s-device-plugin").urn in before


def test_the_test_takes_what_the_gang_takes(graph: Graph) -> None:
    tested, served = gate(graph)["template"]["spec"]["containers"][0], container(graph, "leaderTemplate")
    assert tested["resources"] == served["resources"]
    assert tested["image"] == served["image"]
    assert tested["securityContext"] == served["securityContext"]
    for name in ("NCCL_NET", "NCCL_SOCKET_IFNAME", "FI_EFA_USE_HUGE_PAGE"):
        assert {"name": name, "value": told(graph)[name]} in served["env"]


def test_there_is_one_pod_a_node_and_each_knows_its_leader(graph: Graph) -> None:
    spec = gate(graph)
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (2, 2, "Indexed")
    service = graph.one("fabric-gate-peers").inputs
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert told(graph)["FABRIC_LEADER"] == "kimi-k25-fabric-test-0.kimi-k25-fabric-test"
    assert service["spec"]["publishNotReadyAddresses"] is True


def test_the_test_itself_accepts_what_it_is_told(graph: Graph) -> None:
    settings = fabric_settings.Settings.from_environment({**told(graph), "JOB_COMPLETION_INDEX": "1"})
    assert (settings.nodes, settings.gpus, settings.nics) == (2, 8, 32)
    assert (settings.warn_below, settings.fail_below) == (352, 150)


def test_the_deadlines_leave_room_for_each_other(graph: Graph) -> None:
    limit = gate(graph)["activeDeadlineSeconds"]
    assert int(told(graph)["FABRIC_PEER_TIMEOUT_SECONDS"]) + int(told(graph)["FABRIC_TEST_TIMEOUT_SECONDS"]) < limit
    assert graph.one("fabric-gate-test", "Job").timeouts["create"] == "45m"
    assert limit < 45 * 60


def test_the_test_comes_before_a_gang_that_serves(graph: Graph) -> None:
    assert graph.one("fabric-gate-first").inputs["value"] > 0
    assert gate(graph)["template"]["spec"]["priorityClassName"]
    assert "priorityClassName" not in str(graph.one("serving-gang", "LeaderWorkerSet").inputs)


def test_another_image_is_no_new_test_and_other_nodes_are(graph: Graph) -> None:
    job = graph.one("fabric-gate-test", "Job")
    assert job.ignore_changes == ("spec.template.spec.containers[0].image",)
    assert job.delete_before_replace
    named = gate(graph)["template"]["metadata"]["annotations"]["vllm-multinode/nodes"]
    assert named == "arn:aws:test:::gpu-nodes-group@1@1.35.6-20260818"


def test_the_verdict_is_read_by_an_id_that_no_preview_knows_before_it_is_there(graph: Graph) -> None:
    """A name is known to every preview: reading by it fails where the ConfigMap is yet to be made."""
    assert graph.reads == {"fabric-gate-read": "fabric-gate-verdict-id"}


def test_a_failed_test_shows_its_reason_and_runs_again_on_the_next_up(graph: Graph) -> None:
    for name in ("fabric-gate-test", "fabric-gate-check"):
        job = graph.one(name, "Job").inputs
        assert job["spec"]["backoffLimit"] == 0
        assert job["metadata"]["annotations"]["pulumi.com/replaceUnready"] == "true"


def test_the_check_asks_for_what_the_table_says(graph: Graph) -> None:
    pod = graph.one("fabric-gate-check", "Job").inputs["spec"]["template"]["spec"]
    variables = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}
    assert json.loads(variables["NODES_RESOURCES"]) == {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}
    assert variables["NODES_SELECTOR"] == "node.kubernetes.io/instance-type=p5.48xlarge"
    assert pod["nodeSelector"] == {"vllm-multinode/role": "system"}


def test_accounts_may_list_nodes_and_patch_one_config_map(graph: Graph) -> None:
    assert graph.one("fabric-gate-nodes", "ClusterRole").inputs["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    ]
    (rule,) = graph.one("fabric-gate-verdict", "Role").inputs["rules"]
    assert rule["resourceNames"] == ["kimi-k25-fabric-verdict"]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"gpuNodes": {"instanceType": "p5en.48xlarge", "count": 1}}, "none"),
        ({"fabric": {"kind": "efa", "gate": "skip"}}, None),
        ({"gpuNodes": {"instanceType": "p5.48xlarge", "count": 0}}, None),
    ],
)
def test_the_test_follows_the_stack_file(changes: dict[str, Any], kind: str | None) -> None:
    made = record(lambda deployment: deployment.update(changes))
    jobs = {resource.name for resource in made.resources if resource.type.endswith(":Job")}
    assert ("fabric-gate-test" in jobs) is (kind is not None)
    if kind:
        assert told(made)["FABRIC_KIND"] == kind, "one node has no fabric: only its inner links are tested"


def test_thresholds_of_ones_own_are_passed_on() -> None:
    fabric = {"kind": "efa", "gate": "warn", "warnBelow": 300, "failBelow": 200}
    made = told(record(lambda deployment: deployment.update({"fabric": fabric})))
    assert (made["FABRIC_MODE"], made["FABRIC_WARN_BELOW"], made["FABRIC_FAIL_BELOW"]) == ("warn", "300", "200")


def test_the_outputs_say_what_was_measured() -> None:
    verdict = {"verdict": "pass", "busbw_gb_per_s": 466.1, "transport": "NET/OFI efa-direct", "nics": 32, "more": 1}
    assert figures({"verdict": json.dumps(verdict)}) == {
        "verdict": "pass",
        "busbw_gb_per_s": 466.1,
        "transport": "NET/OFI efa-direct",
        "nics": 32,
    }
    for nothing in (None, {}, {"verdict": "no JSON"}, {"verdict": "[]"}):
        assert figures(nothing)["verdict"].startswith("none")
