"""What bench/gpu_memory.py makes of a case, without GPU and vLLM: it does not prove that vLLM takes the config."""

from __future__ import annotations

import json

import pytest

from bench.checkpoint_configs import config
from bench.gpu_memory import CASES, figures
from planner.catalogue import CATALOGUE
from planner.checkpoint_config import read

# Lines of vLLM 0.24.0 for GLM-5 with 5 layers on one H200, 2026-12-01.
LOG = """
DEBUG [gpu_worker.py:343] worker init memory snapshot: torch_peak=0.0GiB, free_memory=139.29GiB, total_memory=139.8GiB
INFO [gpu_model_runner.py:5255] Model loading took 24.05 GiB memory and 2.150737 seconds
INFO [gpu_model_runner.py:6588] Estimated CUDA graph memory: 0.13 GiB total
DEBUG [gpu_worker.py:507] Memory profiling takes 55.89 seconds. Total non KV cache memory: 30.86GiB; \
torch peak memory increase: 6.58GiB; non-torch forward increase memory: 0.23GiB; weights memory: 24.05GiB.
INFO [gpu_worker.py:508] Available KV cache memory: 94.83 GiB
INFO [kv_cache_utils.py:2146] GPU KV cache size: 15,859,648 tokens
INFO [gpu_model_runner.py:6656] Graph capturing finished in 8 secs, took 0.14 GiB
"""


def test_every_figure_is_found_in_a_log_of_vllm() -> None:
    assert figures(LOG) == {
        "weights_gib": 24.05,
        "kv_gib": 94.83,
        "kv_tokens": 15_859_648,
        "non_kv_gib": 30.86,
        "torch_peak_gib": 6.58,
        "non_torch_gib": 0.23,
        "graphs_gib": 0.14,
        "graphs_estimate_gib": 0.13,
        "total_gib": 139.8,
    }
    assert figures("Traceback (most recent call last)") == {}


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_a_model_whose_config_comes_back_as_its_architecture(case: str) -> None:
    name, layers, *rest = case.split("/")
    assert len(rest) == 3
    model = CATALOGUE[name]
    found = read(json.loads(json.dumps(config(model, int(layers))))).architecture
    assert found.layers == int(layers)
    assert found.attention == model.architecture.attention
    assert found.linear_attention == model.architecture.linear_attention
    assert (found.hidden, found.vocabulary) == (model.architecture.hidden, model.architecture.vocabulary)
