"""Rules of the Helm releases."""

from __future__ import annotations

from typing import Any

from components.charts import with_image
from tests.components.graph import Graph, record

NVIDIA = "device-plugins-nvidia-device-plugin"
EFA = "device-plugins-aws-efa-k8s-device-plugin"


def test_plugins_are_pinned_and_come_from_their_own_repositories(graph: Graph) -> None:
    pinned = {name: graph.one(name).inputs for name in (NVIDIA, EFA)}
    assert {
        name: (made["chart"], made["version"], made["repositoryOpts"]["repo"]) for name, made in pinned.items()
    } == {
        NVIDIA: ("nvidia-device-plugin", "0.20.0", "https://nvidia.github.io/k8s-device-plugin"),
        EFA: ("aws-efa-k8s-device-plugin", "v0.5.30", "https://aws.github.io/eks-charts"),
    }
    assert all(made["timeout"] >= 300 for made in pinned.values())


def test_plugins_come_after_the_nodes_that_they_run_on(graph: Graph) -> None:
    for name in (NVIDIA, EFA):
        assert graph.one("gpu-nodes-group").urn in graph.one(name).dependencies


def test_feature_discovery_stays_off(graph: Graph) -> None:
    values = graph.one(NVIDIA).inputs["values"]
    assert values["gfd"] == {"enabled": False}
    assert "nfd" not in values, "it comes with gfd alone"


def test_a_mirror_replaces_chart_repository_and_image() -> None:
    def mirror(deployment: dict[str, Any]) -> None:
        deployment["charts"] = {
            "nvidiaDevicePlugin": {
                "chart": "plugin",
                "repository": "https://charts.example",
                "version": "0.20.1",
                "image": "registry.example/plugin",
            }
        }

    made = record(mirror).one(NVIDIA).inputs
    assert (made["chart"], made["version"]) == ("plugin", "0.20.1")
    assert made["repositoryOpts"]["repo"] == "https://charts.example"
    assert made["values"]["image"] == {"repository": "registry.example/plugin"}


def test_a_chart_folder_needs_neither_repository_nor_version() -> None:
    def local(deployment: dict[str, Any]) -> None:
        deployment["charts"] = {"efaDevicePlugin": {"chart": "./simulation/charts/aws-efa-k8s-device-plugin"}}

    made = record(local).one(EFA).inputs
    assert "version" not in made
    assert "repositoryOpts" not in made


def test_an_image_override_keeps_the_other_values() -> None:
    values = {"image": {"manager": {"tag": "v1"}}, "replicaCount": 2}
    assert with_image(values, ("image", "manager", "repository"), "registry.example/lws") == {
        "image": {"manager": {"tag": "v1", "repository": "registry.example/lws"}},
        "replicaCount": 2,
    }


def test_a_skipped_plugin_is_not_installed() -> None:
    def skip(deployment: dict[str, Any]) -> None:
        deployment["charts"] = {"nvidiaDevicePlugin": {"install": False}}

    assert NVIDIA not in [resource.name for resource in record(skip).resources]
