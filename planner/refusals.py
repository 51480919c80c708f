"""What a command refuses: each problem with where it is, what is allowed and what to type, as text or as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.problems import Mend, Problem, SettingsError, config_command, labelled, place_of, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One problem. `where`: a flag, a file or a setting; `type_`: what to type, all of it, to be accepted."""

    where: str
    given: object = None
    allowed: str
    type_: tuple[str, ...] = ()

    def text(self) -> str:
        """As `problems.render` tells a setting's problem."""
        heading = self.where if self.given is None else f"{self.where} {self.given}"
        return "\n".join((heading, *labelled("allowed", self.allowed), *(f"   type:    {line}" for line in self.type_)))

    def data(self) -> dict[str, object]:
        """For programs: `given` is null where nothing was."""
        given = self.given if isinstance(self.given, str | int | float | None) else str(self.given)
        return {"where": self.where, "given": given, "allowed": self.allowed, "type": list(self.type_)}


class RefusedError(ValueError):
    """Input that is refused; the message tells every problem."""

    def __init__(self, refusals: Iterable[Refusal], message: str = "") -> None:
        self.refusals = tuple(refusals)
        super().__init__(message or "\n".join(refusal.text() for refusal in self.refusals))

    def data(self) -> dict[str, object]:
        """For programs."""
        return {"problems": [refusal.data() for refusal in self.refusals]}


def of_settings(error: SettingsError, flags: dict[tuple[str, ...], str] | None = None) -> RefusedError:
    """A stack file's problems; where `flags` describe the stack, with flags to type instead of `pulumi config`."""

    def command(mend: Mend) -> str:
        flag = (flags or {}).get(tuple(str(step) for step in mend.path))
        if flag is None:
            return config_command(mend)
        return f"leave out {flag}" if mend.value is None else f"{flag} {mend.value}"

    def refusal(problem: Problem) -> Refusal:
        typed = tuple(command(mend) for mend in problem.mends)
        return Refusal(where=place_of(problem), given=problem.given, allowed=problem.allowed, type_=typed)

    return RefusedError(map(refusal, error.problems), render(error.problems, command))
