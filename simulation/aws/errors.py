"""The errors of the simulated account. Each text is all that the user gets to see."""

from __future__ import annotations


class SimulationError(Exception):
    """A refusal that the engine shows as it is, without a traceback."""


class AwsError(SimulationError):
    """What AWS answers: an error code of the service's API and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
