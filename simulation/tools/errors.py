"""The one error for what a user can mend: a program that is missing, a stack file that cannot be made."""

from __future__ import annotations


class SetupError(RuntimeError):
    """The stand-in cannot be set up; the message says why and what to type."""
