"""`python -m planner fit | price | check`: the plan without a cloud, a cluster or credentials.

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
from rich.text import Text

from planner import report, report_fit, report_price
from planner.alternatives import alternatives
from planner.memory import Load
from planner.plan import check as checked
from planner.plan import decide
from planner.plan import plan as plan_stack
from planner.price_rules import PRICE_RULES
from planner.problems import Mend, Problem, SettingsError, config_command, render
from planner.rules import RULES, Facts
from planner.serving_rules import SPLIT_RULES, fit_of
from planner.tables import WIDTH

STACK_KEY = "vllm-multinode:deployment"
API_KEY = "vllm-multinode:apiKey"
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

StackFile = Annotated[FilePath | None, typer.Option("--stack-file", help="A Pulumi.<stack>.yaml.")]
ModelName = Annotated[str | None, typer.Option("--model", help="A model of the catalogue, as kimi-k2.5.")]
Instance = Annotated[str | None, typer.Option("--instance-type", help="GPU instance type, as p5.48xlarge.")]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Number of GPU nodes.")]
Tensor = Annotated[int | None, typer.Option("--tensor-parallel", help="Chosen by the planner if left out.")]
Pipeline = Annotated[int | None, typer.Option("--pipeline-parallel", help="Chosen by the planner if left out.")]
Utilization = Annotated[float | None, typer.Option("--gpu-memory-utilization", help="Share that vLLM takes.")]
Length = Annotated[int | None, typer.Option("--max-model-len", help="Tokens of prompt and answer.")]
Sequences = Annotated[int | None, typer.Option("--max-num-seqs", help="Requests running at once.")]
Batched = Annotated[int | None, typer.Option("--max-num-batched-tokens", help="Tokens of one step.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.command()
def fit(
    stack_file: StackFile = None,
    model: ModelName = None,
    instance_type: Instance = None,
    nodes: Nodes = None,
    tensor_parallel: Tensor = None,
    pipeline_parallel: Pipeline = None,
    gpu_memory_utilization: Utilization = None,
    max_model_len: Length = None,
    max_num_seqs: Sequences = None,
    max_num_batched_tokens: Batched = None,
    as_json: AsJson = False,
) -> None:
    """GiB per GPU for each pipeline stage, free KV tokens, and what else would fit."""
    shape = (model, instance_type, nodes, tensor_parallel, pipeline_parallel)
    load = (gpu_memory_utilization, max_model_len, max_num_seqs, max_num_batched_tokens)
    facts = _facts(stack_file, (*shape, *load))
    found = fit_of(facts)
    if found is None:
        _refuse("gpuNodes.count is 0: a paused stack serves nothing, so there is nothing to fit (try --nodes 2)")
    others = () if found.fits else alternatives(facts.model, Load.of(facts.settings.serving))
    data = {
        "model": facts.model.name,
        "instance_type": facts.instance.name,
        "nodes": facts.settings.gpu_nodes.count,
        **report_fit.fit_data(found),
        "alternatives": [report_fit.alternative_data(item) for item in others],
    }
    title = report_fit.heading(facts.model, facts.instance, facts.settings.gpu_nodes.count)
    tables = (Text(title), *report_fit.render_fit(found), *(report_fit.render_alternatives(others) if others else ()))
    _print(data, tables, as_json=as_json)
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


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
    _print(report_price.price_data(bill), report_price.render_price(bill), as_json=as_json)


@app.command()
def check(
    stack: Annotated[FilePath | None, typer.Argument(help="A Pulumi.<stack>.yaml.")] = None,
    stack_file: StackFile = None,
    as_json: AsJson = False,
) -> None:
    """Everything that `pulumi preview` would refuse in a stack file, or the plan."""
    config = _read(stack or stack_file or FilePath("Pulumi.dev.yaml"))
    try:
        plan = plan_stack(config[STACK_KEY], api_key_given=API_KEY in config)
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
        return checked(raw, (*RULES, *SPLIT_RULES, *PRICE_RULES), api_key_given=True)
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
        Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False).print(*tables, sep="\n")


def _refuse(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(REFUSED)
