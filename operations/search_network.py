"""Looking for what stands in the stack's network: made by the stack, by EKS or by controllers in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from operations.findings import FREE, Found
from operations.search import Search, tags_of

TAGS_AT_ONCE = 20
"""How many resources elasticloadbalancing tells the tags of in one answer."""


def load_balancers(search: Search) -> Iterator[Found]:
    """Application, network and gateway load balancers; a controller in the cluster makes them for Services."""
    for balancer in _owned_balancers(search, "describe_load_balancers", "LoadBalancers", "LoadBalancerArn"):
        arn, kind = balancer["LoadBalancerArn"], balancer["Type"]
        yield Found(
            kind="load balancer",
            id=balancer["LoadBalancerName"],
            since=balancer.get("CreatedTime"),
            usd_per_hour=search.prices.hourly("load_balancer/hour") if kind == "application" else None,
            note=kind,
            remove=search.and_wait(
                f"elbv2 delete-load-balancer --load-balancer-arn {arn}",
                f"elbv2 wait load-balancers-deleted --load-balancer-arns {arn}",
            ),
        )
    for group in _owned_balancers(search, "describe_target_groups", "TargetGroups", "TargetGroupArn"):
        yield Found(
            kind="target group",
            id=group["TargetGroupName"],
            usd_per_hour=FREE,
            remove=search.command(f"elbv2 delete-target-group --target-group-arn {group['TargetGroupArn']}"),
        )


def classic_load_balancers(search: Search) -> Iterator[Found]:
    """Load balancers of the first kind, which Kubernetes itself makes."""
    found = list(search.account.pages("elb", "describe_load_balancers", "LoadBalancerDescriptions"))
    tags: dict[str, dict[str, str]] = {}
    for start in range(0, len(found), TAGS_AT_ONCE):
        names = [item["LoadBalancerName"] for item in found[start : start + TAGS_AT_ONCE]]
        for told in search.account.ask("elb", "describe_tags", LoadBalancerNames=names)["TagDescriptions"]:
            tags[told["LoadBalancerName"]] = tags_of(told["Tags"])
    for item in found:
        name = item["LoadBalancerName"]
        if search.owns(tags.get(name, {}), item.get("VPCId")):
            yield Found(
                kind="load balancer",
                id=name,
                since=item.get("CreatedTime"),
                usd_per_hour=None,
                note="classic",
                remove=search.command(f"elb delete-load-balancer --load-balancer-name {name}"),
            )


def nat_gateways(search: Search) -> Iterator[Found]:
    """NAT gateways; a deleted one is told of for an hour."""
    live = {"Name": "state", "Values": ["pending", "failed", "available"]}
    for gateway in _in_vpcs_or_tagged(search, "describe_nat_gateways", "NatGateways", "NatGatewayId", live):
        which = gateway["NatGatewayId"]
        yield Found(
            kind="NAT gateway",
            id=which,
            since=gateway.get("CreateTime"),
            usd_per_hour=FREE if gateway["State"] == "failed" else search.prices.hourly("nat_gateway/hour"),
            note="and what flows through it",
            remove=search.and_wait(
                f"ec2 delete-nat-gateway --nat-gateway-id {which}",
                f"ec2 wait nat-gateway-deleted --nat-gateway-ids {which}",
            ),
        )


def addresses(search: Search) -> Iterator[Found]:
    """Elastic IP addresses: each bills, in use or not."""
    for address in search.account.ask("ec2", "describe_addresses", Filters=[search.tag_filter])["Addresses"]:
        if search.owns(tags_of(address.get("Tags"))):
            yield Found(
                kind="address",
                id=address["AllocationId"],
                usd_per_hour=search.prices.hourly("public_ipv4"),
                note=address["PublicIp"],
                remove=search.command(f"ec2 release-address --allocation-id {address['AllocationId']}"),
            )


def vpc_endpoints(search: Search) -> Iterator[Found]:
    """Endpoints: those to S3 are free, the others bill in each zone."""
    for endpoint in _in_vpcs_or_tagged(search, "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"):
        if str(endpoint.get("State", "")).lower() == "deleted":
            continue
        zones = len(endpoint.get("SubnetIds", ()))
        free = endpoint.get("VpcEndpointType") == "Gateway"
        yield Found(
            kind="VPC endpoint",
            id=endpoint["VpcEndpointId"],
            since=endpoint.get("CreationTimestamp"),
            usd_per_hour=FREE if free else search.prices.hourly("interface_endpoint/hour", max(zones, 1)),
            note=str(endpoint["ServiceName"]),
            remove=search.command(f"ec2 delete-vpc-endpoints --vpc-endpoint-ids {endpoint['VpcEndpointId']}"),
        )


def network_interfaces(search: Search) -> Iterator[Found]:
    """Interfaces that nothing uses, as the CNI leaves them; used ones go with what uses them."""
    unused = {"Name": "status", "Values": ["available"]}
    for item in _in_vpcs_or_tagged(
        search, "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", unused
    ):
        which = item["NetworkInterfaceId"]
        yield Found(
            kind="network interface",
            id=which,
            usd_per_hour=FREE,
            note=item.get("Description", ""),
            remove=search.command(f"ec2 delete-network-interface --network-interface-id {which}"),
        )


def security_groups(search: Search) -> Iterator[Found]:
    """Groups, and apart from them the rules by which one names another: no group goes while a rule names it."""
    for group in _in_vpcs_or_tagged(search, "describe_security_groups", "SecurityGroups", "GroupId"):
        which, name = group["GroupId"], group["GroupName"]
        if name == "default":
            continue
        of_cluster = search.cluster is not None and "aws:eks:cluster-name" in tags_of(group.get("Tags"))
        yield Found(
            kind="security group",
            id=which,
            usd_per_hour=FREE,
            note=f"{name}, goes with the cluster" if of_cluster else name,
            remove="" if of_cluster else search.command(f"ec2 delete-security-group --group-id {which}"),
        )
        yield from _rules(search, which)


def _rules(search: Search, group: str) -> Iterator[Found]:
    filters = [{"Name": "group-id", "Values": [group]}]
    rules = search.account.pages("ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=filters)
    naming = [rule for rule in rules if rule.get("ReferencedGroupInfo", {}).get("GroupId", group) != group]
    for direction, outwards in (("ingress", False), ("egress", True)):
        ids = " ".join(rule["SecurityGroupRuleId"] for rule in naming if rule["IsEgress"] is outwards)
        if ids:
            revoke = f"ec2 revoke-security-group-{direction} --group-id {group} --security-group-rule-ids {ids}"
            yield Found(
                kind="security group rules",
                id=f"{group} {direction}",
                usd_per_hour=FREE,
                note="name another group",
                remove=search.command(revoke),
            )


def _in_vpcs_or_tagged(
    search: Search, operation: str, key: str, id_key: str, *filters: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """What EC2 tells of one kind, once each: with a tag of the stack, and in its VPCs."""
    in_vpcs = {"Name": "vpc-id", "Values": sorted(search.vpcs)}
    wanted = [search.tag_filter, *([in_vpcs] if search.vpcs else [])]
    # The only operation of these whose parameter is not called Filters.
    parameter = "Filter" if operation == "describe_nat_gateways" else "Filters"
    seen: set[str] = set()
    for one in wanted:
        for item in search.account.pages("ec2", operation, key, **{parameter: [one, *filters]}):
            if item[id_key] not in seen and search.owns(tags_of(_tags(item)), item.get("VpcId")):
                seen.add(item[id_key])
                yield item


def _tags(item: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """EC2 calls the tags of a network interface a TagSet."""
    return item.get("Tags") or item.get("TagSet")


def _owned_balancers(search: Search, operation: str, key: str, arn_key: str) -> Iterator[Mapping[str, Any]]:
    found = list(search.account.pages("elbv2", operation, key))
    tags: dict[str, dict[str, str]] = {}
    for start in range(0, len(found), TAGS_AT_ONCE):
        arns = [item[arn_key] for item in found[start : start + TAGS_AT_ONCE]]
        for told in search.account.ask("elbv2", "describe_tags", ResourceArns=arns)["TagDescriptions"]:
            tags[told["ResourceArn"]] = tags_of(told["Tags"])
    for item in found:
        if search.owns(tags.get(item[arn_key], {}), item.get("VpcId")):
            yield item
