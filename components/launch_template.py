"""What the launch templates of system and GPU nodes have in common."""

from __future__ import annotations

from pulumi_aws import ec2

METADATA_OPTIONS = ec2.LaunchTemplateMetadataOptionsArgs(
    http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
)
"""IMDSv2 only, and out of reach for pods."""


def root_disk(size_gib: int, mib_per_second: int | None = None) -> ec2.LaunchTemplateBlockDeviceMappingArgs:
    """The encrypted gp3 root volume of an AL2023 node; without `mib_per_second` it gives 125."""
    return ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",
        ebs=ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=size_gib,
            volume_type="gp3",
            throughput=mib_per_second,
            encrypted="true",
            delete_on_termination="true",
        ),
    )


STACK_TAG = "vllm-multinode"
"""On everything that the stack makes in AWS; its value is the deployment's name."""


def tag_specifications(name: str, role: str) -> list[ec2.LaunchTemplateTagSpecificationArgs]:
    """Tags of what EC2 makes from a launch template: the provider's default tags do not reach these."""
    tags = {"Name": f"{name}-{role}", STACK_TAG: name}
    return [
        ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
        for kind in ("instance", "volume", "network-interface")
    ]
