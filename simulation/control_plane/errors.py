"""The one error that callers of the control plane see for a mistake or a failure they can act on."""

from __future__ import annotations


class ControlPlaneError(RuntimeError):
    """Says what is wrong with the local control plane and what to do about it."""
