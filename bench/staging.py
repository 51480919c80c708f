"""How fast staging moves bytes, checks included, beside parallel curl followed by sha256sum.

Both fetch the same files from the same server on this machine into the same file system, in turns; the table holds the
median of the rounds. Staging is timed from the start of its process to its end, interpreter, listing and fsync
included; curl and sha256sum (one process a core) leave the data in the page cache. "Without start" leaves out what
staging takes for a file of one byte. Xet is not involved: this is the plain HTTP path of the Hub client.

Run it as `python -m bench.staging`; it takes up to 8 GB of disk under --directory for a few minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.staging_server import REPOSITORY, REVISION
from payloads.staging_settings import model_directory

MEGABYTES = 256
CASES = (1, 4, 16)
MOST_MEMORY = 1.5e9
PROJECT = Path(__file__).parent.parent


def main() -> int:
    """Measure every case; return 1 when the payload took more memory than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the files go (default: the system's temporary directory)")
    parser.add_argument("--rounds", type=int, default=3, help="of each kind in each case (default: 3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory, prefix="bench-staging-") as name:
        root = Path(name)
        need = (max(CASES) + 1) * MEGABYTES * 10**6 + 1024**3
        if shutil.disk_usage(root).free < need:
            print(f"{root} has less than {need / 1e9:.1f} GB free; name another --directory")
            return 1
        start, _ = _median_of_staging(root, 1, 1, arguments.rounds)
        print(f"start of the process and one byte: {start:.2f} s\n")
        print("files  GB   staging GB/s  curl GB/s  ratio  without start  peak memory GB")
        most = 0.0
        for count in CASES:
            most = max(most, _case(root, count, arguments.rounds, start))
    return 0 if most <= MOST_MEMORY else 1


def _case(root: Path, count: int, rounds: int, start: float) -> float:
    staging: list[float] = []
    curl: list[float] = []
    memory = 0.0
    with _served(root, MEGABYTES * 10**6, count) as (url, sha256):
        for _ in range(rounds):
            seconds, used = _stage(root, url)
            staging.append(seconds)
            memory = max(memory, used)
            curl.append(_fetch(root, url, count, sha256))
    gigabytes = count * MEGABYTES / 1e3
    ours, theirs = statistics.median(staging), statistics.median(curl)
    print(
        f"{count:5}  {gigabytes:4.2f}  {gigabytes / ours:11.2f}  {gigabytes / theirs:9.2f}  {theirs / ours:5.2f}"
        f"  {theirs / (ours - start):13.2f}  {memory / 1e9:14.2f}",
        flush=True,
    )
    return memory


def _median_of_staging(root: Path, size: int, count: int, rounds: int) -> tuple[float, float]:
    with _served(root, size, count) as (url, _):
        runs = [_stage(root, url) for _ in range(rounds)]
    return statistics.median(seconds for seconds, _ in runs), max(memory for _, memory in runs)


@contextmanager
def _served(root: Path, size: int, count: int) -> Iterator[tuple[str, str]]:
    """Serve `count` files of `size` bytes; yields the address and the SHA-256 of each."""
    content = root / "content"
    data = os.urandom(size)
    content.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    del data
    command = [sys.executable, "-m", "bench.staging_server", str(content), str(count), sha256]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as server:
        assert server.stdout is not None  # noqa: S101  asked for above
        try:
            yield server.stdout.readline().strip(), sha256
        finally:
            server.kill()


@contextmanager
def _empty(root: Path) -> Iterator[Path]:
    """A directory for one run; what the run before left is written out first."""
    target = root / "target"
    target.mkdir()
    os.sync()
    try:
        yield target
    finally:
        shutil.rmtree(target)


def _stage(root: Path, url: str) -> tuple[float, float]:
    """Run the payload; return seconds and peak memory in bytes."""
    with _empty(root) as target:
        environment = {
            "PATH": os.environ["PATH"],
            "STAGE_REPOSITORY": REPOSITORY,
            "STAGE_REVISION": REVISION,
            "STAGE_DIRECTORY": str(target),
            "STAGE_TERMINATION_LOG": str(target / "termination-log"),
            "HF_ENDPOINT": url,
        }
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "payloads.stage_weights"],
            env=environment,
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        memory = _watch_memory(process)
        seconds = time.perf_counter() - started
        output = process.communicate()[0]
        if process.returncode or not (target / model_directory(REPOSITORY, REVISION) / ".complete").exists():
            raise SystemExit(f"staging failed:\n{output}")
    return seconds, memory


def _watch_memory(process: subprocess.Popen[str]) -> float:
    """Wait for the process; return the most memory that it and its children held at once, in bytes."""
    most = 0.0
    while process.poll() is None:
        most = max(most, sum(map(_resident, _family(process.pid))))
        time.sleep(0.02)
    return most


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(member for child in children for member in _family(int(child)))]


def _resident(pid: int) -> float:
    """Proportional set size: pages that processes share are counted once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0.0)


def _fetch(root: Path, url: str, count: int, sha256: str) -> float:
    """Run curl and sha256sum; return seconds."""
    with _empty(root) as target:
        names = [f"model-{number:05}.safetensors" for number in range(1, count + 1)]
        transfers = [word for name in names for word in ("-o", str(target / name), f"{url}/content/{name}")]
        started = time.perf_counter()
        subprocess.run(
            ["curl", "--silent", "--fail", "--parallel", "--parallel-max", "16", *transfers],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        sums = subprocess.run(
            ["xargs", "-P", str(os.cpu_count()), "-n", "1", "sha256sum"],
            input="\n".join(str(target / name) for name in names),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        seconds = time.perf_counter() - started
        if [line.split()[0] for line in sums.splitlines()] != [sha256] * count:
            raise SystemExit("sha256sum found other content than was sent")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
