"""Processes that move bytes for staging, and the watch over them.

A process, since only a process can be ended when a transfer hangs, and since one Python process cannot fill a fast
link. A worker sends the path of each file that it finished, the number of bytes that it moved since the last message
(where nothing else shows them), and at the end None, or what went wrong.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from payloads.staging_settings import ExitCode, StagingError

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(64 * 1024**2), "MALLOC_TRIM_THRESHOLD_": str(128 * 1024**2)}
"""glibc gives buffers of the Hub client's 10 MiB back to the kernel and takes them anew for each piece: kept, 1.07 GB
take 0.8 instead of 1.6 s of the kernel's time, and no more memory (huggingface_hub 2.4.0, 4 files, 2026-12-01).
"""

Outcome = tuple[ExitCode, str, float]
Message = str | int | Outcome | None
Body = Callable[[Connection], None]
"""What a worker does; has to be picklable."""


def run_workers(
    bodies: Sequence[Body],
    received: Callable[[str | int], None],
    watch: Callable[[], StagingError | None],
    poll_seconds: float,
) -> StagingError | None:
    """Run all bodies at once until they end, one fails, or `watch`, called again and again, returns an error.

    No worker is left when this returns or raises.
    """
    running = dict(map(_start, bodies))
    everyone = [*running.values()]
    try:
        while running:
            for receiver in wait([*running], timeout=poll_seconds):
                assert isinstance(receiver, Connection)  # noqa: S101  for the type checker: nothing else is waited for
                if failure := _receive(receiver, running, received):
                    return failure
            if failure := watch():
                return failure
    finally:
        for process in everyone:
            process.kill()
        for process in everyone:
            process.join()
    return None


def outcome_of(failure: StagingError) -> Outcome:
    """Return a failure in the form in which a worker sends it."""
    return failure.code, str(failure), failure.retry_after


def _start(body: Body) -> tuple[Connection, BaseProcess]:
    os.environ.update(ALLOCATOR)  # read when a process starts
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(body, sender), daemon=True)
    process.start()
    sender.close()  # so that the worker's death shows as the end of the pipe
    return receiver, process


def _run(body: Body, sender: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    body(sender)


def _end_with_parent() -> None:
    """A worker that outlives the staging process would write beside the next one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(ExitCode.INTERRUPTED)


def _receive(
    receiver: Connection, running: dict[Connection, BaseProcess], received: Callable[[str | int], None]
) -> StagingError | None:
    try:
        message: Message = receiver.recv()
    except EOFError:
        process = running.pop(receiver)
        process.join()
        return StagingError(ExitCode.UNEXPECTED, f"a worker died with status {process.exitcode} (-9: out of memory?)")
    if isinstance(message, str | int):
        received(message)
        return None
    running.pop(receiver)
    return StagingError(*message) if message else None
