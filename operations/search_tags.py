"""What the tagging API alone tells of: free parts of the network, templates, and kinds that nobody thought of."""

from __future__ import annotations

from collections.abc import Iterator

from operations.findings import FREE, Found
from operations.search import Search

# By service and type of the ARN: what it is called, and the command that removes it.
_FREE = {
    "ec2:subnet": ("subnet", "ec2 delete-subnet --subnet-id {id}"),
    "ec2:route-table": ("route table", "ec2 delete-route-table --route-table-id {id}"),
    "ec2:internet-gateway": ("internet gateway", "ec2 delete-internet-gateway --internet-gateway-id {id}"),
    "ec2:vpc": ("VPC", "ec2 delete-vpc --vpc-id {id}"),
    "ec2:launch-template": ("launch template", "ec2 delete-launch-template --launch-template-id {id}"),
    "ec2:placement-group": ("placement group", "ec2 delete-placement-group --group-name {id}"),
}
# By which look-up each other kind is found: what it did not find is gone, if it could be made.
_SEEN_BY = {
    "ec2:instance": "instances",
    "ec2:volume": "volumes",
    "ec2:snapshot": "snapshots",
    "ec2:natgateway": "NAT gateways",
    "ec2:elastic-ip": "addresses",
    "ec2:vpc-endpoint": "VPC endpoints",
    "ec2:network-interface": "network interfaces",
    "ec2:security-group": "security groups",
    "ec2:security-group-rule": "security groups",
    "eks:cluster": "clusters",
    "eks:nodegroup": "node groups",
    "eks:addon": "clusters",
    "eks:access-entry": "clusters",
    "eks:podidentityassociation": "clusters",
    "fsx:file-system": "file systems",
    "fsx:backup": "file system backups",
    "elasticloadbalancing:loadbalancer": "load balancers",
    "elasticloadbalancing:targetgroup": "load balancers",
    "logs:log-group": "log groups",
    "s3:": "buckets",
    "iam:role": "roles",
    "budgets:budget": "budgets",
}


def by_tag_alone(search: Search, failed: frozenset[str]) -> Iterator[Found]:
    """What is left of the tagged; `failed`: the look-ups that were not answered."""
    for arn in search.tagged:
        service, resource = arn.split(":", 5)[2::3]
        kind, _, name = resource.replace(":", "/", 1).partition("/")
        key = f"{service}:{kind}" if service != "s3" else "s3:"
        if key in _FREE:
            called, remove = _FREE[key]
            yield Found(kind=called, id=name, usd_per_hour=FREE, remove=_command(search, key, remove.format(id=name)))
        elif key not in _SEEN_BY or _SEEN_BY[key] in failed:
            yield Found(
                kind=f"{service} {kind}" if service != "s3" else "bucket",
                id=arn,
                usd_per_hour=None,
                note="known by its tag alone, which AWS shows for a while after it is gone",
                remove="",
            )


def _command(search: Search, key: str, words: str) -> str:
    """A gateway must leave its network before it goes."""
    if key != "ec2:internet-gateway" or not search.vpcs:
        return search.command(words)
    which = words.rpartition(" ")[2]
    vpc = sorted(search.vpcs)[0]
    return search.and_wait(f"ec2 detach-internet-gateway --internet-gateway-id {which} --vpc-id {vpc}", words)
