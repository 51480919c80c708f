"""The stand-in charts know the values of the real ones and no others."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from simulation import paths

CHARTS = paths.ROOT / "simulation" / "charts"

REAL_KEYS = {
    "nvidia-device-plugin": """
        config compatWithCPUManager migStrategy failOnInitError deviceListStrategy deviceIDStrategy
        nvidiaDriverRoot gdrcopyEnabled gdsEnabled mofedEnabled deviceDiscoveryStrategy nameOverride
        fullnameOverride namespaceOverride selectorLabelsOverride allowDefaultNamespace
        imagePullSecrets image updateStrategy podAnnotations podSecurityContext securityContext
        resources nodeSelector affinity tolerations priorityClassName runtimeClassName devicePlugin
        gfd nfd mps cdi
    """,
    "aws-efa-k8s-device-plugin": """
        image securityContext supportedInstanceLabels resources nodeSelector updateStrategy
        tolerations additionalPodAnnotations additionalPodLabels nameOverride fullnameOverride
        imagePullSecrets
    """,
}
"""Top-level values read in NVIDIA/k8s-device-plugin v0.20.0 and aws/eks-charts v0.5.30 (2026-08)."""


def _values(chart: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return values


def _schema(chart: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CHARTS / chart / "values.schema.json").read_text())
    return schema


@pytest.mark.parametrize("chart", REAL_KEYS)
def test_keys_are_the_real_charts(chart: str) -> None:
    assert set(_values(chart)) == set(REAL_KEYS[chart].split())
    jsonschema.validate(_values(chart), _schema(chart))


@pytest.mark.parametrize(
    ("chart", "mistake"),
    [
        ("nvidia-device-plugin", {"toleration": []}),
        ("nvidia-device-plugin", {"image": {"repo": "mirror.example.org/plugin"}}),
        ("nvidia-device-plugin", {"mofedEnabled": "false"}),
        ("aws-efa-k8s-device-plugin", {"affinity": {}}),
        ("aws-efa-k8s-device-plugin", {"image": {"pullPolicy": "Always"}}),
        ("aws-efa-k8s-device-plugin", {"supportedInstanceLabels": {"value": []}}),
    ],
)
def test_unknown_values_are_refused(chart: str, mistake: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(mistake, _schema(chart))


@pytest.mark.parametrize(
    ("chart", "version", "app"),
    [("nvidia-device-plugin", "0.20.0", "v0.20.0"), ("aws-efa-k8s-device-plugin", "v0.5.30", "v0.5.20")],
)
def test_versions_are_the_real_charts(chart: str, version: str, app: str) -> None:
    metadata = yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())
    assert (metadata["name"], metadata["version"], metadata["appVersion"]) == (chart, version, app)
