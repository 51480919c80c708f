"""Rules that hold for every resource of the stack, whatever it is."""

from __future__ import annotations

import json

import yaml

from tests.components.graph import ROOT, Graph, record


def is_component(kind: str) -> bool:
    return kind.startswith("vllm-multinode:index:")


def test_every_resource_uses_one_of_the_two_explicit_providers(graph: Graph) -> None:
    aws = graph.one("aws").urn
    kubernetes = graph.one("cluster-kubernetes").urn
    for resource in graph.resources:
        if resource.type.startswith("aws:"):
            assert resource.provider.rpartition("::")[0] == aws, resource.name
        elif resource.type.startswith("kubernetes:"):
            assert resource.provider.rpartition("::")[0] == kubernetes, resource.name


def test_default_providers_are_switched_off_in_the_stack_file() -> None:
    config = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text())["config"]
    assert config["pulumi:disable-default-providers"] == ["aws", "kubernetes"]


def test_no_child_escapes_its_component(graph: Graph) -> None:
    components = {resource.urn for resource in graph.resources if is_component(resource.type)}
    for resource in graph.resources:
        if resource.type.startswith(("aws:", "kubernetes:")):
            assert resource.parent in components, resource.name


def test_only_what_holds_nothing_back_dies_with_the_cluster(graph: Graph) -> None:
    cluster = graph.one("cluster-eks").urn
    dying = {resource.name for resource in graph.resources if resource.deleted_with}
    assert dying == {
        "device-plugins-nvidia-device-plugin",
        "device-plugins-aws-efa-k8s-device-plugin",
        "gang-operator-lws",
    }
    assert all(resource.deleted_with == cluster for resource in graph.resources if resource.deleted_with)


def test_nothing_survives_a_destroy(graph: Graph) -> None:
    assert not [resource.name for resource in graph.resources if resource.protect or resource.retain_on_delete]


def test_long_steps_have_timeouts_of_their_own(graph: Graph) -> None:
    assert graph.one("staging-job").timeouts["create"] == "4h"
    assert graph.one("serving-gang", "LeaderWorkerSet").timeouts["create"] == "150m"
    assert graph.one("serving-gang", "LeaderWorkerSet").timeouts["delete"] == "20m"
    assert graph.one("gpu-nodes-group").timeouts == {"create": "60m", "update": "60m", "delete": "60m"}


def test_everything_in_aws_carries_the_stacks_tag_and_region(graph: Graph) -> None:
    provider = graph.one("aws").inputs
    assert json.loads(provider["defaultTags"]) == {"tags": {"vllm-multinode": "kimi-k25"}}
    assert provider["region"] == "us-east-1"
    for template in ("gpu-nodes-template", "system-nodes-template"):
        for specification in graph.one(template).inputs["tagSpecifications"]:
            assert specification["tags"]["vllm-multinode"] == "kimi-k25"


def test_the_paused_stack_keeps_cluster_and_weights_and_serves_nothing() -> None:
    def pause(deployment: dict[str, object]) -> None:
        deployment["gpuNodes"] = {"instanceType": "p5.48xlarge", "count": 0}

    paused = record(pause)
    scaling = paused.one("gpu-nodes-group").inputs["scalingConfig"]
    assert (scaling["minSize"], scaling["desiredSize"]) == (0, 0)
    assert scaling["maxSize"] >= 1
    assert not paused.all("LeaderWorkerSet")
    assert paused.one("gang-operator-lws"), "a new installation's webhooks would refuse the gang that is resumed"
    assert paused.one("weights-lustre", "LustreFileSystem")
    assert "gpuNodes.count" in paused.outputs["endpoint"]
