"""Holds mypy to checking the SDKs' classes: nothing here runs.

`follow_imports = skip` keeps type checking quick, and with another style of import it silently checks nothing. Then the
errors below would vanish, their `type: ignore` would be unused, and strict mode fails on that.
"""

from __future__ import annotations

from pulumi_aws import ec2, eks
from pulumi_kubernetes.core.v1 import Namespace


def wrong_uses() -> None:
    """Each line is an error that mypy must see."""
    ec2.Vpc("vpc", cidr_blok="10.0.0.0/16")  # type: ignore[call-overload]
    eks.Addon("addon", addon_name="coredns", cluster_name=1)  # type: ignore[call-overload]
    Namespace("namespace", metadata={"nam": "x"})  # type: ignore[call-overload]
