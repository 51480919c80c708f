"""`python -m planner fit` and `import`: any case of model, GPUs and load; a checkpoint's config as an entry."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Annotated, Any

import typer
import yaml

from planner import fit_report, inline_models
from planner.alternatives import alternatives
from planner.cases import Case, CaseError, Flags, case
from planner.checkpoint_config import ConfigError
from planner.command_line import (
    DOES_NOT_FIT,
    AsJson,
    Explain,
    Instance,
    ModelName,
    Nodes,
    StackFile,
    facts_of,
    refuse,
    show,
)
from planner.overhead import Load
from planner.rules import Facts
from planner.serving_rules import shape_of
from planner.tables import WIDTH

PrecisionName = Annotated[str | None, typer.Option("--precision", help="bf16, fp8, int4 or nvfp4.")]
GpuName = Annotated[str | None, typer.Option("--gpu", help="Any GPU, as h100-80gb; instead of --instance-type.")]
GpusPerNode = Annotated[int | None, typer.Option("--gpus-per-node", help="With --gpu.")]
Tensor = Annotated[int | None, typer.Option("--tensor-parallel", help="Chosen by the planner if left out.")]
Pipeline = Annotated[int | None, typer.Option("--pipeline-parallel", help="Chosen by the planner if left out.")]
Data = Annotated[int | None, typer.Option("--data-parallel", help="Replicas that share the experts.")]
Context = Annotated[int | None, typer.Option("--decode-context-parallel", help="Ranks that share the KV cache.")]
Expert = Annotated[bool, typer.Option("--expert-parallel", help="Whole experts on each rank.")]
Utilization = Annotated[float | None, typer.Option("--gpu-memory-utilization", help="Share that vLLM takes.")]
Length = Annotated[int | None, typer.Option("--max-model-len", help="Tokens of prompt and answer.")]
Sequences = Annotated[int | None, typer.Option("--max-num-seqs", help="Requests running at once.")]
Batched = Annotated[int | None, typer.Option("--max-num-batched-tokens", help="Tokens of one step.")]
CacheType = Annotated[str | None, typer.Option("--kv-cache-dtype", help="auto or fp8.")]


def fit(
    stack_file: StackFile = None,
    model: ModelName = None,
    precision: PrecisionName = None,
    gpu: GpuName = None,
    instance_type: Instance = None,
    gpus_per_node: GpusPerNode = None,
    nodes: Nodes = None,
    tensor_parallel: Tensor = None,
    pipeline_parallel: Pipeline = None,
    data_parallel: Data = None,
    decode_context_parallel: Context = None,
    expert_parallel: Expert = False,
    gpu_memory_utilization: Utilization = None,
    max_model_len: Length = None,
    max_num_seqs: Sequences = None,
    max_num_batched_tokens: Batched = None,
    kv_cache_dtype: CacheType = None,
    as_json: AsJson = False,
    explain: Explain = False,
) -> None:
    """GiB per GPU for each pipeline stage, free KV tokens, and what else would fit."""
    if stack_file is None:
        described = _case(
            Flags(
                model=model,
                precision=precision,
                gpu=gpu,
                instance_type=instance_type,
                gpus_per_node=gpus_per_node,
                nodes=nodes,
                tensor_parallel=tensor_parallel,
                pipeline_parallel=pipeline_parallel,
                data_parallel=data_parallel,
                decode_context_parallel=decode_context_parallel,
                expert_parallel=expert_parallel,
                gpu_memory_utilization=gpu_memory_utilization,
                max_model_len=max_model_len,
                max_num_seqs=max_num_seqs,
                max_num_batched_tokens=max_num_batched_tokens,
                kv_cache_dtype=kv_cache_dtype,
            )
        )
    else:
        if (precision, gpu, gpus_per_node, data_parallel, decode_context_parallel) != (None,) * 5 or expert_parallel:
            refuse("--stack-file says model, GPUs and parallelism itself: leave it out to describe another case")
        shape = (model, instance_type, nodes, tensor_parallel, pipeline_parallel)
        load = (gpu_memory_utilization, max_model_len, max_num_seqs, max_num_batched_tokens, kv_cache_dtype)
        described = _case_of(facts_of(stack_file, (*shape, *load)))
    found = described.fit()
    others = () if found.fits else alternatives(described.model, described.load)
    show(
        fit_report.data(described, found, others),
        fit_report.render(described, found, others, explain=explain),
        as_json=as_json,
    )
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


def import_model(
    config: Annotated[FilePath, typer.Argument(help="A checkpoint's config.json.")],
    index: Annotated[FilePath | None, typer.Option("--index", help="Its model.safetensors.index.json.")] = None,
    repository: Annotated[str, typer.Option("--repository", help="owner/name on the Hub.")] = "owner/name",
) -> None:
    """A checkpoint's config.json as an entry for `model:` in a stack file, and what it amounts to."""
    try:
        entry = inline_models.entry(repository, _json(config), _json(index) if index else None)
        model = inline_models.inline(entry)
    except ConfigError as error:
        refuse(f"{config}: {error}")
    typer.echo(yaml.safe_dump({"model": entry}, sort_keys=False, width=WIDTH), nl=False)
    for line in fit_report.about(model):
        typer.echo(f"# {line}")


def _case(flags: Flags) -> Case:
    try:
        return case(flags)
    except CaseError as error:
        refuse(str(error))


def _case_of(facts: Facts) -> Case:
    """The case that a stack file describes."""
    shape, kind = shape_of(facts), facts.instance
    if shape is None or kind.gpu is None:
        refuse("gpuNodes.count is 0: a paused stack serves nothing, so there is nothing to fit (try --nodes 2)")
    return Case(
        model=facts.model,
        gpu=kind.gpu,
        gpus_per_node=kind.gpus,
        nodes=facts.settings.gpu_nodes.count,
        hardware=kind.name,
        load=Load.of(facts.settings.serving),
        shape=shape,
    )


def _json(file: FilePath) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(f"{file}: {error.strerror}")
    except ValueError as error:
        refuse(f"{file} is no JSON: {error}")
    if not isinstance(content, dict):
        refuse(f"{file}: one JSON object is expected")
    return content
