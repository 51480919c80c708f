"""`operations.account_check` on a network that is there already, in moto."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from operations.check_quotas import VPCS
from planner.command_line import STACK_KEY
from tests.operations.made import REGION, Made
from tests.operations.ready_account import checked, not_passed


def with_network(tmp_path: Path, network: dict[str, object]) -> str:
    config = yaml.safe_load(Path("Pulumi.dev.yaml").read_text())
    config["config"][STACK_KEY]["platform"]["network"] = {"kind": "existing", **network}
    file = tmp_path / "Pulumi.existing.yaml"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def subnets(account: Made, zones: str, bits: int = 20) -> dict[str, object]:
    """An existing network: the GPU subnet and two of the control plane, in zones by their letters."""
    vpc = account.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = [
        account.ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.9.{16 * index}.0/{bits}", AvailabilityZone=f"{REGION}{zone}"
        )
        for index, zone in enumerate(zones)
    ]
    gpu, *control = (item["Subnet"]["SubnetId"] for item in made)
    return {"vpcId": vpc, "gpuSubnetId": gpu, "controlPlaneSubnetIds": control}


@pytest.mark.parametrize(
    ("zones", "bits", "expected"),
    [
        ("aab", 20, {}),
        ("aab", 24, {"GPU subnet": "warn"}),
        ("aab", 28, {"GPU subnet": "fail"}),
        ("bab", 20, {"GPU subnet": "fail"}),
        ("aaa", 20, {"control plane subnets": "fail"}),
    ],
)
def test_an_existing_network(
    account: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, zones: str, bits: int, expected: dict[str, str]
) -> None:
    made = subnets(account, zones, bits)
    found = not_passed(checked(monkeypatch, with_network(tmp_path, made)))
    assert {about.partition(" subnet-")[0]: level for about, level in found.items()} == expected


def test_an_existing_network_needs_no_address_and_no_vpc(
    account: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checks = checked(monkeypatch, with_network(tmp_path, subnets(account, "aab")))
    assert f"{VPCS.name} ({VPCS.code})" not in checks


def test_a_subnet_that_is_not_there_or_in_another_vpc(
    account: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = subnets(account, "aab")
    gone = made | {"gpuSubnetId": "subnet-0123456789abcdef0"}
    assert not_passed(checked(monkeypatch, with_network(tmp_path, gone))) == {"subnets": "fail"}
    other = made | {"vpcId": "vpc-0123456789abcdef0"}
    assert not_passed(checked(monkeypatch, with_network(tmp_path, other))) == {"subnets": "fail"}
