"""What the user gives the stack: the stack file's settings, checked and planned, and the secrets beside them."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi import Output
from pulumi.runtime import get_config

from components.staging_pod import Secrets
from planner import SettingsError, plan, report
from planner.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """`api_key` is None where the stack file allows anonymous use; `sources`: what the weights' source may ask for."""

    plan: Plan
    api_key: Output[str] | None
    sources: Secrets


def read() -> Inputs:
    """The stack's configuration; the plan is shown. Raises RunError that names every problem of the stack file."""
    config = pulumi.Config()
    # vLLM takes an empty key for none: the API would be open to everybody.
    key_given = bool((get_config(config.full_key("apiKey")) or "").strip())
    sources = Secrets(
        hub_token=config.get_secret("huggingFaceToken"),
        s3_access_key_id=config.get_secret("s3AccessKeyId"),
        s3_secret_access_key=config.get_secret("s3SecretAccessKey"),
    )
    try:
        settings = config.get_object("deployment") or {}
        planned = plan(settings, api_key_given=key_given, hub_token_given=sources.hub_token is not None)
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    pulumi.log.info(report.plain_text(report.render(planned)))
    return Inputs(plan=planned, api_key=config.get_secret("apiKey") if key_given else None, sources=sources)
