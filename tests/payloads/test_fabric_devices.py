"""What a node brings, read from a made-up /dev and /sys and a stand-in for nvidia-smi.

Neither proves what a real container of an EFA or InfiniBand device plugin shows; the files are laid as the kernel's
Documentation/ABI (sysfs-class-infiniband, -infiniband_verbs) describes them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from payloads.fabric_devices import inspect, require_devices
from payloads.fabric_settings import ExitCode, FabricError, Settings
from tests.payloads.fabric_stand_ins import add_device, nvidia_smi


def refusal(kind: str, wanted: int, root: Path) -> str:
    """The message that refuses the devices."""
    with pytest.raises(FabricError) as caught:
        require_devices(kind, wanted, root)
    assert caught.value.code == ExitCode.FABRIC_DEVICES
    return str(caught.value)


def test_all_efa_devices_are_there(tmp_path: Path) -> None:
    for number in range(32):
        add_device(tmp_path, number, driver="efa", layer="Unspecified")
    require_devices("efa", 32, tmp_path)


def test_one_efa_device_is_missing(tmp_path: Path) -> None:
    for number in range(31):
        add_device(tmp_path, number, driver="efa", layer="Unspecified")
    assert "31 EFA devices are in the container instead of 32" in refusal("efa", 32, tmp_path)


def test_a_device_of_another_driver_is_not_efa(tmp_path: Path) -> None:
    add_device(tmp_path, 0, driver="mlx5_core", layer="InfiniBand")
    assert "0 EFA devices are in the container instead of 1; not counted: uverbs0: driver mlx5_core" in refusal(
        "efa", 1, tmp_path
    )


def test_a_device_that_only_sysfs_shows_does_not_count(tmp_path: Path) -> None:
    """Sysfs shows the node's devices in every container; the device plugin decides which the container may open."""
    add_device(tmp_path, 0, driver="efa", layer="Unspecified")
    (tmp_path / "dev/infiniband/uverbs0").unlink()
    message = refusal("efa", 1, tmp_path)
    assert "0 EFA devices are in the container instead of 1." in message
    assert "vpc.amazonaws.com/efa" in message


def test_active_infiniband_is_good(tmp_path: Path) -> None:
    for number in range(8):
        add_device(tmp_path, number, driver="mlx5_core", layer="InfiniBand")
    add_device(tmp_path, 8, driver="mlx5_core", layer="Ethernet")  # the host's own network card
    require_devices("infiniband", 8, tmp_path)


@pytest.mark.parametrize(
    ("layer", "state", "reason"),
    [
        ("Ethernet", "4: ACTIVE", "uverbs0: mlx5_0 is Ethernet"),
        ("InfiniBand", "1: DOWN", "uverbs0: mlx5_0 is DOWN"),
        ("InfiniBand", "2: INIT", "uverbs0: mlx5_0 is INIT"),
    ],
)
def test_what_is_no_active_infiniband(tmp_path: Path, layer: str, state: str, reason: str) -> None:
    add_device(tmp_path, 0, driver="mlx5_core", layer=layer, state=state)
    message = refusal("infiniband", 1, tmp_path)
    assert f"0 active InfiniBand HCAs are in the container instead of 1; not counted: {reason}" in message


def test_a_device_without_sysfs_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    (tmp_path / "dev/infiniband/uverbs3").touch()
    assert "uverbs3: No such file or directory" in refusal("infiniband", 1, tmp_path)


def settings(gpus: int) -> Settings:
    """One node of so many GPUs."""
    return Settings.from_environment({"FABRIC_NODES": "1", "FABRIC_GPUS": str(gpus), "FABRIC_KIND": "none"})


@pytest.mark.parametrize("there", [0, 7, 9])
def test_wrong_number_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int) -> None:
    nvidia_smi(tmp_path, ["NVIDIA H100 80GB HBM3, 580.159.03"] * there)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(FabricError, match=f"{there} GPUs are visible instead of 8") as caught:
        inspect(settings(8))
    assert caught.value.code == ExitCode.GPU_COUNT


def test_a_driver_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, ["Failed to initialize NVML: Driver/library version mismatch"], status=18)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(FabricError, match="Driver/library version mismatch") as caught:
        inspect(settings(8))
    assert caught.value.code == ExitCode.GPU_COUNT


def test_no_driver_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FabricError, match="nvidia-smi cannot be run") as caught:
        inspect(settings(8))
    assert caught.value.code == ExitCode.GPU_COUNT
