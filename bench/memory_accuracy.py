"""The planner's memory fit against what vLLM reported: `python -m bench.memory_accuracy [--terms]`.

One line a case: the error in weights, KV GiB and KV tokens (or full-length requests), and the medians of each group.
`measured` and `published` were known when the constants of planner/overhead.py were chosen; `held_out` were not, and
their medians are the ones to expect. Cases that do not state what decides memory, and those with a draft model, which
the planner does not compute, are shown in brackets and left out of the medians.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from planner import memory
from planner.catalogue import CATALOGUE
from planner.catalogue.precisions import INT4_GROUPS_OF_32
from planner.hardware import GPUS
from planner.memory import Fit, StageFit
from planner.models import Model
from planner.overhead import SPARSE_ATTENTION, Load
from planner.parallelism import Parallelism

CASES = Path(__file__).with_name("memory_cases.yaml")
# What vLLM takes where a case does not say: 1024 sequences and 8192 tokens a step on GPUs of 70 GiB or more, else
# 256 and 2048 (vllm/engine/arg_utils.py).
LARGE = {"max_num_seqs": 1024, "max_num_batched_tokens": 8192}
GROUPS = ("published", "measured", "held_out")
GRAPHS = ("CUDA graphs", "decode attention")
# What a case is taken for that names no release.
LATEST = (99, 0)
SMALL = {"max_num_seqs": 256, "max_num_batched_tokens": 2048}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Relative errors of one case, None where it has no figure to compare. `gib`: that of the KV cache, in GiB."""

    name: str
    group: str
    fit: Fit
    certain: bool
    weights: float | None
    kv_gib: float | None
    gib: float | None
    kv_tokens: float | None


def outcomes() -> Iterator[Outcome]:
    """Every case of the data file."""
    data = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    for group in GROUPS:
        yield from (outcome(case, group) for case in data[group])


def medians(found: Iterable[Outcome], what: str) -> tuple[float, float, int]:
    """Median and largest |error| of the cases that count, and how many they are."""
    errors = [abs(error) for item in found if item.certain and (error := getattr(item, what)) is not None]
    return statistics.median(errors), max(errors), len(errors)


def outcome(case: dict[str, Any], group: str = "published") -> Outcome:
    """Compute the fit of one case and compare."""
    gpu = GPUS[case.get("gpu") or "h200-141gb"]
    stated = "layers" in case or (case.get("gpu") is not None and "gpu_memory_utilization" in case)
    stated = stated and "speculation" not in case and "assumed" not in case
    model = _model(case)
    shape, load = _shape(case), _load(case, model)
    found = _as_logged(case, model, load, memory.fit(model, gpu, shape, load))
    # Weights and KV are logged by one rank: the stage that is nearest is the one that logged.
    kv_gib = _nearest(case.get("kv_gib"), [stage.kv_gib for stage in found.stages])
    return Outcome(
        name=case["id"],
        group=group,
        fit=found,
        certain=stated,
        weights=_nearest(case.get("weights_gib"), [_loaded(stage) for stage in found.stages]),
        kv_gib=kv_gib,
        gib=None if kv_gib is None else kv_gib * case["kv_gib"],
        kv_tokens=_nearest(case.get("kv_tokens"), [found.kv_tokens])
        if "kv_tokens" in case
        else _nearest(case.get("requests"), [found.concurrent_requests]),
    )


def _as_logged(case: dict[str, Any], model: Model, load: Load, fit: Fit) -> Fit:
    """The fit as the release of the case would have it, where that differs from what the planner computes.

    vLLM takes CUDA graphs off the cache from 0.20.0 on (`VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS` in its envs.py; 0
    in 0.19.0) unless it runs eagerly or was told not to. Kimi's INT4 experts write their narrow side once up to
    0.22.1, and into two workspaces of the wider side from 0.23.0 on (compressed_tensors_moe_wna16_marlin.py of both).
    """
    vllm = str(case.get("vllm", ""))
    match = re.match(r"~?(\d+)\.(\d+)", vllm)
    release = (int(match[1]), int(match[2])) if match else (0, 0) if vllm.startswith("nightly 2025") else LATEST
    stages = fit.stages
    if case.get("eager") or not case.get("graphs_reserved", release >= (0, 20)):
        stages = tuple(_without(stage, GRAPHS) for stage in stages)
    if model.weights == INT4_GROUPS_OF_32 and release < (0, 23):
        stages = tuple(_narrower(stage, model, fit.shape, load) for stage in stages)
    return replace(fit, stages=stages)


