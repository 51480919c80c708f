"""What must hold of every fit, whatever the model, the hardware and the load."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import SettingsError, memory, plan
from planner.catalogue import CATALOGUE, precisions
from planner.hardware import GPU_TYPES, GPUS, Gpu
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism, legal, tensor_problem

MODELS = st.sampled_from(list(CATALOGUE.values()))
GPU = st.sampled_from(list(GPUS.values()))
LOADS = st.builds(
    Load,
    gpu_memory_utilization=st.floats(0.5, 0.98),
    max_model_len=st.integers(1024, 40_960),
    max_num_seqs=st.integers(1, 1024),
    max_num_batched_tokens=st.integers(1024, 65_536),
    kv_cache_dtype=st.sampled_from(["auto", "fp8"]),
)


@st.composite
def fits(draw: st.DrawFn) -> tuple[Model, Gpu, Parallelism, Load]:
    model = draw(MODELS)
    nodes = draw(st.sampled_from([1, 2, 4]))
    shapes = legal(model, 8, nodes, expert=draw(st.booleans()), data=draw(st.sampled_from([1, 2])))
    shape = draw(st.sampled_from(shapes or (Parallelism(1, 1),)))
    return model, draw(GPU), shape, draw(LOADS)


@given(fits())
def test_the_stages_make_up_the_whole(chosen: tuple[Model, Gpu, Parallelism, Load]) -> None:
    model, gpu, shape, load = chosen
    found = memory.fit(model, gpu, shape, load)
    assert sum(stage.layers for stage in found.stages) == model.architecture.layers
    for stage in found.stages:
        assert stage.weights_gib + stage.overhead_gib + stage.kv_gib == pytest.approx(found.budget_gib)
    assert found.kv_tokens == min(stage.kv_tokens for stage in found.stages)


@given(fits())
def test_no_figure_is_negative(chosen: tuple[Model, Gpu, Parallelism, Load]) -> None:
    found = memory.fit(*chosen)
    assert found.kv_tokens >= 0
    assert found.concurrent_requests >= 0
    for stage in found.stages:
        assert stage.weights_gib > 0
        assert all(term.gib > 0 for term in stage.overhead)


@given(fits(), st.floats(1.0, 80.0))
def test_more_memory_never_fits_less(chosen: tuple[Model, Gpu, Parallelism, Load], more: float) -> None:
    model, gpu, shape, load = chosen
    larger = replace(gpu, usable_gib=gpu.usable_gib + more)
    assert not_less(memory.fit(model, gpu, shape, load), memory.fit(model, larger, shape, load))


@given(fits())
def test_more_gpus_never_fit_less(chosen: tuple[Model, Gpu, Parallelism, Load]) -> None:
    """Twice the pipeline stages: the same ranks with half the layers each."""
    model, gpu, shape, load = chosen
    if shape.pipeline * 4 > model.architecture.layers or shape.pipeline == 1:
        return
    more = replace(shape, pipeline=2 * shape.pipeline)
    assert not_less(memory.fit(model, gpu, shape, load), memory.fit(model, gpu, more, load))


@given(fits(), st.sampled_from(["fp8", "int4"]))
def test_a_lower_precision_never_fits_less(chosen: tuple[Model, Gpu, Parallelism, Load], lower: str) -> None:
    model, gpu, shape, load = chosen
    full, less = precisions(model).get("bf16"), precisions(model).get(lower)
    if full is None or less is None or tensor_problem(less, shape.tensor, data=shape.data, expert=shape.expert):
        return
    assert not_less(memory.fit(full, gpu, shape, load), memory.fit(less, gpu, shape, load))


@given(fits())
def test_an_fp8_cache_never_holds_less(chosen: tuple[Model, Gpu, Parallelism, Load]) -> None:
    model, gpu, shape, load = chosen
    wide, narrow = (memory.fit(model, gpu, shape, replace(load, kv_cache_dtype=kind)) for kind in ("auto", "fp8"))
    assert narrow.loads == wide.loads
    assert all(
        small.cache.bytes_per_token <= big.cache.bytes_per_token
        for small, big in zip(narrow.stages, wide.stages, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(MODELS, st.sampled_from(list(GPU_TYPES.values())), st.integers(1, 4), LOADS)
def test_every_refusal_of_a_misfit_names_what_is_accepted(model: Model, instance: Any, nodes: int, load: Load) -> None:
    """Setting by setting, what the message says to type makes the stack acceptable."""
    raw = {
        "name": "tried",
        "model": model.name,
        "platform": {"region": "us-east-1", "availabilityZone": "us-east-1a", "publicAccessCidrs": ["203.0.113.0/24"]},
        "gpuNodes": {"instanceType": instance.name, "count": nodes},
        "weights": {"revision": "0" * 40, "capacityGib": 4800},
        "serving": {
            "maxModelLen": load.max_model_len,
            "maxNumSeqs": load.max_num_seqs,
            "maxNumBatchedTokens": load.max_num_batched_tokens,
            "gpuMemoryUtilization": load.gpu_memory_utilization,
            "kvCacheDtype": load.kv_cache_dtype,
            "vllmVersion": "0.33.0",
            "image": "example.org/vllm-efa:0.33.0",
        },
    }
    for _ in range(6):
        try:
            plan(raw, api_key_given=True, hub_token_given=True)
        except SettingsError as error:
            raw = mended(raw, error)
        else:
            return
    plan(raw, api_key_given=True, hub_token_given=True)


def mended(raw: dict[str, Any], error: SettingsError) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    for problem in error.problems:
        assert problem.mends, problem
        for mend in problem.mends:
            target: Any = changed
            for step in mend.path[:-1]:
                target = target.setdefault(step, {})
            if mend.value is None:
                target.pop(mend.path[-1], None)
            else:
                target[mend.path[-1]] = mend.value
    return changed


def not_less(before: Fit, after: Fit) -> bool:
    return (after.fits or not before.fits) and after.concurrent_requests >= before.concurrent_requests
