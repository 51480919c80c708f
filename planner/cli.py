"""`python -m planner`: fit, import, price, timeline, compare, recommend, check: no cloud, no cluster, no credentials.

Each command reads flags, and where it takes one a stack file below them. Exit status: 0, 1 when nothing fits, 2
when the input is refused.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer

from planner import cli_choose, cli_fit, cli_price, prices, report
from planner.command_line import API_KEY, HUB_TOKEN, STACK_KEY, Commands, read, refuse, show
from planner.options import AsJson
from planner.plan import plan as plan_stack
from planner.prices import PriceFileError
from planner.problems import SettingsError
from planner.refusals import of_settings

app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, help=__doc__)


@app.callback()
def _prices_are_readable() -> None:
    """Refuse a broken price file before any command reads from it."""
    try:
        prices.reference()
    except PriceFileError as error:
        refuse(prices.FILE.name, str(error), f"git checkout {prices.FILE.name}")


@app.command()
def check(
    stack_file: Annotated[FilePath, typer.Argument(help="A Pulumi.<stack>.yaml.")] = FilePath("Pulumi.dev.yaml"),
    as_json: AsJson = False,
) -> None:
    """Everything that `pulumi preview` would refuse in a stack file, or the plan."""
    config = read(stack_file)
    try:
        plan = plan_stack(config[STACK_KEY], api_key_given=API_KEY in config, hub_token_given=HUB_TOKEN in config)
    except SettingsError as error:
        raise of_settings(error) from None
    show(report.summary(plan), report.render(plan), as_json=as_json)


app.command()(cli_fit.fit)
app.command("import")(cli_fit.import_model)
app.command()(cli_price.price)
app.command()(cli_price.timeline)
app.command()(cli_choose.compare)
app.command()(cli_choose.recommend)
