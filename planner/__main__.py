"""Runs the planner's commands: `python -m planner`."""

from planner.cli import app

app(prog_name="python -m planner")
