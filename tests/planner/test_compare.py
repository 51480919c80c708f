"""The comparison: the fewest GPUs that hold a model, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.alternatives import study_gpus
from planner.compare import COMPARED, COMPARED_GPUS, Row, checkpoints, rows, smallest_by_family
from planner.overhead import Load
from planner.settings import Serving
from planner.throughput import Throughput

LOAD = Load.of(Serving())
ALL = tuple(rows(checkpoints(COMPARED), LOAD))
BEST = {(row.model.family, row.gpu.key): row for row in smallest_by_family(ALL)}


def test_each_of_the_seven_models_stands_beside_each_gpu() -> None:
    assert set(BEST) == {(family, gpu.key) for family in COMPARED for gpu in COMPARED_GPUS}


@pytest.mark.parametrize(
    ("family", "gpu", "gpus", "split", "instance", "usd"),
    [
        ("kimi-k2.5", "h100-80gb", 16, (8, 2), "p5.48xlarge", 110.08),
        ("kimi-k2.5", "h200-141gb", 8, (8, 1), "p5en.48xlarge", 63.296),
        ("glm-5", "h100-80gb", 16, (8, 2), "p5.48xlarge", 110.08),
        ("glm-5", "h200-141gb", 8, (8, 1), "p5en.48xlarge", 63.296),
        ("minimax-m2.5", "h100-80gb", 4, (4, 1), "p5.48xlarge", 55.04),
        ("llama-3.1-8b-instruct", "h100-80gb", 1, (1, 1), "p5.4xlarge", 6.88),
    ],
)
def test_the_smallest_shape_of_a_model(
    family: str, gpu: str, gpus: int, split: tuple[int, int], instance: str, usd: float
) -> None:
    row = BEST[family, gpu]
    assert row.fit is not None
    assert row.instance is not None
    assert (row.gpus, (row.fit.tensor_parallel, row.fit.pipeline_parallel)) == (gpus, split)
    assert (row.instance.name, row.usd_per_hour) == (instance, usd)


def test_half_of_the_gpus_never_do() -> None:
    for row in ALL:
        if row.fit is not None and row.gpus > 1:
            per_node, nodes = (row.gpus // 2, 1) if row.gpus <= 16 else (8, row.gpus // 8 - 1)
            fewer = study_gpus(row.model, row.gpu, per_node, nodes, row.load)
            assert fewer is None or not fewer.fits, row


def test_the_instances_hold_the_gpus() -> None:
    for row in ALL:
        if row.instance is not None:
            assert row.instance.gpu is row.gpu
            assert row.instance.gpus * row.nodes >= row.gpus


def test_no_request_is_longer_than_the_models_context() -> None:
    original = next(row for row in ALL if row.model.name == "qwen3-235b-a22b")
    assert original.load.max_model_len == original.model.context_tokens < LOAD.max_model_len


def test_a_format_without_kernels_is_never_the_smallest_where_another_runs() -> None:
    assert BEST["glm-5", "h100-80gb"].model.precision == "fp8"
    assert BEST["glm-5", "b200-180gb"].model.precision == "nvfp4"
    assert BEST["glm-5", "a100-80gb"].fit is None


def test_a_million_tokens_have_a_price_only_at_a_stated_throughput() -> None:
    said = Throughput(tokens_per_second=2400, source="ours", model="kimi-k2.5", instance="p5.48xlarge")
    found = {row.gpu.key: row for row in rows(checkpoints(("kimi-k2.5",)), LOAD, (said,)) if row.stated}
    assert set(found) == {"h100-80gb"}
    assert found["h100-80gb"].usd_per_million == pytest.approx(110.08 / (2400 * 3600) * 1e6)
    assert all(row.usd_per_million is None for row in ALL)


def test_a_model_that_four_nodes_do_not_hold_has_no_shape() -> None:
    row: Row = next(rows(checkpoints(("kimi-k2.5",)), replace(LOAD, gpu_memory_utilization=0.05)))
    assert (row.fit, row.gpus, row.usd_per_hour, row.usd_per_million) == (None, 0, None, None)


def test_what_does_not_run_has_neither_shape_nor_price() -> None:
    unable = [row for row in ALL if row.runs.verdict == "no"]
    assert {(row.model.precision, row.gpu.key) for row in unable} >= {
        ("nvfp4", gpu) for gpu in ("a100-80gb", "h100-80gb", "h200-141gb")
    }
    for row in unable:
        assert (row.fit, row.instance, row.usd_per_hour, row.nodes) == (None, None, None, 0)
        assert row.runs.why


def test_a_format_that_runs_goes_before_one_that_does_not_on_every_gpu() -> None:
    for (family, gpu), row in BEST.items():
        others = [other for other in ALL if (other.model.family, other.gpu.key) == (family, gpu)]
        assert row.runs.verdict != "no" or all(other.runs.verdict == "no" for other in others)
