"""Stand-ins for what a node of the real cluster has: sysfs entries of fabric devices, nvidia-smi, and torch's version.

They show what the payload makes of an answer, not that real hardware gives it.
"""

from __future__ import annotations

from pathlib import Path


def add_device(root: Path, number: int, *, driver: str, layer: str, state: str = "4: ACTIVE") -> None:
    """Lay `uverbs<number>` under root/dev and root/sys, as the kernel and a device plugin do."""
    name = f"rdmap{number}s0" if driver == "efa" else f"mlx5_{number}"
    device, verbs = root / "sys/devices" / name, root / "sys/class/infiniband_verbs" / f"uverbs{number}"
    port = root / "sys/class/infiniband" / name / "ports/1"
    for folder in (device, verbs, port, root / "dev/infiniband", root / "sys/bus/pci/drivers" / driver):
        folder.mkdir(parents=True, exist_ok=True)
    (device / "driver").symlink_to(root / "sys/bus/pci/drivers" / driver)
    (verbs / "device").symlink_to(device)
    (verbs / "ibdev").write_text(f"{name}\n")
    (port / "link_layer").write_text(f"{layer}\n")
    (port / "state").write_text(f"{state}\n")
    (root / "dev/infiniband" / f"uverbs{number}").touch()


def nvidia_smi(folder: Path, lines: list[str], status: int = 0) -> None:
    """A program of that name that prints these lines."""
    program = folder / "nvidia-smi"
    printed = "".join(f"echo '{line}'\n" for line in lines)
    program.write_text(f"#!/bin/sh\n{printed}exit {status}\n")
    program.chmod(0o755)


def torch_of_version(folder: Path, version: str, nccl: tuple[int, ...] = (2, 29, 7)) -> str:
    """A module named torch that knows its versions only; returns the PYTHONPATH that finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "torch.py").write_text(
        "from types import SimpleNamespace\n"
        f"__version__ = {version!r}\n"
        "distributed = SimpleNamespace(is_nccl_available=lambda: True)\n"
        f"cuda = SimpleNamespace(nccl=SimpleNamespace(version=lambda: {nccl!r}))\n"
    )
    return str(folder)
