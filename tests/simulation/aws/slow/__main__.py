"""Twelve file systems side by side, and a network that is not held up by them."""

from pulumi_aws import ec2, fsx

network = ec2.Vpc("main", cidr_block="10.0.0.0/16")
subnet = ec2.Subnet("gpu", vpc_id=network.id, cidr_block="10.0.0.0/20", availability_zone="us-east-1a")
for number in range(12):
    fsx.LustreFileSystem(f"cache-{number}", subnet_ids=subnet.id)
