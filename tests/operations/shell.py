"""Runs the commands of the AWS CLI that are printed, by botocore's model of the services, against moto.

The CLI derives its commands and options from the same model by the same rule, so that a command which is wrong there
fails here. The few words of shell around them are known by heart: `&&`, and the loop that waits for a file system.
"""

from __future__ import annotations

import shlex
from typing import Any

from botocore import xform_name

from tests.operations.made import REGION, Made


def run(made: Made, line: str) -> None:
    """One printed line; raises what AWS refuses, and KeyError for a command or an option that does not exist."""
    for command in line.split(" && "):
        if command.startswith("while "):
            loop = command.removeprefix("while ").partition(" > /dev/null")[0]
            # Where FSx refuses to tell of what is gone, moto tells of nothing.
            assert _call(made, loop)["FileSystems"] == []
        else:
            _call(made, command)


def _call(made: Made, command: str) -> dict[str, Any]:
    aws, service, operation, *words = shlex.split(command)
    assert aws == "aws"
    if (service, operation) == ("s3", "rb"):  # the CLI's own, of no model
        return _remove_bucket(made, *words)
    waits = operation == "wait"
    if waits:
        operation = words.pop(0)
    client = made.client(service)
    options = _options(words)
    assert options.pop("region") == [REGION]
    if waits:
        waiter = client.get_waiter(operation.replace("-", "_"))
        waiter.config.delay, waiter.config.max_attempts = 0, 3
        target = xform_name(waiter.config.operation)
        waiter.wait(**_request(client, target, options))
        return {}
    method = operation.replace("-", "_")
    answer: dict[str, Any] = getattr(client, method)(**_request(client, method, options))
    return answer


def _options(words: list[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            values = options[word.removeprefix("--")] = []
        else:
            values.append(word)
    return options


def _request(client: Any, method: str, options: dict[str, list[str]]) -> dict[str, Any]:
    """Options as parameters of the call, each of its own type."""
    model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method])
    members = {xform_name(name, "-"): (name, shape) for name, shape in model.input_shape.members.items()}
    request: dict[str, Any] = {}
    for option, values in options.items():
        name, shape = members[option]
        if shape.type_name == "list":
            request[name] = values
        elif shape.type_name == "boolean":
            assert not values
            request[name] = True
        elif shape.type_name == "structure":
            pairs = (value.split("=") for value in values)
            request[name] = {key: {"true": True, "false": False}[value] for key, value in pairs}
        else:
            (value,) = values
            request[name] = int(value) if shape.type_name == "integer" else value
    return request


def _remove_bucket(made: Made, address: str, *options: str) -> dict[str, Any]:
    assert options == ("--force", "--region", REGION)
    bucket = address.removeprefix("s3://")
    for item in made.client("s3").list_objects_v2(Bucket=bucket).get("Contents", ()):
        made.client("s3").delete_object(Bucket=bucket, Key=item["Key"])
    answer: dict[str, Any] = made.client("s3").delete_bucket(Bucket=bucket)
    return answer
