"""What the slow payload tests need and a checkout lacks: iperf3 and iproute2, and a Python that holds torch.

`python -m tests.payloads.tools` gets what is missing, or says what stands in the way; `make test-slow` runs it. The
Python is a virtual environment in the user's cache directory, named after its requirements: every clone shares it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements-torch.txt")
DEBIAN_PACKAGES = {"iperf3": "iperf3", "ip": "iproute2", "tc": "iproute2"}
"""Package by the program that is looked for."""
DISK_BYTES = 8 * 1000**3
"""4.0 GB installed (torch 2.13.0, measured), and the wheels while pip unpacks them."""


def torch_python() -> Path:
    """The interpreter that holds torch, whether it is there or not."""
    return _home() / "bin/python"


def torch_is_ready() -> bool:
    """True when the whole environment was installed."""
    return (_home() / ".complete").exists()


def missing_programs() -> list[str]:
    """Programs of DEBIAN_PACKAGES that are not on PATH."""
    return [program for program in DEBIAN_PACKAGES if not shutil.which(program)]


def main() -> None:
    """Get what is missing. What is in the way is said and no error: the tests that need it say so again."""
    for problem in filter(None, (install_programs(), install_torch())):
        print(problem, file=sys.stderr)


def install_programs() -> str | None:
    """Install the missing Debian packages; return what a person has to do instead, or None."""
    packages = sorted({DEBIAN_PACKAGES[program] for program in missing_programs()})
    if not packages:
        return None
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"The fabric tests need {' and '.join(packages)}: install them, for example with `sudo apt-get install`."
    print(f"Installing {' and '.join(packages)} for the fabric tests.")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"apt-get {command[0]} failed: {done.stderr.strip() or done.stdout.strip()}"
    return None


def install_torch() -> str | None:
    """Make the environment unless it is there; return what a person has to do instead, or None."""
    home = _home()
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f".{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if torch_is_ready():
            return None
        free = shutil.disk_usage(home.parent).free
        if free < DISK_BYTES:
            needed = f"{DISK_BYTES / 1e9:.0f} GB for torch in {home.parent}"
            return f"The fabric tests need {needed}: {free / 1e9:.1f} are free."
        print(f"Installing torch for the fabric tests into {home} (4 GB, a minute or two, once).")
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        install = [str(torch_python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--no-cache-dir", "--no-deps", "-r", str(REQUIREMENTS)], check=True)
        (home / ".complete").touch()
    return None


def _home() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    content = f"{sys.version_info[:2]}".encode() + REQUIREMENTS.read_bytes()
    return cache / "vllm-multinode" / f"torch-{hashlib.sha256(content).hexdigest()[:12]}"


if __name__ == "__main__":
    main()
