"""Every Kubernetes object of the stack: valid against its schema, and sound where no schema looks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from tests.components.graph import Graph, record
from tests.components.schemas import validate

QUANTITY = re.compile(r"^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")
EXTENDED = ("nvidia.com/gpu", "vpc.amazonaws.com/efa")
CAPABILITIES = {"ALL", "IPC_LOCK"}
EFFECTS = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
LABEL = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")


def manifests(graph: Graph) -> list[dict[str, Any]]:
    """Plain objects only: a Helm release's are made by its chart."""
    return [
        dict(resource.inputs)
        for resource in graph.resources
        if resource.type.startswith("kubernetes:") and not resource.type.endswith(":Release")
    ]


def pod_specs(graph: Graph) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod template of the stack, by a name for the test's output."""
    yield "staging", graph.one("staging-job").inputs["spec"]["template"]["spec"]
    template = graph.one("serving-gang", "LeaderWorkerSet").inputs["spec"]["leaderWorkerTemplate"]
    yield "leader", template["leaderTemplate"]["spec"]
    yield "worker", template["workerTemplate"]["spec"]


def containers(graph: Graph) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    for name, spec in pod_specs(graph):
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            yield f"{name}/{container['name']}", spec, container


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from walk(value)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value)


def test_every_object_is_valid_against_its_schema(graph: Graph) -> None:
    made = manifests(graph)
    assert len(made) == 27
    for manifest in made:
        validate(manifest)


def test_objects_of_a_reused_older_operator_are_valid_too() -> None:
    def reuse(deployment: dict[str, Any]) -> None:
        deployment["charts"] = {"leaderWorkerSet": {"install": False, "version": "0.8.0"}}

    validate(dict(record(reuse).one("serving-gang", "LeaderWorkerSet").inputs))


@pytest.mark.parametrize("kind", ["ConfigMap", "LeaderWorkerSet"])
def test_the_validation_sees_a_misspelt_field(graph: Graph, kind: str) -> None:
    manifest = next(entry for entry in manifests(graph) if entry["kind"] == kind)
    with pytest.raises((kubernetes_validate.ValidationError, jsonschema.ValidationError)):
        validate({**manifest, "spek": {}})


def test_the_validation_fails_without_a_schema() -> None:
    with pytest.raises(kubernetes_validate.SchemaNotFoundError):
        validate({"apiVersion": "example.org/v1", "kind": "Unknown", "metadata": {"name": "x"}})


def test_quantities_are_quantities(graph: Graph) -> None:
    for name, _, container in containers(graph):
        resources = container["resources"]
        for group in ("requests", "limits"):
            for resource, quantity in resources.get(group, {}).items():
                assert QUANTITY.match(quantity), f"{name}: {resource} {quantity}"


def test_extended_resources_are_whole_and_requested_as_limited(graph: Graph) -> None:
    for name, _, container in containers(graph):
        requests, limits = (container["resources"].get(group, {}) for group in ("requests", "limits"))
        for resource in EXTENDED:
            assert requests.get(resource) == limits.get(resource), name
            assert requests.get(resource, "1").isdigit(), name


def test_every_container_has_image_memory_limit_and_cpu_request(graph: Graph) -> None:
    for name, _, container in containers(graph):
        assert container["image"], name
        assert container["resources"]["requests"]["cpu"], name
        assert container["resources"]["limits"]["memory"], name


def test_every_mount_has_its_volume_and_every_volume_one_source(graph: Graph) -> None:
    for name, spec, container in containers(graph):
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes), name
        assert all(len(volume) == 2 for volume in volumes.values()), name


def test_capabilities_and_toleration_effects_are_spelt_right(graph: Graph) -> None:
    for _, spec, container in containers(graph):
        capabilities = container["securityContext"]["capabilities"]
        assert {*capabilities["drop"], *capabilities.get("add", ())} <= CAPABILITIES
        for toleration in spec.get("tolerations", ()):
            assert toleration["effect"] in EFFECTS
            assert toleration["operator"] in ("Exists", "Equal")


def test_labels_and_names_are_well_formed(graph: Graph) -> None:
    for manifest in manifests(graph):
        for node in walk(manifest):
            for key, value in {**(node.get("labels") or {}), **(node.get("matchLabels") or {})}.items():
                assert LABEL.match(key), key
                assert LABEL.match(value), value
        name = (manifest.get("metadata") or {}).get("name")
        assert name is None or re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)


def test_the_service_selects_labels_that_the_operator_sets(graph: Graph) -> None:
    selector = graph.one("serving-api").inputs["spec"]["selector"]
    assert set(selector) == {
        "leaderworkerset.sigs.k8s.io/name",
        "leaderworkerset.sigs.k8s.io/worker-index",
    }


def test_a_named_port_of_the_service_exists_on_the_leader(graph: Graph) -> None:
    target = graph.one("serving-api").inputs["spec"]["ports"][0]["targetPort"]
    leader = dict(pod_specs(graph))["leader"]["containers"][0]
    assert target in [port["name"] for port in leader["ports"]]


def test_what_runs_on_gpu_nodes_tolerates_their_taint(graph: Graph) -> None:
    taint = graph.one("gpu-nodes-group").inputs["taints"][0]
    for name in ("nvidia-device-plugin", "aws-efa-k8s-device-plugin"):
        values = graph.one(f"device-plugins-{name}").inputs["values"]
        assert {"key": taint["key"], "operator": "Exists", "effect": "NoSchedule"} in values["tolerations"]


def test_the_nvidia_plugin_leaves_efa_devices_to_their_own(graph: Graph) -> None:
    assert graph.one("device-plugins-nvidia-device-plugin").inputs["values"]["mofedEnabled"] is False
