"""`operations.stop` on moto, which starts and ends no instance of a node group: the tests do that in EKS's place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from operations import stop
from operations.account import connect
from planner.command_line import REFUSED
from tests.operations import shell
from tests.operations.made import NAME, REGION, Made

pytestmark = pytest.mark.slow

GPU = f"{NAME}-gpu"


@dataclass(slots=True)
class Clock:
    """Time that passes while the command sleeps, and what happens meanwhile."""

    now: float = 0.0
    meanwhile: Callable[[], object] = field(default=lambda: None)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stop, "time", made)
    return made


@pytest.fixture
def node(aws: Made) -> str:
    """A GPU node of a stack that runs."""
    subnet = aws.network()["subnet"]
    aws.cluster(subnet, NAME, NAME, GPU, "system-nodes-group")
    aws.instance(subnet, "c6in.4xlarge", **{"vllm-multinode": NAME, "eks:nodegroup-name": "system-nodes-group"})
    return aws.gpu_node(subnet)


def run(*words: str, typed: str = "") -> Result:
    result = CliRunner().invoke(stop.app, ["Pulumi.dev.yaml", *words], input=typed)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def scaling(aws: Made, group: str = GPU) -> tuple[int, int, int]:
    about = aws.client("eks").describe_nodegroup(clusterName=NAME, nodegroupName=group)["nodegroup"]["scalingConfig"]
    return about["minSize"], about["desiredSize"], about["maxSize"]


def test_the_gpu_nodes_end_and_nothing_else_does(aws: Made, clock: Clock, node: str) -> None:
    clock.meanwhile = lambda: aws.ec2.terminate_instances(InstanceIds=[node])
    result = run("--yes")
    assert result.exit_code == 0, result.output
    assert scaling(aws) == (0, 0, 2)
    assert scaling(aws, "system-nodes-group") == (2, 2, 2)
    assert "no GPU node runs. `pulumi up --refresh` resumes" in result.stdout
    assert clock.now == stop.PAUSE_SECONDS
    assert "c6in.4xlarge, running" in " ".join(result.stdout.split())
    assert "USD per hour. `pulumi destroy` ends that." in result.stdout
    assert node not in result.stdout


def test_it_asks_first_and_no_changes_nothing(aws: Made, clock: Clock, node: str) -> None:
    result = run(typed="n\n")
    assert result.exit_code == stop.STILL_RUNS
    assert "1 GPU nodes, 55.04 USD per hour" in result.stdout
    assert scaling(aws) == (2, 2, 2)
    assert (
        aws.ec2.describe_instances(InstanceIds=[node])["Reservations"][0]["Instances"][0]["State"]["Name"] == "running"
    )
    clock.meanwhile = lambda: aws.ec2.terminate_instances(InstanceIds=[node])
    assert run(typed="y\n").exit_code == 0
    assert scaling(aws) == (0, 0, 2)


def test_twice_is_harmless_and_asks_nothing(aws: Made, clock: Clock, node: str) -> None:
    clock.meanwhile = lambda: aws.ec2.terminate_instances(InstanceIds=[node])
    run("--yes")
    changed = aws.client("eks").describe_nodegroup(clusterName=NAME, nodegroupName=GPU)["nodegroup"]["modifiedAt"]
    again = run()
    assert again.exit_code == 0
    assert "Stop them?" not in again.output
    after = aws.client("eks").describe_nodegroup(clusterName=NAME, nodegroupName=GPU)["nodegroup"]["modifiedAt"]
    assert after == changed


@pytest.mark.usefixtures("aws", "clock")
def test_a_stack_that_is_not_there_is_stopped() -> None:
    result = run()
    assert result.exit_code == 0
    assert "no GPU node runs" in result.stdout


@pytest.mark.usefixtures("node")
def test_instances_that_do_not_end_are_told_with_what_ends_them(
    aws: Made, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "MINUTES", 1)
    result = run("--yes")
    assert result.exit_code == stop.STILL_RUNS
    assert clock.now == pytest.approx(stop.MINUTES * 60, abs=stop.PAUSE_SECONDS)
    commands = [line for line in result.stdout.splitlines() if line.startswith("aws ")]
    assert [command.split()[2] for command in commands] == ["update-auto-scaling-group", "terminate-instances"]
    make_scaling_group(aws, commands[0].split()[-3])
    for command in commands:
        shell.run(aws, command)
    assert run("--yes").exit_code == 0


def make_scaling_group(aws: Made, name: str) -> None:
    """moto names one for each node group, and makes none."""
    subnet = aws.ec2.describe_subnets(Filters=[{"Name": "tag:vllm-multinode", "Values": [NAME]}])["Subnets"][0][
        "SubnetId"
    ]
    scaling = aws.client("autoscaling")
    scaling.create_launch_configuration(
        LaunchConfigurationName=name, ImageId="ami-12c6146b", InstanceType="p5.48xlarge"
    )
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName=name,
        MinSize=0,
        MaxSize=2,
        DesiredCapacity=0,
        VPCZoneIdentifier=subnet,
    )


def test_a_busy_node_group_is_told_again(aws: Made, clock: Clock, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account = connect(REGION)
    real, refusals = account.ask, iter(["busy", "busy"])

    def busy(service: str, operation: str, **request: Any) -> dict[str, Any]:
        if operation == "update_nodegroup_config" and next(refusals, None):
            with Stubber(account.client(service)) as eks:
                eks.add_client_error(operation, "ResourceInUseException", "Nodegroup is currently UPDATING")
                return real(service, operation, **request)
        return real(service, operation, **request)

    monkeypatch.setattr(account, "ask", busy)
    monkeypatch.setattr(stop, "connect", lambda _: account)
    clock.meanwhile = lambda: scaling(aws)[1] == 0 and aws.ec2.terminate_instances(InstanceIds=[node])
    result = run("--yes")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("EKS is busy") == 2
    assert scaling(aws) == (0, 0, 2)


@pytest.mark.usefixtures("clock")
def test_a_node_group_of_somebody_else_is_left_alone(aws: Made) -> None:
    aws.cluster(aws.network()["subnet"], NAME, None, GPU)
    assert run("--yes").exit_code == 0
    assert scaling(aws) == (2, 2, 2)


@pytest.mark.usefixtures("clock", "node")
def test_a_missing_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    account = connect(REGION)
    monkeypatch.setattr(stop, "connect", lambda _: account)
    with Stubber(account.client("eks")) as eks:
        eks.add_client_error("describe_nodegroup", "AccessDeniedException", "not authorized")
        result = run("--yes")
    assert result.exit_code == REFUSED
    assert "The permission eks:DescribeNodegroup is missing." in " ".join(result.stderr.split())


def test_json_asks_nobody() -> None:
    result = run("--json")
    assert result.exit_code == REFUSED
    assert json.loads(result.stdout)["problems"][0]["type"] == ["--json --yes"]


def test_json_tells_what_still_bills(aws: Made, clock: Clock, node: str) -> None:
    clock.meanwhile = lambda: aws.ec2.terminate_instances(InstanceIds=[node])
    result = run("--json", "--yes")
    found = json.loads(result.stdout)
    assert found["running"] == found["by_hand"] == []
    assert {item["kind"] for item in found["found"] if item["bills"]} == {
        "cluster",
        "instance",
        "NAT gateway",
        "address",
    }
