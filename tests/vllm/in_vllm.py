"""Runs in the Python that holds vLLM, not in the tests' own: what vLLM itself says to a list of commands.

Standard input: a JSON list of `{"command": ["vllm", "serve", ...], "variables": [...], "config": {...}}`; `config` is
the content of the model's config.json. Into the file that the one argument names goes a JSON list with, for each, the
first complaint of vLLM, or null: about a variable of its own that it does not know, of its parser and the checks after
it, or while it makes its whole engine configuration. That is what `vllm serve` does before it starts an engine; it
looks at no weights and at no GPU.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

from vllm import envs
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.entrypoints.openai.api_server import validate_api_server_args
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser

from tests.vllm.small_model import write_tokenizer

SERVE = ServeSubcommand()


def main() -> None:
    """Answer into a file: vLLM logs on standard output."""
    parser = serve_parser()
    answers = [complaint(parser, **case) for case in json.load(sys.stdin)]
    Path(sys.argv[1]).write_text(json.dumps(answers))


def serve_parser() -> FlexibleArgumentParser:
    """The parser of `vllm`, as vllm.entrypoints.cli.main makes it, with one command."""
    parser = FlexibleArgumentParser(prog="vllm")
    SERVE.subparser_init(parser.add_subparsers(required=True, dest="subparser"))
    return parser


def complaint(
    parser: FlexibleArgumentParser, command: list[str], variables: list[str], config: dict[str, Any]
) -> str | None:
    """What vLLM says against one command, or None."""
    unknown = [name for name in variables if name.startswith("VLLM_") and name not in envs.environment_variables]
    if unknown:
        return f"unknown environment variables: {', '.join(unknown)}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            # A copy: the parser's defaults are objects into which vLLM writes.
            arguments = copy.deepcopy(parser.parse_args(command[1:]))
        SERVE.validate(arguments)
        make_configuration(arguments, config)
        if not arguments.headless:
            validate_api_server_args(arguments)
    except SystemExit:
        return said.getvalue().strip().rpartition("\n")[2]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def make_configuration(arguments: Namespace, config: dict[str, Any]) -> None:
    """Make the engine's configuration for a directory that holds config.json and a tokenizer, no weights."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "config.json").write_text(json.dumps(config))
        write_tokenizer(Path(directory))
        arguments.model = directory
        engine = AsyncEngineArgs.from_cli_args(arguments)
        engine.create_engine_config(UsageContext.OPENAI_API_SERVER, headless=arguments.headless)


if __name__ == "__main__":
    main()
