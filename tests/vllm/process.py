"""Asks the Python that holds vLLM: one module of `tests.vllm`, run there in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests import tools

ROOT = Path(__file__).resolve().parents[2]
ANSWER_SECONDS = 900


def answer(module: str, question: object = None) -> Any:
    """The JSON that the module writes into the file it is given; `question` is its standard input, as JSON.

    Raises FileNotFoundError where the environment was not made, RuntimeError with what the module printed if it fails.
    """
    if not tools.vllm_is_ready():
        raise FileNotFoundError("no vLLM: run `python -m tests.tools`")
    with tempfile.NamedTemporaryFile() as file:
        done = subprocess.run(
            [str(tools.vllm_python()), "-m", module, file.name],
            cwd=ROOT,
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS,
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"},
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-4000:])
        return json.load(file)
