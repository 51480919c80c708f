"""What every pod that moves weights has in common: container, environment, volumes and secrets. It owns no workload.

`weight_staging.py` runs it once on CPU nodes, `node_caches.py` on every GPU node. The program is
`payloads/stage_weights.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pulumi import Input, Output, Resource, ResourceOptions
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ContainerArgsDict,
    EnvVarArgsDict,
    Secret,
    SecretKeySelectorArgsDict,
    VolumeArgsDict,
    VolumeMountArgsDict,
)

from components import payloads
from planner.plan import Plan
from planner.platform_settings import EksPlatform
from planner.weight_settings import S3Source

HUB_WHEELS = "requirements-staging.txt"
S3_WHEELS = "requirements-staging-s3.txt"
DIRECTORY = "/weights"
"""Where the pod sees the folder it fills: the cache, or scratch space on the way to a bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What sources may ask for, as the user set it; None where it was not given. No other pod sees them."""

    hub_token: Output[str] | None = None
    s3_access_key_id: Output[str] | None = None
    s3_secret_access_key: Output[str] | None = None

    def of(self, *, hub: bool, s3: bool) -> dict[str, Output[str]]:
        """By the environment variable that brings it into the pod."""
        asked = {
            "HF_TOKEN": self.hub_token if hub else None,
            "AWS_ACCESS_KEY_ID": self.s3_access_key_id if s3 else None,
            "AWS_SECRET_ACCESS_KEY": self.s3_secret_access_key if s3 else None,
        }
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """From where to where: `source` and `target` are `hub` or `s3://bucket/prefix`, None the folder itself."""

    source: Input[str]
    target: Input[str] | None
    hub: bool
    s3: bool

    @property
    def wheels(self) -> tuple[str, ...]:
        """The lock files of what the program needs to reach both ends."""
        return (*((HUB_WHEELS,) if self.hub else ()), *((S3_WHEELS,) if self.s3 else ()))

    @property
    def files(self) -> dict[str, str]:
        """The program, and the lock files."""
        return payloads.sources("stage_weights", *self.wheels)


def install_and_run(wheels: Sequence[str]) -> str:
    """A shell line that installs the hash-locked wheels and becomes the program."""
    locks = " ".join(f"-r {payloads.MOUNT}/{name}" for name in wheels)
    return (
        "python -m pip install --retries 10 --quiet --no-cache-dir --disable-pip-version-check --require-hashes"
        f" --only-binary=:all: --target /packages {locks} && exec python -m payloads.stage_weights"
    )


def container(
    plan: Plan, move: Move, variables: Sequence[EnvVarArgsDict], resources: Mapping[str, Input[str]]
) -> ContainerArgsDict:
    """The container that moves one revision; requests are limits."""
    mounts: list[VolumeMountArgsDict] = [
        {"name": "weights", "mount_path": DIRECTORY},
        {"name": "payload", "mount_path": payloads.MOUNT, "read_only": True},
        {"name": "packages", "mount_path": "/packages"},
    ]
    return {
        "name": "stage",
        "image": plan.settings.staging.image,
        "command": ["sh", "-c", install_and_run(move.wheels)],
        "env": [*_environment(plan, move), *variables],
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        # Where the program could not write its verdict (pip failed, memory ran out), the log's end is shown.
        "termination_message_policy": "FallbackToLogsOnError",
        "security_context": {"allow_privilege_escalation": False, "capabilities": {"drop": ["ALL"]}},
        "volume_mounts": mounts,
    }


def volumes(script: ConfigMap) -> list[VolumeArgsDict]:
    """The volumes of the program and its wheels; the one named `weights` is the caller's."""
    return [
        {"name": "payload", "config_map": {"name": script.metadata.name}},
        {"name": "packages", "empty_dir": {}},
    ]


def secret_variables(
    name: str, values: Mapping[str, Output[str]], named: str, namespace: Input[str], parent: Resource
) -> list[EnvVarArgsDict]:
    """One Secret with the values, and the variables that read it; nothing where there is no value."""
    if not values:
        return []
    secret = Secret(
        name,
        metadata={"name": named, "namespace": namespace},
        string_data=dict(values),
        opts=ResourceOptions(parent=parent),
    )
    references: dict[str, SecretKeySelectorArgsDict] = {
        key: {"name": secret.metadata.name, "key": key} for key in values
    }
    return [{"name": key, "value_from": {"secret_key_ref": reference}} for key, reference in references.items()]


def variables(values: Mapping[str, Input[str]]) -> list[EnvVarArgsDict]:
    """Environment variables with plain values."""
    return [{"name": name, "value": value} for name, value in values.items()]


def _environment(plan: Plan, move: Move) -> list[EnvVarArgsDict]:
    settings, source = plan.settings, plan.settings.weights.source
    found: dict[str, Input[str]] = {
        "PYTHONPATH": f"{payloads.PYTHON_PATH}:/packages",
        "STAGE_REPOSITORY": plan.model.repository,
        "STAGE_REVISION": settings.weights.revision,
        "STAGE_DIRECTORY": DIRECTORY,
        "STAGE_SOURCE": move.source,
    }
    if move.target is not None:
        found["STAGE_TARGET"] = move.target
    if move.hub:
        found["HF_XET_HIGH_PERFORMANCE"] = "1"
        if settings.staging.hub_endpoint:
            found["HF_ENDPOINT"] = settings.staging.hub_endpoint
    if move.s3 and isinstance(settings.platform, EksPlatform):
        found["AWS_REGION"] = settings.platform.region
    if move.s3 and isinstance(source, S3Source) and source.endpoint:
        found["AWS_ENDPOINT_URL_S3"] = source.endpoint
    if settings.staging.package_index:
        found["PIP_INDEX_URL"] = settings.staging.package_index
    return variables(found)
