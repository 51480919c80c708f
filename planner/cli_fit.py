"""`python -m planner fit` and `import`: any case of model, GPUs and load; a checkpoint's config as an entry."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer
import yaml

from planner import case_report, inline_models
from planner.cases import Instead, case, case_of, instead_of, on_stack_file
from planner.checkpoint_config import ConfigError
from planner.command_line import DOES_NOT_FIT, facts_of, refuse, show
from planner.flags import Flags
from planner.options import (
    AsJson,
    Batched,
    CacheType,
    Context,
    Data,
    Expert,
    Explain,
    GpuName,
    GpusPerNode,
    Instance,
    Length,
    ModelName,
    Nodes,
    Pipeline,
    PrecisionName,
    Sequences,
    StackFile,
    Tensor,
    Utilization,
)
from planner.tables import WIDTH


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
    flags = Flags(
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
    described = case(flags) if stack_file is None else case_of(facts_of(stack_file, on_stack_file(flags)))
    found = described.fit()
    instead = Instead() if found.fits else instead_of(described)
    show(
        case_report.data(described, found, instead),
        case_report.render(described, found, instead, explain=explain),
        as_json=as_json,
    )
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


def import_model(
    config: Annotated[FilePath, typer.Argument(help="A checkpoint's config.json.")],
    index: Annotated[FilePath | None, typer.Option("--index", help="Its model.safetensors.index.json.")] = None,
    repository: Annotated[str, typer.Option("--repository", help="owner/name on the Hub.")] = "owner/name",
    as_json: AsJson = False,
) -> None:
    """A checkpoint's config.json as an entry for `model:` in a stack file, and what it amounts to."""
    try:
        entry = inline_models.entry(
            repository, inline_models.json_object(config), inline_models.json_object(index) if index else None
        )
        model = inline_models.inline(entry)
    except ConfigError as error:
        refuse(str(config), str(error))
    if as_json:
        show({"model": entry, **case_report.about_data(model)}, (), as_json=True)
        return
    typer.echo(yaml.safe_dump({"model": entry}, sort_keys=False, width=WIDTH), nl=False)
    for line in case_report.about(model):
        typer.echo(f"# {line}")
