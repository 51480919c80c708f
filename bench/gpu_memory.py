"""What the real vLLM takes of one GPU: `python -m bench.gpu_memory [MODEL[/LAYERS[/TOKENS[/SEQUENCES[/LENGTH]]]]...]`.

Each case starts vLLM in a process of its own, with dummy weights and a hand-written config.json, and prints one
JSON line: GiB of weights, of KV cache, of the profiling run's terms and of CUDA graphs. Needs a CUDA GPU, vLLM and
no network. It proves what one rank takes (tensor parallel 1): no NCCL, and no more layers than one GPU holds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.checkpoint_configs import config
from planner.catalogue import CATALOGUE

UTILIZATION = 0.9
# Layers, batched tokens, sequences, length.
DEFAULTS = (4, 8192, 64, 32768)
LIMIT_SECONDS = 400
# Model, layers, batched tokens, sequences, length: one of each architecture, two token budgets of each.
CASES = (
    "llama-3.1-8b-instruct/32/8192/256/32768",
    "kimi-k2-thinking/6/8192/64/131072",
    "kimi-k2-thinking/6/32768/64/131072",
    "qwen3-235b-a22b-instruct-2507/6/8192/64/131072",
    "qwen3-235b-a22b-instruct-2507/6/32768/64/131072",
    "minimax-m2.5/8/8192/64/131072",
    "glm-5-fp8/5/8192/64/131072",
    "glm-5-fp8/5/32768/64/131072",
    "qwen3.5-35b-a3b/4/8192/64/131072",
    "qwen3.5-35b-a3b/4/32768/64/131072",
)
# Prebuilt kernels in place of those that nvcc would compile for minutes: sampler, FP8 linear layers, gated delta rule.
PREBUILT = {
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_DISABLED_KERNELS": "FlashInferFp8DeepGEMMDynamicBlockScaledKernel,DeepGemmFp8BlockScaledMMKernel",
    "VLLM_DEEP_GEMM_WARMUP": "skip",
}
_NUMBER = r"([\d,.]+)"
PATTERNS = {
    "weights_gib": rf"Model loading took {_NUMBER} ?GiB",
    "kv_gib": rf"Available KV cache memory: {_NUMBER} ?GiB",
    "kv_tokens": rf"GPU KV cache size: {_NUMBER} tokens",
    "non_kv_gib": rf"Total non KV cache memory: {_NUMBER} ?GiB",
    "torch_peak_gib": rf"torch peak memory increase: {_NUMBER} ?GiB",
    "non_torch_gib": rf"non-torch forward increase memory: {_NUMBER} ?GiB",
    "graphs_gib": r"Graph capturing finished in \d+ secs, took (-?[\d.]+) GiB",
    "graphs_estimate_gib": r"(?:Estimated CUDA graph memory|CUDA graph memory.*?estimate\w*):? (-?[\d.]+) GiB",
    "total_gib": rf"total_memory={_NUMBER}GiB|{_NUMBER} GiB total",
}
_CHILD = """
import json, sys
from vllm import LLM
LLM(model=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, **json.loads(sys.argv[2]))
"""


def measure(case: str) -> dict[str, Any]:
    """Run one case; without a figure where vLLM printed none."""
    name, *numbers = case.split("/")
    given = [int(number) for number in numbers]
    layers, tokens, sequences, length = (*given, *DEFAULTS[len(given) :])
    model = CATALOGUE[name]
    options: dict[str, Any] = {
        "gpu_memory_utilization": UTILIZATION,
        "max_num_batched_tokens": tokens,
        "max_num_seqs": sequences,
        "max_model_len": length,
    }
    if model.architecture.vision is not None:
        options["language_model_only"] = True
    if model.architecture.linear_attention is not None:
        options["gdn_prefill_backend"] = "triton"
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config(model, layers)), encoding="utf-8")
        log, status = _run([sys.executable, "-c", _CHILD, folder, json.dumps(options)])
    _keep(case, log)
    seconds = round(time.monotonic() - started)
    return {"model": name, "layers": layers, **options, **figures(log), "status": status, "seconds": seconds}


def figures(log: str) -> dict[str, float]:
    """What vLLM printed, by the names of PATTERNS."""
    found = {key: match for key, pattern in PATTERNS.items() if (match := re.search(pattern, log))}
    return {key: float(next(filter(None, match.groups())).replace(",", "")) for key, match in found.items()}


def _run(command: list[str]) -> tuple[str, int]:
    environment = {
        **os.environ,
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "HF_HUB_OFFLINE": "1",
        **PREBUILT,
    }
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        return output if isinstance(output, str) else output.decode(), -1
    return done.stdout, done.returncode


def _keep(case: str, log: str) -> None:
    """The whole log, for what the patterns miss."""
    folder = Path(os.environ.get("OUT", "."))
    (folder / f"{case.replace('/', '_')}.log").write_text(log, encoding="utf-8")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or CASES:
        print(json.dumps(measure(wanted)), flush=True)
