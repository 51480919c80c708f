"""What a stack makes in AWS, made in moto: the same kinds, names and tags, as components/ has them."""

from __future__ import annotations

import json
from typing import Any

REGION, ZONE, NAME = "us-east-1", "us-east-1a", "kimi-k25"
ACCOUNT = "123456789012"
IMAGE = "ami-12c6146b"  # one of moto's own
POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
)
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


class Made:
    """Clients of the account, and a stack to be left behind in it."""

    def __init__(self, session: Any) -> None:
        self._session, self._clients = session, dict[str, Any]()

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.client(service, region_name=REGION)
        return self._clients[service]

    @property
    def used(self) -> bool:
        """Whether the test may have made something."""
        return bool(self._clients)

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    def tag(self, *ids: str, name: str = NAME) -> None:
        self.ec2.create_tags(Resources=list(ids), Tags=[{"Key": "vllm-multinode", "Value": name}])

    def network(self, name: str = NAME) -> dict[str, str]:
        """VPC, subnet, gateway, address, NAT, endpoint to S3; no association: in moto it would outlive its subnet."""
        ec2 = self.ec2
        vpc = ec2.create_vpc(CidrBlock="10.42.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.42.0.0/20", AvailabilityZone=ZONE)["Subnet"]["SubnetId"]
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        address = ec2.allocate_address(Domain="vpc")["AllocationId"]
        nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
        service = f"com.amazonaws.{REGION}.s3"
        endpoint = ec2.create_vpc_endpoint(
            VpcEndpointType="Gateway", VpcId=vpc, ServiceName=service, RouteTableIds=[table]
        )["VpcEndpoint"]
        made = {
            "vpc": vpc,
            "subnet": subnet,
            "internet gateway": gateway,
            "route table": table,
            "address": address,
            "NAT gateway": nat,
            "VPC endpoint": endpoint["VpcEndpointId"],
        }
        self.tag(*made.values(), name=name)
        return made

    def cluster(self, subnet: str, name: str = NAME, tag: str | None = NAME, *groups: str) -> None:
        """The control plane with node groups."""
        tags = {} if tag is None else {"vllm-multinode": tag}
        eks = self.client("eks")
        role = f"arn:aws:iam::{ACCOUNT}:role/cluster-role-0123abc"
        vpc_config = {"subnetIds": [subnet]}
        eks.create_cluster(name=name, version="1.35", roleArn=role, resourcesVpcConfig=vpc_config, tags=tags)
        for group in groups:
            eks.create_nodegroup(
                clusterName=name,
                nodegroupName=group,
                nodeRole=role,
                subnets=[subnet],
                instanceTypes=["p5.48xlarge"],
                scalingConfig={"minSize": 2, "desiredSize": 2, "maxSize": 2},
                tags=tags,
            )

    def instance(self, subnet: str, kind: str = "p5.48xlarge", **tags: str) -> str:
        """A running instance."""
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        started = self.ec2.run_instances(
            ImageId=IMAGE,
            InstanceType=kind,
            SubnetId=subnet,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}] if pairs else [],
        )
        return str(started["Instances"][0]["InstanceId"])

    def gpu_node(self, subnet: str, name: str = NAME) -> str:
        """An instance as EKS starts it from the GPU nodes' launch template."""
        return self.instance(
            subnet,
            **{
                "Name": f"{name}-gpu",
                "vllm-multinode": name,
                "eks:cluster-name": name,
                "eks:nodegroup-name": f"{name}-gpu",
            },
        )

    def file_system(self, subnet: str, name: str = NAME) -> str:
        """FSx for Lustre, 2400 GiB."""
        made = self.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=2400,
            StorageType="SSD",
            SubnetIds=[subnet],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
            Tags=[{"Key": "vllm-multinode", "Value": name}],
        )
        return str(made["FileSystem"]["FileSystemId"])

    def role(self, role: str, name: str = NAME) -> None:
        """A role with an attached and an inline policy."""
        iam = self.client("iam")
        tags = [{"Key": "vllm-multinode", "Value": name}]
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=TRUST, Tags=tags)
        policy = iam.create_policy(PolicyName=f"{role}-policy", PolicyDocument=POLICY)["Policy"]["Arn"]
        iam.attach_role_policy(RoleName=role, PolicyArn=policy)
        iam.put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=POLICY)
