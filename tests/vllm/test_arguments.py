"""vLLM's own parser takes every command that the program writes, and makes its engine configuration of it.

Each model of the catalogue (its precisions are entries of their own) on each hardware of the table that holds it, and
on the nodes of `Pulumi.infiniband.yaml`. What it does not prove: anything that vLLM decides with weights or a GPU in
hand (kernels, attention backends, memory), and that a checkpoint's own config.json says what `bench.checkpoint_configs`
writes. vLLM is 0.27.1 for all, also for the models that need a newer one.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from bench.checkpoint_configs import config
from planner.alternatives import LIGHT, MOST_NODES, alternatives, study
from planner.catalogue import CATALOGUE
from planner.kernels import runs
from planner.models import Model
from planner.plan import plan
from planner.platform_settings import NodeShape
from planner.rules import described
from tests.components.graph import stack_file
from tests.planner.test_argument_rules import TAKEN, UNKNOWN
from tests.vllm.pods import command_line, containers, operator_variables
from tests.vllm.process import answer

pytestmark = pytest.mark.slow

NEWEST = {"vllmVersion": "0.33.0", "image": "example.org/vllm-efa:0.33.0"}
"""No model of the catalogue needs a newer one."""


@dataclass(frozen=True, slots=True)
class Command:
    """What one container runs: the words, the names of its variables, and the model's config.json."""

    command: list[str]
    variables: list[str]
    config: dict[str, Any]


Complaints = dict[str, list[tuple[Command, str | None]]]

# What is appended to the command of Kimi-K2.5's leader on two nodes, and what vLLM says to it.
WRONG = {
    "--max-model-length 4096": "unrecognized arguments: --max-model-length 4096",
    "--kv-cache-dtype int3": "invalid choice: 'int3'",
    "--max-num-seqs many": "invalid int value: 'many'",
    "--enable-log-outputs": "requires --enable-log-requests",
    "--tool-call-parser kimi_k25": "invalid tool call parser: kimi_k25",
    "--reasoning-parser kimi_k25": "kimi_k25",
    "--quantization fp8": "compressed-tensors) does not match the quantization method",
    "--tensor-parallel-size 48": "must be divisible by tensor parallel size (48)",
    "--nnodes 3": "nnodes",
    "--max-model-len 1000000": "is greater than the derived max_model_len",
}
UNKNOWN_VARIABLE = "VLLM_HOST_ADDRESS"
MORE = "serving.extraArgs"
MORE_TAKEN = [[str(word) for word in words] for words in TAKEN]
MORE_REFUSED = [words for words, *_ in UNKNOWN]


@pytest.fixture(scope="module")
def complaints() -> Complaints:
    """Each command of each model, and the wrong ones, with what vLLM says against it: all asked in one process."""
    asked = [(model.name, command) for model in CATALOGUE.values() for raw in stacks(model) for command in of(raw)]
    kimi = of(stack_file("dev"))[0]
    asked += [(wrong, replace(kimi, command=[*kimi.command, *wrong.split()])) for wrong in WRONG]
    asked += [(MORE, replace(kimi, command=[*kimi.command, *words])) for words in (*MORE_TAKEN, *MORE_REFUSED)]
    asked += [(UNKNOWN_VARIABLE, replace(kimi, variables=[*kimi.variables, UNKNOWN_VARIABLE]))]
    found: Complaints = {}
    answers = answer("tests.vllm.in_vllm", [asdict(command) for _, command in asked])
    for (name, command), complaint in zip(asked, answers, strict=True):
        found.setdefault(name, []).append((command, complaint))
    return found


@pytest.mark.parametrize("name", CATALOGUE)
def test_vllm_takes_every_command_of_a_model(name: str, complaints: Complaints) -> None:
    refused = [f"{complaint}\n  {shlex.join(command.command)}" for command, complaint in complaints[name] if complaint]
    assert not refused, f"{name}: vLLM refuses {len(refused)} of {len(complaints[name])}, the first: {refused[0]}"


@pytest.mark.parametrize("wrong", WRONG)
def test_vllm_refuses_what_is_wrong(wrong: str, complaints: Complaints) -> None:
    """Otherwise the test above would prove nothing."""
    ((_, complaint),) = complaints[wrong]
    assert complaint is not None
    assert WRONG[wrong] in complaint


def test_vllm_and_the_planner_agree_on_more_arguments(complaints: Complaints) -> None:
    said = [complaint for _, complaint in complaints[MORE]]
    assert [complaint for complaint in said[: len(MORE_TAKEN)] if complaint] == []
    missed = [words for words, complaint in zip(MORE_REFUSED, said[len(MORE_TAKEN) :], strict=True) if not complaint]
    assert missed == []


def test_a_variable_that_vllm_does_not_know_is_named(complaints: Complaints) -> None:
    ((_, complaint),) = complaints[UNKNOWN_VARIABLE]
    assert complaint == f"unknown environment variables: {UNKNOWN_VARIABLE}"


def of(raw: dict[str, Any]) -> list[Command]:
    """What the containers of a stack's pods run."""
    decided = plan(raw, api_key_given=True, hub_token_given=True)
    written = config(decided.model, decided.model.architecture.layers)
    emitted = containers(decided)
    return [
        Command(
            command_line(container, operator_variables(index, len(emitted))),
            [variable["name"] for variable in container["env"]],
            written,
        )
        for index, container in enumerate(emitted)
    ]


def stacks(model: Model) -> Iterator[dict[str, Any]]:
    """Stack files: the model on the fewest nodes of each instance type, and on nodes as in Pulumi.infiniband.yaml."""
    for item in alternatives(model, LIGHT):
        fabric = {"kind": "efa"} if item.instance.efa else {"kind": "none"}
        yield changed("dev", model, gpuNodes={"instanceType": item.instance.name, "count": item.nodes}, fabric=fabric)
    own = stack_file("infiniband")
    instance = described(NodeShape(**own["gpuNodes"]["instanceType"]))
    for nodes in range(1, MOST_NODES + 1):
        fit = study(model, instance, nodes, LIGHT)
        if instance.gpu and runs(model, instance.gpu).verdict != "no" and fit and fit.fits:
            yield changed("infiniband", model, gpuNodes={**own["gpuNodes"], "count": nodes})


def changed(name: str, model: Model, **sections: Any) -> dict[str, Any]:
    """A committed stack file with another model under a light load, and other sections."""
    serving = {
        "maxModelLen": LIGHT.max_model_len,
        "maxNumSeqs": LIGHT.max_num_seqs,
        "maxNumBatchedTokens": LIGHT.max_num_batched_tokens,
        "gpuMemoryUtilization": LIGHT.gpu_memory_utilization,
    }
    raw = copy.deepcopy(stack_file(name))
    if raw["weights"]["kind"] == "fsx":
        raw["weights"]["capacityGib"] = 4800
    return {**raw, "model": model.name, "serving": {**serving, **NEWEST}, **sections}