def _narrower(stage: StageFit, model: Model, shape: Parallelism, load: Load) -> StageFit:
    experts, hidden = model.architecture.experts, model.architecture.hidden
    if experts is None:
        return stage
    width = experts.intermediate / (1 if shape.expert else shape.tensor)
    values = experts.active * (max(width, hidden) + max(2 * width, hidden) - width - hidden)
    size = 2 * load.max_num_batched_tokens * values / 2**30
    terms = tuple(replace(term, gib=term.gib - size * (term.name == "activations")) for term in stage.overhead)
    return replace(stage, overhead=terms, kv_gib=stage.kv_gib + stage.overhead_gib - sum(term.gib for term in terms))


def _loaded(stage: StageFit) -> float:
    """GiB that vLLM logs as weights: what it allocates while it loads them, buffers of sparse attention among it."""
    return stage.weights_gib + sum(term.gib for term in stage.overhead if term.name == SPARSE_ATTENTION)


def _without(stage: StageFit, names: tuple[str, ...]) -> StageFit:
    kept = tuple(term for term in stage.overhead if term.name not in names)
    return replace(stage, overhead=kept, kv_gib=stage.kv_gib + stage.overhead_gib - sum(term.gib for term in kept))


def _model(case: dict[str, Any]) -> Model:
    model = CATALOGUE[case["model"]]
    changed: dict[str, Any] = {"layers": case["layers"]} if "layers" in case else {}
    if case.get("language_model_only"):
        changed["vision"] = None
    return replace(model, architecture=replace(model.architecture, **changed))


def _shape(case: dict[str, Any]) -> Parallelism:
    return Parallelism(
        case.get("tensor_parallel", 1),
        case.get("pipeline_parallel", 1),
        1,
        case.get("expert_parallel", False),
        case.get("decode_context_parallel", 1),
    )


def _load(case: dict[str, Any], model: Model) -> Load:
    large = GPUS[case.get("gpu") or "h200-141gb"].usable_gib >= 70 and not str(case.get("gpu")).startswith("a100")
    defaults = LARGE if large else SMALL
    sequences = case.get("max_num_seqs", defaults["max_num_seqs"])
    return Load(
        gpu_memory_utilization=case.get("gpu_memory_utilization", 0.9),
        max_model_len=case.get("max_model_len", model.context_tokens),
        max_num_seqs=sequences,
        max_num_batched_tokens=case.get("max_num_batched_tokens", max(sequences, defaults["max_num_batched_tokens"])),
        kv_cache_dtype=case.get("kv_cache_dtype", "auto"),
    )


def _nearest(reported: float | None, computed: list[float]) -> float | None:
    if reported is None:
        return None
    return min((value / reported - 1 for value in computed), key=abs)


def _percent(error: float | None, *, certain: bool) -> str:
    if error is None:
        return "-"
    return f"{error:+.1%}" if certain else f"({error:+.1%})"


def main() -> None:
    """Print the table; `--terms` adds what the planner takes each GPU to hold."""
    found = list(outcomes())
    print(f"{'case':46} {'weights':>9} {'KV GiB':>9} {'in GiB':>7} {'KV tokens':>10}")
    for item in found:
        columns = [_percent(error, certain=item.certain) for error in (item.weights, item.kv_gib, item.kv_tokens)]
        gib = "-" if item.gib is None else f"{item.gib:+.2f}" if item.certain else f"({item.gib:+.2f})"
        print("{:46} {:>9} {:>9} {gib:>7} {:>10}".format(item.name, *columns, gib=gib))
        if "--terms" in sys.argv:
            last = item.fit.stages[-1]
            terms = ", ".join(f"{term.name} {term.gib:.2f}" for term in last.overhead)
            print(f"    weights {last.weights_gib:.2f}, {terms}, KV {last.kv_gib:.2f}")
    for group in GROUPS:
        print(f"{group}: |error| as median and largest")
        for what in ("weights", "kv_gib", "kv_tokens"):
            median, largest, count = medians((item for item in found if item.group == group), what)
            print(f"  {what:10} {median:6.1%} {largest:6.1%} over {count} cases")
        median, largest, count = medians((item for item in found if item.group == group), "gib")
        print(f"  {'KV cache':10} {median:4.2f} {largest:8.2f} GiB per GPU over {count} cases")


if __name__ == "__main__":
    main()
