"""Bad stack files: all problems at once, each with path, value, what is allowed and a command."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from planner import SettingsError, plan
from planner.problems import Mend, Problem, dotted, value_at
from tests.planner.bad_values import BAD_VALUES, Bad

Raw = dict[str, Any]


def refused(raw: Raw, *, api_key_given: bool = True) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        plan(raw, api_key_given=api_key_given)
    return caught.value


def change(raw: Raw, path: str, value: object) -> Raw:
    """A copy of `raw` with one value set, sections made where they are missing."""
    changed = copy.deepcopy(raw)
    *sections, key = path.split(".")
    target = changed
    for section in sections:
        target = target.setdefault(section, {})
    target[key] = value
    return changed


def mended(raw: Raw, problems: tuple[Problem, ...]) -> Raw:
    """What the file is after every command has been typed."""
    changed = copy.deepcopy(raw)
    for problem in problems:
        for mend in problem.mends:
            target: Any = changed
            for step, following in zip(mend.path[:-1], mend.path[1:], strict=True):
                if value_at(target, (step,)) is None:
                    target[step] = [] if isinstance(following, int) else {}
                target = target[step]
            last = mend.path[-1]
            if mend.value is None:
                target.pop(*((last,) if isinstance(target, list) else (last, None)))
            elif isinstance(target, list) and last == len(target):
                target.append(mend.value)
            else:
                target[last] = mend.value
    return changed


@pytest.mark.parametrize("bad", BAD_VALUES, ids=lambda bad: bad.why)
def test_a_bad_value_is_refused_with_path_value_allowed_and_command(raw: Raw, bad: Bad) -> None:
    error = refused(change(raw, bad.path, bad.value))
    problem = next(problem for problem in error.problems if dotted(problem.path) == bad.place)
    text = str(error)
    assert bad.allowed in problem.allowed
    assert re.search(rf"\d+\. deployment\.{re.escape(bad.place)}\n   given:   \S", text)
    assert bad.command in text


@pytest.mark.parametrize("bad", BAD_VALUES, ids=lambda bad: bad.why)
def test_typing_the_commands_of_a_refusal_mends_the_file(raw: Raw, bad: Bad) -> None:
    raw = change(raw, bad.path, bad.value)
    plan(mended(raw, refused(raw).problems), api_key_given=True)


def test_all_problems_of_a_file_are_named_at_once(raw: Raw) -> None:
    for path, value in {
        "name": "Kimi_K25",
        "gpuNode": {"count": 2},
        "platform.availabilityZone": "eu-west-1a",
        "platform.publicAccessCidrs": ["0.0.0.0/0"],
        "platform.network": {"kind": "existing", "vpcId": "vpc"},
        "gpuNodes.count": 1,
        "gpuNodes.amiRelease": "1.34.2-20260818",
        "weights.capacityGib": 1300,
        "serving.image": "vllm/vllm-openai:latest",
        "serving.vllmVersion": "0.28.0",
        "serving.tensorParallel": 7,
        "serving.maxModelLen": 300_000,
        "prices.gpuNode": 50.0,
    }.items():
        raw = change(raw, path, value)
    error = refused(raw, api_key_given=False)
    assert {dotted(problem.path) for problem in error.problems} == {
        "name",
        "gpuNode",
        "platform.availabilityZone",
        "platform.publicAccessCidrs[0]",
        "platform.network.vpcId",
        "platform.network.controlPlaneSubnetIds",
        "platform.network.gpuSubnetId",
        "gpuNodes",
        "gpuNodes.amiRelease",
        "weights.capacityGib",
        "serving.image",
        "serving.vllmVersion",
        "serving.tensorParallel",
        "serving.maxModelLen",
        "prices.gpuNode",
        "apiKey",
    }
    text = str(error)
    assert "16 settings must be mended" in text
    for problem in error.problems:
        assert problem.allowed
        assert problem.mends
    assert text.count("given:") == text.count("allowed:") == 16
    assert text.count("   type:") >= 16


@pytest.mark.parametrize("shape", [{}, {"gpus": None}, {"efa": "many", "nvmeGb": -1}])
def test_a_section_that_lacks_many_values_is_refused_once_each(raw: Raw, shape: Raw) -> None:
    problems = refused(change(raw, "gpuNodes.instanceType", shape)).problems
    places = [dotted(problem.path) for problem in problems]
    assert {f"gpuNodes.instanceType.{key}" for key in ("gpu", "gpus", "vcpus", "memoryGib")} <= set(places)
    assert len(places) == len(set(places))


def test_a_rule_is_not_asked_about_a_section_that_is_missing(raw: Raw) -> None:
    del raw["platform"]
    raw = change(raw, "gpuNodes.amiRelease", "1.34.2-20260818")
    assert [dotted(problem.path) for problem in refused(raw).problems] == ["platform"]


def test_an_empty_file_is_told_what_is_missing() -> None:
    problems = refused({}).problems
    assert [dotted(problem.path) for problem in problems] == [
        "name",
        "model",
        "platform",
        "gpuNodes",
        "weights",
    ]
    plan(mended({}, problems), api_key_given=True)


@pytest.mark.parametrize("broken", [[], "text", {1: 2}, {"platform": [], "gpuNodes": "two"}, {"platform": None}])
def test_a_file_of_another_shape_is_refused_without_a_traceback(broken: Any) -> None:
    assert refused(broken).problems


def test_a_missing_api_key_is_refused(raw: Raw) -> None:
    error = refused(raw, api_key_given=False)
    assert "1. apiKey" in str(error)
    assert "pulumi config set --secret apiKey" in str(error)
    assert "serving.allowAnonymous: true" in " ".join(str(error).split())


def test_an_api_key_is_not_asked_for_where_anonymous_use_is_chosen(raw: Raw) -> None:
    assert plan(change(raw, "serving.allowAnonymous", True), api_key_given=False).serving


def test_a_misfit_names_the_three_cheapest_fits_with_their_price(raw: Raw) -> None:
    problem = refused(change(raw, "gpuNodes.count", 1)).problems[0]
    offers = [line for line in problem.allowed.splitlines() if line.startswith("- ")]
    prices = [float(offer.split(" KV tokens, ")[1].split(" USD/h")[0]) for offer in offers]
    assert len(offers) == 3
    assert prices == sorted(prices)


def test_a_length_that_outgrows_the_kv_cache_is_refused_with_the_longest_that_fits(raw: Raw) -> None:
    raw = change(change(raw, "gpuNodes.count", 1), "gpuNodes.instanceType", "g7e.48xlarge")
    raw = change(raw, "serving.tensorParallel", 8)
    problems = refused(change(raw, "serving.maxModelLen", 262_144)).problems
    assert [dotted(problem.path) for problem in problems] == ["serving.maxModelLen"]
    assert "the KV tokens that 1 x g7e.48xlarge leave free" in problems[0].allowed


def test_weights_that_outgrow_the_cache_are_refused(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    # A checkpoint larger than the smallest file system is not in the catalogue: tell the rule of one.
    larger: Callable[[object], float] = lambda _: 1.3e12  # noqa: E731 (one figure)
    monkeypatch.setattr("planner.weights.checkpoint_bytes", larger)
    problems = refused(change(raw, "weights.capacityGib", 1200)).problems
    assert dotted(problems[0].path) == "weights.capacityGib"
    assert problems[0].mends[0].value == 2400


def test_the_default_stack_is_accepted(raw: Raw) -> None:
    assert plan(raw, api_key_given=True).serving is not None


@pytest.mark.parametrize("model", ["minimax-m2.5", "qwen3.5-397b-a17b-gptq-int4"])
def test_every_fit_that_a_misfit_names_is_accepted(raw: Raw, model: str) -> None:
    raw = change(change(raw, "model", model), "serving.vllmVersion", "0.27.1")
    raw = change(change(raw, "gpuNodes.instanceType", "g6.12xlarge"), "gpuNodes.count", 1)
    raw = change(raw, "serving.gpuMemoryUtilization", 0.5)
    problem = next(problem for problem in refused(raw).problems if dotted(problem.path) == "gpuNodes")
    offers = [line.removeprefix("- ").split(",")[0] for line in problem.allowed.splitlines() if line.startswith("- ")]
    assert offers
    for offer in offers:
        nodes, instance = offer.split(" x ")
        plan(change(change(raw, "gpuNodes.instanceType", instance), "gpuNodes.count", int(nodes)), api_key_given=True)


def test_a_value_where_a_section_or_list_belongs_is_taken_out_first(raw: Raw) -> None:
    for place, value in (("platform", "eks"), ("platform.publicAccessCidrs", "203.0.113.7/32")):
        (problem,) = refused(change(raw, place, value)).problems
        assert dotted(problem.path) == place
        assert problem.mends[0] == Mend(problem.path, None)
        assert len(problem.mends) > 1


def test_a_length_above_the_context_is_one_problem(raw: Raw) -> None:
    (problem,) = refused(change(raw, "serving.maxModelLen", 10_000_000)).problems
    assert "262144" in problem.allowed


def test_an_unknown_choice_is_not_answered_with_its_own_key(raw: Raw) -> None:
    error = refused(change(raw, "purchase", {"kind": "capacity_block", "id": "cr-1"}))
    assert "did you mean kind" not in str(error)
    assert "purchase.kind' on_demand" in str(error)


def test_commands_in_a_refusal_can_be_copied(raw: Raw) -> None:
    lines = str(refused(change(raw, "platform.kubernetesVersion", "1.36"))).splitlines()
    commands = [line for line in lines if "aws ssm get-parameter" in line]
    assert commands
    assert all(line.endswith("/recommended/release_version") for line in commands)


@pytest.mark.parametrize("place", ["staging.packageIndex", "staging.hubEndpoint"])
def test_an_address_without_scheme_is_refused(raw: Raw, place: str) -> None:
    (problem,) = refused(change(raw, place, "huggingface.co")).problems
    assert "https://" in problem.allowed


@pytest.mark.parametrize(("place", "value"), [("gpuNodes.count", True), ("prices.gpuNodes", float("inf"))])
def test_what_only_looks_like_a_number_is_refused(raw: Raw, place: str, value: object) -> None:
    assert refused(change(raw, place, value)).problems
