"""Bars and short counts."""

from __future__ import annotations

import pytest

from planner import memory
from planner.catalogue import CATALOGUE
from planner.hardware import H100, H200
from planner.models import Model
from planner.overhead import Load
from planner.parallelism import Parallelism
from planner.report_fit import BAR_WIDTH, render_fit
from planner.settings import Serving
from planner.tables import bar, plain_text, short

KIMI: Model = CATALOGUE["kimi-k2.5"]


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (36.5, 5.2, 30.0), (99.0, 0.4, 0.6)])
def test_a_bar_is_as_wide_as_asked_for_whatever_is_rounded(sizes: tuple[float, ...]) -> None:
    shares = tuple((letter, "", size) for letter, size in zip("abc", sizes, strict=True))
    drawn = bar(shares, 40).plain
    assert len(drawn) == 40
    for letter, size in zip("abc", sizes, strict=True):
        assert abs(drawn.count(letter) - 40 * size / sum(sizes)) < 1


def bars(fit: memory.Fit) -> list[str]:
    return [line[9:] for line in plain_text(render_fit(fit)).splitlines() if line.startswith("stage ")]


def test_each_stage_has_a_bar_of_weights_overhead_cache_and_the_rest() -> None:
    drawn = bars(memory.fit(KIMI, H100, Parallelism(8, 2), Load.of(Serving())))
    assert [len(line) for line in drawn] == [BAR_WIDTH, BAR_WIDTH]
    assert all(set(line) == set("█▓▒░") for line in drawn)


def test_the_bar_of_a_misfit_shows_no_room() -> None:
    (drawn,) = bars(memory.fit(KIMI, H100, Parallelism(8, 1), Load.of(Serving())))
    assert len(drawn) == BAR_WIDTH
    assert set(drawn) == set("█▓")


def test_a_larger_gpu_has_a_shorter_bar_of_weights() -> None:
    shape = Parallelism(8, 2)
    small, large = (bars(memory.fit(KIMI, gpu, shape, Load.of(Serving())))[0] for gpu in (H100, H200))
    assert large.count("█") < small.count("█")


@pytest.mark.parametrize(
    ("count", "text"), [(None, ""), (7, "7"), (901_216, "901 k"), (1_414_000, "1.41 M"), (2.5e9, "2.5 G")]
)
def test_a_short_count_has_three_figures(count: float | None, text: str) -> None:
    assert short(count) == text
