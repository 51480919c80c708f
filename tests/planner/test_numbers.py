"""`true` and `false` where a number belongs: Python would take them for 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from planner import plan
from planner.problems import dotted
from planner.sections import Section
from planner.settings import Deployment
from tests.planner.test_refusals import change, mended, refused

Raw = dict[str, Any]


def _may_be_text(annotation: object) -> bool:
    return annotation is str or any(map(_may_be_text, get_args(annotation)))


def numeric_settings(section: type[Section], place: str = "") -> Iterator[str]:
    """The path of every setting that holds a number, in the file's spelling; lists are left out."""
    for field in section.model_fields.values():
        path, pending, inner = f"{place}{field.alias}", [field.annotation], []
        while pending:
            kind = pending.pop()
            pending += get_args(kind)
            inner += [kind] if isinstance(kind, type) and issubclass(kind, Section) else []
            if kind in (int, float) or isinstance(kind, int):
                yield f"{path}.gpuNodes" if str(field.annotation).startswith("dict") else path
        # Of several kinds the default is looked at: the file need not say which it is. What may be a name is one.
        if inner and not _may_be_text(field.annotation):
            yield from numeric_settings(inner[-1], f"{path}.")


NUMERIC = sorted(set(numeric_settings(Deployment)))


def test_numeric_settings_are_found() -> None:
    assert {"maxHourlyPrice", "prices.gpuNodes", "gpuNodes.count", "serving.tensorParallel"} <= set(NUMERIC)
    assert len(NUMERIC) >= 10


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("place", NUMERIC)
def test_true_and_false_are_no_numbers(raw: Raw, place: str, value: bool) -> None:
    problems = {dotted(problem.path): problem for problem in refused(change(raw, place, value)).problems}
    assert problems[place].given is value
    assert problems[place].mends
    plan(mended(change(raw, place, value), (problems[place],)), api_key_given=True)


def test_bytes_of_a_described_model_are_no_truth_value(raw: Raw) -> None:
    described = {"repository": "some/Model", "config": {}, "checkpointBytes": True}
    (problem,) = refused(change(raw, "model", described)).problems
    assert "checkpointBytes of an inline model is of the wrong kind" in problem.allowed
