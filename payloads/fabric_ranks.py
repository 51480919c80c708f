"""What each rank does: prove that the sum is right, then time it, then prove it once more.

`torch.distributed.run` starts it, one process a GPU, for `payloads.fabric_run`. A rank writes how far it is into
`<FABRIC_RESULTS>/rank-<rank>.json`, and NCCL its log into `nccl-<rank>.log` beside it.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payloads.fabric_settings import ELEMENT_BYTES, ExitCode, FabricError, Settings

if TYPE_CHECKING:
    import torch

PERIOD = 4099
"""The pattern's length in elements: a prime, so that no chunk of a collective is a whole number of periods and a chunk
that went to the wrong place shows. Values and their sums stay below 2^24 for 4000 ranks: float32 holds them exactly."""


class Record:
    """The rank's own file; the agent reads the last state."""

    def __init__(self, folder: Path, rank: int) -> None:
        """Nothing is written before the first step."""
        self._path = folder / f"rank-{rank}.json"
        self._state: dict[str, Any] = {"rank": rank}

    def write(self, **state: str | int | list[float]) -> None:
        """Merge `state` and replace the file."""
        self._state |= state
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(self._state))
        draft.replace(self._path)


def main() -> int:
    """Run this rank and return its exit code."""
    settings = Settings.from_environment(os.environ)
    rank, folder = int(os.environ["RANK"]), Path(os.environ["FABRIC_RESULTS"])
    os.environ["NCCL_DEBUG_FILE"] = str(folder / f"nccl-{rank}.log")
    record = Record(folder, rank)
    record.write(step="rendezvous")
    try:
        run(settings, record)
    except FabricError as error:
        record.write(code=error.code, reason=str(error))
        return error.code
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        record.write(code=ExitCode.COLLECTIVE_FAILED, reason=f"{type(error).__name__}: {' '.join(lines[:3])}")
        raise
    return ExitCode.PASS


def run(settings: Settings, record: Record) -> None:
    """Join the group, check, measure, check.

    Raises:
        FabricError: GPU_COUNT or WRONG_SUM; whatever torch raises when the collective fails.
    """
    import torch
    from torch import distributed

    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if settings.backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    distributed.init_process_group(
        settings.backend,
        timeout=datetime.timedelta(seconds=settings.test_timeout),
        device_id=device if device.type == "cuda" else None,
    )
    try:
        if distributed.get_world_size() != settings.ranks:
            raise FabricError(
                ExitCode.GPU_COUNT, f"{distributed.get_world_size()} ranks met instead of {settings.ranks}"
            )
        buffer = torch.empty(settings.bytes // ELEMENT_BYTES, dtype=torch.float32, device=device)
        record.write(step="sum")
        check_sum(buffer)
        record.write(step="bandwidth")
        seconds = measure(buffer, settings.warm_up, settings.iterations)
        record.write(step="sum")
        check_sum(buffer)
        record.write(step="done", seconds=seconds)
    finally:
        distributed.destroy_process_group()


def check_sum(buffer: torch.Tensor) -> None:
    """Add a pattern that differs by rank and place over all ranks and compare every element exactly.

    Raises:
        FabricError: WRONG_SUM.
    """
    import torch
    from torch import distributed

    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    pattern = torch.arange(PERIOD, dtype=torch.float32, device=buffer.device)
    whole = buffer.numel() // PERIOD * PERIOD
    rows, rest = buffer[:whole].view(-1, PERIOD), buffer[whole:]
    rows.copy_((pattern + rank).expand_as(rows))
    rest.copy_((pattern + rank)[: rest.numel()])
    distributed.all_reduce(buffer)
    wanted = pattern * ranks + ranks * (ranks - 1) / 2
    wrong = int((rows != wanted).sum()) + int((rest != wanted[: rest.numel()]).sum())
    if not wrong:
        return
    differs = torch.cat([(rows != wanted).view(-1), rest != wanted[: rest.numel()]])
    first = int(differs.nonzero()[0])
    raise FabricError(
        ExitCode.WRONG_SUM,
        f"the all-reduce's sum is wrong on rank {rank}: {wrong} of {buffer.numel()} elements, the first at {first}: "
        f"{float(buffer[first]):g} instead of {float(wanted[first % PERIOD]):g}",
    )


def measure(buffer: torch.Tensor, warm_up: int, iterations: int) -> list[float]:
    """Time each all-reduce from a barrier to the slowest rank's end; return seconds, the same list on every rank."""
    import torch
    from torch import distributed

    seconds = []
    for _ in range(warm_up + iterations):
        buffer.zero_()  # sums of sums would leave the finite numbers
        distributed.barrier()
        _finish(buffer)
        started = time.perf_counter()
        distributed.all_reduce(buffer)
        _finish(buffer)
        seconds.append(time.perf_counter() - started)
    slowest = torch.tensor(seconds[warm_up:], dtype=torch.float64, device=buffer.device)
    distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
    return [float(value) for value in slowest.tolist()]


def _finish(buffer: torch.Tensor) -> None:
    import torch

    if buffer.is_cuda:
        torch.cuda.synchronize(buffer.device)


if __name__ == "__main__":
    sys.exit(main())
