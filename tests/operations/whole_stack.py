"""A whole stack left behind in moto: what the program makes, and what EKS and controllers in its cluster add."""

from __future__ import annotations

import json

from tests.operations.made import ACCOUNT, NAME, REGION, Made


def whole_stack(aws: Made) -> dict[str, str]:
    """All kinds of things that may be left, those of controllers and of EKS among them."""
    made = aws.network()
    subnet, vpc = made["subnet"], made["vpc"]
    aws.cluster(subnet, NAME, NAME, f"{NAME}-gpu", "system-nodes-group")
    made["instance"] = aws.instance(subnet, **{"vllm-multinode": NAME})
    made["file system"] = aws.file_system(subnet)
    aws.role("cluster-role-0123abc")
    groups = [
        aws.ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"]
        for name in ("efa-1", "lustre-2")
    ]
    for group, peer in (groups, reversed(groups)):
        pair = [{"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "UserIdGroupPairs": [{"GroupId": peer}]}]
        aws.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=pair)
        aws.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=pair)
    volume = aws.ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=200, VolumeType="gp3", Throughput=500)
    snapshot = aws.ec2.create_snapshot(VolumeId=volume["VolumeId"])["SnapshotId"]
    cni = aws.ec2.create_network_interface(SubnetId=subnet, Description="aws-K8S-i-1")["NetworkInterface"]
    template = aws.ec2.create_launch_template(
        LaunchTemplateName="gpu-nodes-template-1", LaunchTemplateData={"InstanceType": "p5.48xlarge"}
    )["LaunchTemplate"]["LaunchTemplateId"]
    owned = [{"Key": f"kubernetes.io/cluster/{NAME}", "Value": "owned"}]
    aws.ec2.create_tags(Resources=[volume["VolumeId"], cni["NetworkInterfaceId"]], Tags=owned)
    aws.tag(*groups, snapshot, template)
    far = aws.ec2.create_subnet(VpcId=vpc, CidrBlock="10.42.16.0/20", AvailabilityZone=f"{REGION}b")["Subnet"]
    aws.tag(far["SubnetId"])
    load_balancers(aws, [subnet, far["SubnetId"]], vpc)
    bucket(aws)
    aws.client("logs").create_log_group(logGroupName=f"/aws/eks/{NAME}/cluster")
    schedule(aws, f"{NAME}-time-box", NAME)
    budget(aws, f"{NAME} by the month", NAME)
    return made | {"volume": volume["VolumeId"], "snapshot": snapshot, "launch template": template}


def load_balancers(aws: Made, subnets: list[str], vpc: str) -> None:
    elbv2 = aws.client("elbv2")
    elbv2.create_load_balancer(Name="k8s-api-1", Subnets=subnets, Type="application")
    elbv2.create_target_group(Name="k8s-api-1", Protocol="HTTP", Port=8000, VpcId=vpc)
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    aws.client("elb").create_load_balancer(LoadBalancerName="a0123", Listeners=[listener], Subnets=subnets)


def bucket(aws: Made, name: str = NAME) -> str:
    s3, called = aws.client("s3"), f"{name}-weights-{ACCOUNT}-{REGION}"
    s3.create_bucket(Bucket=called)
    s3.put_bucket_tagging(Bucket=called, Tagging={"TagSet": [{"Key": "vllm-multinode", "Value": name}]})
    s3.put_object(Bucket=called, Key="model/a.safetensors", Body=b"x" * 2_000_000)
    return called


def schedule(aws: Made, name: str, cluster: str) -> None:
    target = {
        "Arn": "arn:aws:scheduler:::aws-sdk:eks:updateNodegroupConfig",
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/guards-role-0123abc",
        "Input": json.dumps({"ClusterName": cluster, "NodegroupName": f"{cluster}-gpu"}),
    }
    when = {"ScheduleExpression": "at(2027-01-01T00:00:00)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    aws.client("scheduler").create_schedule(Name=name, Target=target, **when)


def budget(aws: Made, name: str, stack: str) -> None:
    about = {
        "BudgetName": name,
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "1000", "Unit": "USD"},
        "CostFilters": {"TagKeyValue": [f"user:vllm-multinode${stack}"]},
    }
    aws.client("budgets").create_budget(AccountId=ACCOUNT, Budget=about)
