"""The flags that the planner knows are those of vLLM's own parser."""

from __future__ import annotations

import json

import pytest

from planner import defaults
from planner.vllm_flags import FILE
from tests.vllm.process import answer


@pytest.mark.slow
def test_the_list_of_flags_is_what_vllm_s_parser_takes() -> None:
    kept, real = json.loads(FILE.read_text()), answer("tests.vllm.list_flags")
    assert kept["vllm"] == real["vllm"] == defaults.VLLM
    assert kept["flags"] == real["flags"], "run `make flags`"
