"""What is wrong with a stack file, told so that it can be mended."""

from __future__ import annotations


class SettingsError(Exception):
    """A stack file that is refused: one message that names every problem of it."""
