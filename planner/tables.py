"""The look of tables and bars, and plain text of them. No figures of its own."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

WIDTH = 100


def table(*columns: str, left: int, fold: str = "") -> Table:
    """A table whose first `left` columns hold text, the others numbers; the column `fold` may break its lines."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index < left else "right", no_wrap=column != fold, overflow="fold")
    return made


def listing(lines: Iterable[tuple[str, str]]) -> Table:
    """A list of (mark, text), the text in a column of its own."""
    made = Table.grid(padding=(0, 1))
    for mark, text in lines:
        made.add_row(mark, text)
    return made


def bar(shares: Sequence[tuple[str, str, float]], width: int) -> Text:
    """A stacked bar of `width` characters: (character, style, size) for each share, largest remainders rounded up."""
    whole = sum(size for _, _, size in shares)
    exact = [width * size / whole for _, _, size in shares]
    lengths = [int(length) for length in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: lengths[index] - exact[index])
    for index in by_remainder[: width - sum(lengths)]:
        lengths[index] += 1
    made = Text()
    for (character, style, _), length in zip(shares, lengths, strict=True):
        made.append(character * length, style=style)
    return made


def plain_text(parts: Iterable[RenderableType]) -> str:
    """Rendered without colours or control sequences, at most 100 columns wide: for logs and diagnostics."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(*parts, sep="\n")
    assert isinstance(console.file, io.StringIO)  # noqa: S101 (narrows the type for mypy)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def short(count: float | None) -> str:
    """A count in three figures: 901 k, 1.41 M, 2.5 G; empty for None."""
    if count is None:
        return ""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return f"{count:.3g}"
