"""What one node brings to the test: its GPUs, its fabric devices, its versions."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from payloads.fabric_settings import ExitCode, FabricError, Settings

NVIDIA_SMI = ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
VERSIONS_PROGRAM = """\
import json, torch
nccl = torch.cuda.nccl.version() if torch.distributed.is_nccl_available() else ()
print(json.dumps({"torch": torch.__version__, "nccl": ".".join(map(str, nccl))}))
"""
PROGRAM_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What was found; text is empty where there is nothing of the kind."""

    gpu: str = ""
    driver: str = ""
    nccl: str = ""
    torch: str = ""


def inspect(settings: Settings) -> Node:
    """Check GPUs, then fabric devices, then that torch imports, and return the versions.

    Raises:
        FabricError: GPU_COUNT, FABRIC_DEVICES or VERSIONS_DIFFER.
    """
    gpu, driver = _gpus(settings) if settings.backend == "nccl" else ("", "")
    if settings.kind != "none":
        require_devices(settings.kind, settings.nics, Path(settings.root))
    versions = json.loads(_run((sys.executable, "-c", VERSIONS_PROGRAM), ExitCode.VERSIONS_DIFFER))
    return Node(gpu=gpu, driver=driver, nccl=versions["nccl"], torch=versions["torch"])


def _gpus(settings: Settings) -> tuple[str, str]:
    lines = _run(NVIDIA_SMI, ExitCode.GPU_COUNT).strip().splitlines()
    if len(lines) != settings.gpus:
        raise FabricError(
            ExitCode.GPU_COUNT,
            f"{len(lines)} GPUs are visible instead of {settings.gpus}: does the pod ask for nvidia.com/gpu: "
            f"{settings.gpus}, and does the node's device plugin count all of them as healthy?",
        )
    name, _, driver = lines[0].partition(", ")
    return name, driver


def require_devices(kind: str, wanted: int, root: Path) -> None:
    """Check that the container has the devices: `/dev/infiniband/uverbs*`, of the right driver, and active.

    Raises:
        FabricError: FABRIC_DEVICES, with what was found instead.
    """
    problems: dict[str, str | None] = {}
    for device in (root / "dev/infiniband").glob("uverbs*"):
        verbs = root / "sys/class/infiniband_verbs" / device.name
        problems[device.name] = _efa_problem(verbs) if kind == "efa" else _hca_problem(verbs, root)
    failed = [f"{name}: {problem}" for name, problem in sorted(problems.items()) if problem]
    found = len(problems) - len(failed)
    if found >= wanted:
        return
    what, resource = ("EFA devices", "vpc.amazonaws.com/efa") if kind == "efa" else ("active InfiniBand HCAs", "rdma/…")
    others = f"; not counted: {', '.join(failed[:4])}" if failed else ""
    raise FabricError(
        ExitCode.FABRIC_DEVICES,
        f"{found} {what} are in the container instead of {wanted}{others}. "
        f"Does the pod ask for {resource}, and does the fabric's device plugin run on this node?",
    )


def _efa_problem(verbs: Path) -> str | None:
    # An EFA port's link layer is Unspecified: only the driver tells.
    try:
        driver = (verbs / "device/driver").resolve(strict=True).name
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    return None if driver == "efa" else f"driver {driver}"


def _hca_problem(verbs: Path, root: Path) -> str | None:
    try:
        name = (verbs / "ibdev").read_text().strip()
        port = root / "sys/class/infiniband" / name / "ports/1"
        layer = (port / "link_layer").read_text().strip()
        state = (port / "state").read_text().strip()
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    if layer != "InfiniBand":
        return f"{name} is {layer}"
    return None if state.endswith("ACTIVE") else f"{name} is {state.partition(': ')[2] or state}"


def _run(command: tuple[str, ...], code: ExitCode) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FabricError(code, f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise FabricError(code, f"{Path(command[0]).name} {command[1]} ended with status {done.returncode}: {last}")
    return done.stdout
