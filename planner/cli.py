"""`python -m planner`: fit, price, compare, recommend and check without a cloud, a cluster or credentials.

Each command reads flags, and where it takes one a stack file below them. Exit status: 0, 1 when nothing fits, 2
when the input is refused.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer
from rich.text import Text

from planner import cli_choose, cli_price, prices, report, report_fit
from planner.alternatives import alternatives
from planner.command_line import (
    API_KEY,
    DOES_NOT_FIT,
    STACK_KEY,
    AsJson,
    Instance,
    ModelName,
    Nodes,
    StackFile,
    facts_of,
    read,
    refuse,
    show,
)
from planner.overhead import Load
from planner.plan import plan as plan_stack
from planner.prices import PriceFileError
from planner.problems import SettingsError
from planner.serving_rules import fit_of

Tensor = Annotated[int | None, typer.Option("--tensor-parallel", help="Chosen by the planner if left out.")]
Pipeline = Annotated[int | None, typer.Option("--pipeline-parallel", help="Chosen by the planner if left out.")]
Utilization = Annotated[float | None, typer.Option("--gpu-memory-utilization", help="Share that vLLM takes.")]
Length = Annotated[int | None, typer.Option("--max-model-len", help="Tokens of prompt and answer.")]
Sequences = Annotated[int | None, typer.Option("--max-num-seqs", help="Requests running at once.")]
Batched = Annotated[int | None, typer.Option("--max-num-batched-tokens", help="Tokens of one step.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.callback()
def _prices_are_readable() -> None:
    """Refuse a broken price file before any command reads from it."""
    try:
        prices.reference()
    except PriceFileError as error:
        refuse(str(error))


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
    facts = facts_of(stack_file, (*shape, *load))
    found = fit_of(facts)
    if found is None:
        refuse("gpuNodes.count is 0: a paused stack serves nothing, so there is nothing to fit (try --nodes 2)")
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
    show(data, tables, as_json=as_json)
    if not found.fits:
        raise typer.Exit(DOES_NOT_FIT)


@app.command()
def check(
    stack: Annotated[FilePath | None, typer.Argument(help="A Pulumi.<stack>.yaml.")] = None,
    stack_file: StackFile = None,
    as_json: AsJson = False,
) -> None:
    """Everything that `pulumi preview` would refuse in a stack file, or the plan."""
    config = read(stack or stack_file or FilePath("Pulumi.dev.yaml"))
    try:
        plan = plan_stack(config[STACK_KEY], api_key_given=API_KEY in config)
    except SettingsError as error:
        refuse(str(error))
    show(report.summary(plan), report.render(plan), as_json=as_json)


app.command()(cli_price.price)
app.command()(cli_choose.compare)
app.command()(cli_choose.recommend)
