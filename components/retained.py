"""Finding what an earlier `pulumi destroy` left on purpose (`weights.retain`), so that the next `up` adopts it."""

from __future__ import annotations

from pulumi import InvokeOptions, Resource
from pulumi_aws import resourcegroupstaggingapi

from components.launch_template import STACK_TAG

PART_TAG = "vllm-multinode/part"
"""Which part of the stack a resource is: two of one type would not be told apart otherwise."""


def retained_id(kind: str, name: str, part: str, parent: Resource) -> str | None:
    """Id of the resource of `kind` (as `fsx:file-system`) that carries the stack's tags, None if there is none.

    It may as well be one that the stack has: Pulumi imports nothing whose id it knows.
    """
    found = resourcegroupstaggingapi.get_resources(
        resource_type_filters=[kind],
        tag_filters=[{"key": STACK_TAG, "values": [name]}, {"key": PART_TAG, "values": [part]}],
        opts=InvokeOptions(parent=parent),
    )
    arns = sorted(mapping.resource_arn for mapping in found.resource_tag_mapping_lists)
    return arns[0].rpartition(":")[2].rpartition("/")[2] if arns else None
