"""`python -m planner fit | price | check | import`: the plan without a cloud, a cluster or credentials.

Each command reads a stack file, or flags, or a stack file with flags on top. Exit status: 0, 1 when the model
does not fit, 2 when the input is refused.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, NoReturn

import typer
import yaml
from rich.console import Console, RenderableType

from planner import fit_report, inline_models, report
from planner.alternatives import alternatives
from planner.cases import CaseError, Flags, case, case_of, on_stack_file
from planner.checkpoint_config import ConfigError
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
from planner.plan import check as checked
from planner.plan import decide
from planner.plan import plan as plan_stack
from planner.problems import Mend, Problem, SettingsError, config_command, render
from planner.rules import RULES, Facts
from planner.serving_rules import SPLIT_RULES

STACK_KEY = "vllm-multinode:deployment"
API_KEY = "vllm-multinode:apiKey"
HUB_TOKEN = "vllm-multinode:huggingFaceToken"  # noqa: S105 (the key's name)
DOES_NOT_FIT = 1
REFUSED = 2

# Settings that flags set, by their path in the stack file.
_FLAGS = {
    ("model",): "--model",
    ("gpuNodes", "instanceType"): "--instance-type",
    ("gpuNodes", "count"): "--nodes",
    ("serving", "tensorParallel"): "--tensor-parallel",
    ("serving", "pipelineParallel"): "--pipeline-parallel",
    ("serving", "gpuMemoryUtilization"): "--gpu-memory-utilization",
    ("serving", "maxModelLen"): "--max-model-len",
    ("serving", "maxNumSeqs"): "--max-num-seqs",
    ("serving", "maxNumBatchedTokens"): "--max-num-batched-tokens",
    ("serving", "kvCacheDtype"): "--kv-cache-dtype",
}
# What flags do not say: it decides neither memory nor, in the price table's region, the price.
_BARE: dict[str, Any] = {
    "name": "planned",
    "model": "kimi-k2.5",
    "platform": {
        "region": "us-east-1",
        "availabilityZone": "us-east-1a",
        "publicAccessCidrs": ["203.0.113.0/24"],
    },
    "gpuNodes": {"instanceType": "p5.48xlarge", "count": 2},
    "weights": {"revision": "0" * 40},
    "serving": {},
}

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.command()
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
    try:
        described = case(flags) if stack_file is None else case_of(_facts(stack_file, on_stack_file(flags)))
    except CaseError as error:
        _refuse(str(error))
    found = described.fit()
    others = () if found.fits else alternatives(described.model, described.load)
    _print(
        fit_report.data(described, found, others),
        fit_report.render(described, found, others, explain=explain),
        as_json=as_json,
    )
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


@app.command("import")
def import_model(
    config: Annotated[FilePath, typer.Argument(help="A checkpoint's config.json.")],
    index: Annotated[FilePath | None, typer.Option("--index", help="Its model.safetensors.index.json.")] = None,
    repository: Annotated[str, typer.Option("--repository", help="owner/name on the Hub.")] = "owner/name",
) -> None:
    """A checkpoint's config.json as an entry for `model:` in a stack file, and what it amounts to."""
    try:
        sizes = inline_models.json_object(index) if index else None
        entry = inline_models.entry(repository, inline_models.json_object(config), sizes)
    except ConfigError as error:
        _refuse(f"{config}: {error}")
    typer.echo(yaml.safe_dump({"model": entry}, sort_keys=False, width=report.WIDTH), nl=False)
    for line in fit_report.about(inline_models.inline(entry)):
        typer.echo(f"# {line}")


@app.command()
def price(
    stack_file: StackFile = None,
    model: ModelName = None,
    instance_type: Instance = None,
    nodes: Nodes = None,
    as_json: AsJson = False,
) -> None:
    """The whole stack by the hour, part by part, with the source and date of each price."""
    bill = decide(_facts(stack_file, (model, instance_type, nodes))).price
    _print(report.price_data(bill), report.render_price(bill), as_json=as_json)


@app.command()
def check(
    stack: Annotated[FilePath | None, typer.Argument(help="A Pulumi.<stack>.yaml.")] = None,
    stack_file: StackFile = None,
    as_json: AsJson = False,
) -> None:
    """Everything that `pulumi preview` would refuse in a stack file, or the plan."""
    config = _read(stack or stack_file or FilePath("Pulumi.dev.yaml"))
    try:
        plan = plan_stack(config[STACK_KEY], api_key_given=API_KEY in config, hub_token_given=HUB_TOKEN in config)
    except SettingsError as error:
        _refuse(str(error))
    _print(report.summary(plan), report.render(plan), as_json=as_json)


def _facts(stack_file: FilePath | None, flags: tuple[object, ...]) -> Facts:
    """Settings of the stack file, or bare ones, with the flags set on top; fit itself is not checked."""
    raw = copy.deepcopy(dict(_BARE if stack_file is None else _read(stack_file)[STACK_KEY]))
    for (*sections, key), value in zip(_FLAGS, flags, strict=False):
        if value is not None:
            target = raw
            for section in sections:
                target = target.setdefault(section, {})
            target[key] = value
    try:
        return checked(raw, (*RULES, *SPLIT_RULES), api_key_given=True, hub_token_given=True)
    except SettingsError as error:
        _refuse(str(error) if stack_file else _in_flags(error.problems))


def _in_flags(problems: tuple[Problem, ...]) -> str:
    """The problems, with flags to type instead of `pulumi config` commands."""

    def command(mend: Mend) -> str:
        flag = _FLAGS.get(tuple(str(step) for step in mend.path))
        if flag is None:
            return config_command(mend)
        return f"leave out {flag}" if mend.value is None else f"{flag} {mend.value}"

    return render(problems, command)


def _read(stack_file: FilePath) -> Mapping[str, Any]:
    """The `config` of a stack file."""
    try:
        content = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    except OSError as error:
        _refuse(f"{stack_file}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        _refuse(f"{stack_file} is no YAML: {error}")
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get(STACK_KEY), dict):
        _refuse(f"{stack_file}: no mapping `{STACK_KEY}` below `config`; docs/configuration.md shows one")
    return config


def _print(data: Mapping[str, object], tables: tuple[RenderableType, ...], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else report.WIDTH, highlight=False).print(*tables, sep="\n")


def _refuse(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(REFUSED)
