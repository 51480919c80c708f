"""A file system and a bucket that stay on destroy and are taken over by id.

`cache:adopt` maps logical names to ids; `cache:ignore` leaves the file system's security groups as they are.
"""

import pulumi
from pulumi import ResourceOptions
from pulumi_aws import ec2, fsx, s3, vpc

config = pulumi.Config()
adopted: dict[str, str] = config.get_object("adopt") or {}
ignored = ["security_group_ids"] if config.get_bool("ignore") else []


def kept(name: str) -> ResourceOptions:
    return ResourceOptions(retain_on_delete=True, import_=adopted.get(name))


network = ec2.Vpc("main", cidr_block="10.0.0.0/16", opts=kept("main"))
subnet = ec2.Subnet(
    "gpu", vpc_id=network.id, cidr_block="10.0.0.0/20", availability_zone="us-east-1a", opts=kept("gpu")
)
group = ec2.SecurityGroup("lustre", name="lustre", vpc_id=network.id, description="Lustre", opts=kept("lustre"))
rules = [
    rule(
        "self",
        security_group_id=group.id,
        referenced_security_group_id=group.id,
        ip_protocol="-1",
        opts=kept(name),
    )
    for name, rule in (("in", vpc.SecurityGroupIngressRule), ("out", vpc.SecurityGroupEgressRule))
]
file_system = fsx.LustreFileSystem(
    "weights",
    subnet_ids=subnet.id,
    security_group_ids=[group.id],
    deployment_type="PERSISTENT_2",
    per_unit_storage_throughput=1000,
    storage_capacity=2400,
    opts=ResourceOptions.merge(kept("weights"), ResourceOptions(depends_on=rules, ignore_changes=ignored)),
)
bucket = s3.Bucket("models", bucket="models", force_destroy=True, opts=kept("models"))
ec2.PlacementGroup("near", strategy="cluster")
pulumi.export("mount", file_system.mount_name)
