"""The memory fit, held against the published size of the checkpoint and against logs of real runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import memory, overhead, weights
from planner.attention import GroupedQueryAttention
from planner.catalogue.kimi import KIMI_K2_5
from planner.hardware import H100, H200
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism

LOAD = Load(gpu_memory_utilization=0.90, max_model_len=131_072, max_num_seqs=64, max_num_batched_tokens=8192)
TEXT_ONLY = replace(KIMI_K2_5, architecture=replace(KIMI_K2_5.architecture, vision=None))


def fit(model: Model = KIMI_K2_5, gib: float = H100.usable_gib, tp: int = 8, pp: int = 2, load: Load = LOAD) -> Fit:
    return memory.fit(model, replace(H100, usable_gib=gib), Parallelism(tp, pp), load)


def test_the_architecture_adds_up_to_the_published_checkpoint() -> None:
    assert weights.checkpoint_bytes(KIMI_K2_5) == pytest.approx(KIMI_K2_5.checkpoint_bytes, rel=1e-4)


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [
        (61, 1, (61,)),
        (61, 2, (31, 30)),
        (61, 4, (15, 15, 16, 15)),
        (62, 4, (15, 16, 16, 15)),
        (63, 4, (16, 16, 16, 15)),
        (64, 4, (16, 16, 16, 16)),
        (78, 8, (9, 10, 10, 10, 10, 10, 10, 9)),
    ],
)
def test_layers_left_over_go_to_the_stages_before_the_last(layers: int, stages: int, expected: tuple[int, ...]) -> None:
    assert weights.layers_per_stage(layers, stages) == expected


def test_weights_of_two_p5_nodes_are_36_4_and_35_4_gib_per_gpu() -> None:
    first, last = fit().stages
    assert (first.layers, last.layers) == (31, 30)
    assert first.weights_gib == pytest.approx(36.4, rel=0.03)
    assert last.weights_gib == pytest.approx(35.4, rel=0.03)


def test_two_p5_nodes_leave_0_70_to_0_95_million_kv_tokens() -> None:
    assert fit().fits
    assert 700_000 < fit().kv_tokens < 950_000


def test_one_p5_node_does_not_hold_the_weights() -> None:
    single = fit(pp=1)
    assert not single.loads
    assert not single.fits
    assert single.kv_tokens == 0


def test_one_p5en_node_holds_the_model_and_full_length_requests() -> None:
    assert fit(gib=H200.usable_gib, pp=1).concurrent_requests > 5


# Published logs of vLLM: "Model loading took", "Available KV cache memory", "GPU KV cache size".
def test_kv_tokens_are_within_6_percent_of_kimi_k2_thinking_on_8_h200() -> None:
    load = replace(LOAD, max_model_len=262_144, max_num_seqs=1024)
    assert fit(TEXT_ONLY, H200.usable_gib, 8, 1, load).kv_tokens == pytest.approx(715_072, rel=0.06)


def test_weights_are_within_1_percent_of_kimi_k2_6_on_8_h200() -> None:
    assert fit(TEXT_ONLY, 140.40, 8, 1).stages[0].weights_gib == pytest.approx(71.16, rel=0.01)


def test_kv_memory_is_within_1_gib_of_kimi_k2_6_on_8_h200_with_one_sequence() -> None:
    load = replace(LOAD, gpu_memory_utilization=0.60, max_num_seqs=1)
    assert fit(TEXT_ONLY, 140.40, 8, 1, load).stages[0].kv_gib == pytest.approx(9.84, abs=1.0)


def test_one_moe_layer_is_as_large_as_measured_on_one_h200() -> None:
    """9.14 GiB a layer, measured with dummy weights on one H200 (vLLM 0.24.0)."""
    shorter = replace(TEXT_ONLY, architecture=replace(TEXT_ONLY.architecture, layers=60))
    full, less = (weights.stage_bytes(model, Parallelism(1, 1))[0] for model in (TEXT_ONLY, shorter))
    assert (full - less) / 1024**3 == pytest.approx(9.14, rel=0.005)


def test_mla_keeps_its_cache_whole_on_every_rank() -> None:
    stages = {tensor: fit(tp=tensor, pp=1).stages[0] for tensor in (8, 16)}
    assert stages[8].cache.bytes_per_token == stages[16].cache.bytes_per_token == 61 * 576 * 2


@pytest.mark.parametrize(("tensor", "values"), [(1, 2 * 8 * 128), (4, 2 * 2 * 128), (8, 2 * 128), (16, 2 * 128)])
def test_gqa_splits_its_cache_until_there_is_one_kv_head_a_rank(tensor: int, values: int) -> None:
    assert GroupedQueryAttention(heads=32, kv_heads=8, head_dim=128).kv_bytes_per_token(tensor, 2) == 2 * values


def test_the_largest_phase_of_the_profiling_run_counts() -> None:
    """The sampler comes after the forward pass, and only on the last stage; it counts where it is larger."""
    many = replace(LOAD, max_num_seqs=1024, max_num_batched_tokens=1024)
    first, last = ({term.name for term in stage.overhead} for stage in fit(load=many).stages)
    assert "sampler" in last - first
    assert "activations" in {term.name for term in fit().stages[-1].overhead}


def test_the_tightest_stage_decides() -> None:
    result = fit()
    assert result.kv_tokens == min(stage.kv_tokens for stage in result.stages)


def test_weights_overhead_and_cache_make_up_the_budget() -> None:
    for stage in fit().stages:
        assert stage.weights_gib + stage.overhead_gib + stage.kv_gib == pytest.approx(0.90 * 79.65)


def test_a_request_longer_than_the_free_tokens_does_not_fit() -> None:
    tight = fit(gib=42.0 / 0.9)
    assert tight.loads
    assert not tight.fits


@pytest.mark.parametrize(("sequences", "sizes"), [(1, 3), (2, 5), (32, 18), (64, 30), (256, 86), (1024, 102)])
def test_captured_batch_sizes_follow_vllm(sequences: int, sizes: int) -> None:
    assert overhead.captured_batch_sizes(sequences) == sizes
