"""What `operations.leftovers` finds of a stack, in moto, and that the commands which it prints take all of it away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from operations import leftovers
from operations.account import connect
from operations.findings import ORDER, Prices
from operations.search_nodes import instance_price
from planner.command_line import STACK_KEY
from tests.operations import shell
from tests.operations.made import ACCOUNT, NAME, REGION, Made
from tests.operations.whole_stack import bucket, budget, schedule, whole_stack

pytestmark = pytest.mark.slow

P5, LUSTRE = 55.04, 2400 * 0.145 / 730
BILLS = leftovers.BILLS


def run(*words: str) -> Result:
    result = CliRunner().invoke(leftovers.app, words or ("Pulumi.dev.yaml",))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def data(*words: str, status: int = BILLS) -> dict[str, Any]:
    result = run(*words, "Pulumi.dev.yaml", "--json")
    assert result.exit_code == status, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def by_kind(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for item in found["found"]:
        kinds.setdefault(item["kind"], []).append(item)
    return kinds


def test_nothing_left_is_said_and_ends_with_0(aws: Made) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout.strip() == f"Nothing that was looked for bills: {NAME} in account {ACCOUNT}, {REGION}."
    assert aws


def test_the_printed_commands_take_everything_away_in_their_order(aws: Made) -> None:
    whole_stack(aws)
    before = run()
    assert before.exit_code == BILLS
    commands = [line for line in before.stdout.splitlines() if line.startswith("aws ")]
    for command in commands:
        shell.run(aws, command)
    after = run()
    assert after.exit_code == 0, after.stdout
    assert "aws " not in after.stdout


def test_every_kind_of_thing_is_found_with_its_price(aws: Made) -> None:
    made = whole_stack(aws)
    found = data()
    kinds = by_kind(found)
    assert set(ORDER) - set(kinds) == {"file system backup", "placement group", "launch template"}, "moto has neither"
    assert "default" not in {item["note"] for item in kinds["security group"]}, "AWS deletes it with the VPC alone"
    for kind in ("instance", "file system", "NAT gateway", "address", "volume", "snapshot", "subnet", "route table"):
        assert made[kind] in {item["id"] for item in kinds[kind]}, kind

    def usd(kind: str) -> list[float | None]:
        return [item["usd_per_hour"] for item in kinds[kind]]

    assert usd("instance") == [P5]
    assert usd("file system") == [pytest.approx(LUSTRE)]
    assert usd("NAT gateway") == [0.045]
    assert usd("address") == [0.005]
    assert usd("VPC endpoint") == [0]
    assert pytest.approx(200 * 0.08 / 730 + 375 * 0.04 / 730) in usd("volume")
    assert usd("snapshot") == [None]
    assert sorted(usd("load balancer"), key=str) == [0.0225, None]
    assert usd("bucket") == [pytest.approx(0.002 * 0.023 / 730)]
    assert found["complete"] is False
    assert found["usd_per_hour"] == pytest.approx(sum(item["usd_per_hour"] or 0 for item in found["found"]))


def test_nothing_stands_before_what_holds_it() -> None:
    """moto refuses less than AWS does, so that running the commands there does not show all of the order."""
    held_by = (
        ("load balancer", "target group"),
        ("load balancer", "security group"),
        ("file system", "security group rules"),
        ("file system", "network interface"),
        ("node group", "cluster"),
        ("instance", "volume"),
        ("instance", "network interface"),
        ("security group rules", "cluster"),
        ("cluster", "log group"),
        ("NAT gateway", "address"),
        ("address", "internet gateway"),
        ("VPC endpoint", "route table"),
        ("subnet", "route table"),
        ("network interface", "subnet"),
        ("security group", "VPC"),
        ("node group", "launch template"),
        ("instance", "placement group"),
        ("cluster", "role"),
    )
    for holder, held in held_by:
        assert ORDER.index(holder) < ORDER.index(held), f"{holder} must go before {held}"


def test_what_is_not_the_stack_s_is_never_named(aws: Made) -> None:
    other = f"{NAME}-b"
    net = aws.network(other)
    aws.cluster(net["subnet"], other, other, f"{other}-gpu")
    aws.gpu_node(net["subnet"], other)
    aws.file_system(net["subnet"], other)
    aws.role("cluster-role-89abcde", other)
    bucket(aws, other)
    schedule(aws, f"{other}-time-box", other)
    budget(aws, other, other)
    aws.client("logs").create_log_group(logGroupName=f"/aws/eks/{other}/cluster")
    aws.client("logs").create_log_group(logGroupName=f"/aws/eks/{NAME}/cluster-2")
    elsewhere = aws.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    shared = aws.ec2.create_security_group(GroupName="shared", Description="x", VpcId=elsewhere)["GroupId"]
    aws.ec2.create_tags(Resources=[shared], Tags=[{"Key": f"kubernetes.io/cluster/{NAME}", "Value": "shared"}])
    aws.instance(net["subnet"])
    aws.ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)
    assert data(status=0)["found"] == []


def test_a_cluster_of_the_same_name_without_the_tag_is_somebody_else_s(aws: Made) -> None:
    net = aws.network()
    aws.cluster(net["subnet"], NAME, None, f"{NAME}-gpu")
    aws.client("logs").create_log_group(logGroupName=f"/aws/eks/{NAME}/cluster")
    schedule(aws, f"{NAME}-nightly", NAME)
    aws.instance(net["subnet"], **{"eks:cluster-name": NAME})
    kinds = by_kind(data())
    assert "VPC" in kinds, "the network is the stack's"
    assert not {"cluster", "node group", "log group", "schedule", "instance"} & set(kinds)


def test_what_is_gone_is_not_named_though_aws_still_tells_of_it(aws: Made) -> None:
    net = aws.network()
    node = aws.gpu_node(net["subnet"])
    aws.ec2.terminate_instances(InstanceIds=[node])
    aws.ec2.delete_nat_gateway(NatGatewayId=net["NAT gateway"])
    aws.ec2.release_address(AllocationId=net["address"])
    assert data(status=0)["usd_per_hour"] == 0


def test_instances_of_a_node_group_go_with_it_and_others_by_themselves(aws: Made) -> None:
    net = aws.network()
    aws.cluster(net["subnet"], NAME, NAME, f"{NAME}-gpu")
    node = aws.gpu_node(net["subnet"])
    orphan = aws.instance(
        net["subnet"], **{"eks:cluster-name": NAME, "eks:nodegroup-name": "gone", "aws:autoscaling:groupName": "eks-1"}
    )
    remove = {item["id"]: item["remove"] for item in by_kind(data())["instance"]}
    assert remove[node] is None
    # Ended by itself it would be started again.
    assert "autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name eks-1" in remove[orphan]


def test_a_price_that_nobody_confirmed_bills_and_makes_the_sum_a_lower_bound(aws: Made) -> None:
    aws.gpu_node(aws.network()["subnet"])
    aws.ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)
    result = run()
    assert result.exit_code == BILLS
    assert "Together 55.09 USD per hour." in result.stdout
    aws.tag(aws.ec2.create_snapshot(VolumeId=aws.ec2.describe_volumes()["Volumes"][0]["VolumeId"])["SnapshotId"])
    assert "Together at least 55.09 USD per hour." in run().stdout


@pytest.mark.parametrize(
    ("state", "lifecycle", "usd"),
    [
        ("running", {}, P5),
        ("pending", {}, P5),
        ("stopped", {}, 0),
        ("running", {"InstanceLifecycle": "spot"}, None),
        ("running", {"InstanceLifecycle": "capacity-block"}, None),
    ],
)
def test_what_an_instance_costs(state: str, lifecycle: dict[str, str], usd: float | None) -> None:
    instance = {"InstanceType": "p5.48xlarge", "State": {"Name": state}, **lifecycle}
    assert instance_price(Prices(region=REGION), instance) == usd
    assert instance_price(Prices(region="eu-west-3"), instance) == (0 if usd == 0 else None)


def test_a_question_that_is_denied_hides_no_other_and_forbids_the_all_clear(
    aws: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.ec2.allocate_address(Domain="vpc")
    account = connect(REGION)
    monkeypatch.setattr(leftovers, "connect", lambda _: account)
    with Stubber(account.client("fsx")) as fsx:
        fsx.add_client_error("describe_file_systems", "AccessDeniedException")
        fsx.add_response("describe_backups", {"Backups": []})
        found = data()
    assert found["found"] == []
    (unseen,) = found["unseen"]
    assert unseen["what"] == "file systems"
    assert unseen["missing_permission"] == "fsx:DescribeFileSystems"


def test_what_the_tagging_api_alone_tells_of(aws: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    account = connect(REGION)
    monkeypatch.setattr(leftovers, "connect", lambda _: account)
    here = f"{REGION}:{ACCOUNT}"
    arns = (
        f"arn:aws:ec2:{here}:launch-template/lt-1",
        f"arn:aws:ec2:{here}:placement-group/gpu-nodes-placement-1",
        f"arn:aws:ec2:{here}:natgateway/nat-gone",
        f"arn:aws:secretsmanager:{here}:secret:own-AbCdEf",
    )
    with Stubber(account.client("resourcegroupstaggingapi")) as tags:
        wanted = {"TagFilters": [{"Key": "vllm-multinode", "Values": [NAME]}]}
        answer = {"ResourceTagMappingList": [{"ResourceARN": arn} for arn in arns]}
        tags.add_response("get_resources", answer, wanted)
        found = data()["found"]
    assert [(item["kind"], item["bills"], item["remove"]) for item in found] == [
        ("launch template", False, f"aws ec2 delete-launch-template --launch-template-id lt-1 --region {REGION}"),
        (
            "placement group",
            False,
            f"aws ec2 delete-placement-group --group-name gpu-nodes-placement-1 --region {REGION}",
        ),
        ("secretsmanager secret", True, None),
    ]
    assert aws


def test_weights_that_are_kept_on_purpose_are_told_so(aws: Made, tmp_path: Path) -> None:
    aws.file_system(aws.network()["subnet"])
    config = yaml.safe_load(Path("Pulumi.dev.yaml").read_text())
    config["config"][STACK_KEY]["weights"]["retain"] = True
    file = tmp_path / "Pulumi.kept.yaml"
    file.write_text(yaml.safe_dump(config))
    (kept,) = by_kind(json.loads(run(str(file), "--json").stdout))["file system"]
    assert kept["note"] == "2400 GiB, kept on purpose (weights.retain)"
    (given_up,) = by_kind(data())["file system"]
    assert given_up["note"] == "2400 GiB"
