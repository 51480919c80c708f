"""What the real provider does to inputs before it plans: generated names, defaults, policy documents as text."""

from __future__ import annotations

import hashlib
import json
import secrets

from simulation.aws.schema import ResourceType
from simulation.aws.values import Properties

_DEFAULTED = "__defaults"
"""Where the provider notes which inputs it has filled in, so that it may change them later."""
_POLICIES = ("assumeRolePolicy", "policy")
_NAME_LENGTH = {"aws:iam/role:Role": 64, "aws:s3/bucket:Bucket": 63}
_DIGITS = 7


def complete(
    resource_type: ResourceType, name: str, inputs: Properties, old_inputs: Properties, seed: bytes
) -> Properties:
    """`inputs` with a name if it is left out (the old one where there is one) and policies as JSON text.

    Defaults that cannot be read back are filled in too, so that they differ from an imported resource that lacks them.
    """
    completed = {key: resource_type.defaults[key] for key in resource_type.unread if resource_type.defaults.get(key)}
    completed |= {key: _text(value) if key in _POLICIES else value for key, value in inputs.items()}
    named = resource_type.autonamed
    completed[_DEFAULTED] = []
    if named and named not in inputs and f"{named}Prefix" not in inputs:
        was_generated = named in old_inputs.get(_DEFAULTED, [])
        completed[named] = old_inputs[named] if was_generated else _generated(resource_type, name, seed)
        completed[_DEFAULTED] = [named]
    elif named and named not in inputs:
        completed[named] = old_inputs.get(named) or inputs[f"{named}Prefix"] + secrets.token_hex(13)
        completed[_DEFAULTED] = [named]
    return completed


def chosen_name_stays(resource_type: ResourceType, old_state: Properties, new_inputs: Properties) -> bool:
    """Whether old and new resource would bear one name, chosen by the program: they cannot exist at once."""
    named = resource_type.autonamed
    if named is None or named in new_inputs.get(_DEFAULTED, []):
        return False
    return bool(new_inputs.get(named) == old_state.get(named))


def _generated(resource_type: ResourceType, name: str, seed: bytes) -> str:
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(_DIGITS)
    longest = _NAME_LENGTH.get(resource_type.token, 255) - _DIGITS - 1
    return f"{name[:longest]}-{digits[:_DIGITS]}"


def _text(document: object) -> object:
    return json.dumps(document, sort_keys=True) if isinstance(document, dict) else document
