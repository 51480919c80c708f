"""All look-ups for one stack, made one after the other whatever becomes of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from operations import search_account, search_network, search_nodes, search_storage
from operations.account import Account, AwsError
from operations.command import STACK_TAG, Stack
from operations.findings import Found, Prices, Unseen, in_order
from operations.search import Lookup, Search
from operations.search_tags import by_tag_alone

LOOKUPS: dict[str, Lookup] = {
    "load balancers": search_network.load_balancers,
    "classic load balancers": search_network.classic_load_balancers,
    "file systems": search_storage.file_systems,
    "file system backups": search_storage.file_system_backups,
    "node groups": search_nodes.node_groups,
    "instances": search_nodes.instances,
    "clusters": search_nodes.clusters,
    "volumes": search_nodes.volumes,
    "snapshots": search_nodes.snapshots,
    "VPC endpoints": search_network.vpc_endpoints,
    "NAT gateways": search_network.nat_gateways,
    "addresses": search_network.addresses,
    "network interfaces": search_network.network_interfaces,
    "security groups": search_network.security_groups,
    "buckets": search_storage.buckets,
    "log groups": search_storage.log_groups,
    "roles": search_account.roles,
    "schedules": search_account.schedules,
    "budgets": search_account.budgets,
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What exists of a stack, in the order of removal, and what could not be looked for."""

    found: tuple[Found, ...]
    unseen: tuple[Unseen, ...]

    @property
    def billing(self) -> tuple[Found, ...]:
        """What costs, or may cost."""
        return tuple(item for item in self.found if item.bills)

    @property
    def free(self) -> tuple[Found, ...]:
        """What costs nothing."""
        return tuple(item for item in self.found if not item.bills)

    @property
    def usd_per_hour(self) -> float:
        """The known prices together."""
        return sum(item.usd_per_hour or 0 for item in self.found)

    @property
    def complete(self) -> bool:
        """Whether every price is known and every question was answered; if not, the sum is a lower bound."""
        return not self.unseen and all(item.usd_per_hour is not None for item in self.found)


def audit(account: Account, stack: Stack) -> Answer:
    """What exists of the stack; changes nothing."""
    unseen: list[Unseen] = []
    search = _search(account, stack, unseen)
    found: list[Found] = []
    for what, lookup in LOOKUPS.items():
        found += _answered(what, lookup(search), unseen)
    found += by_tag_alone(search, frozenset(item.what for item in unseen))
    return Answer(found=in_order(found), unseen=tuple(unseen))


def _search(account: Account, stack: Stack, unseen: list[Unseen]) -> Search:
    """What all look-ups need to know first."""
    tag = [{"Name": f"tag:{STACK_TAG}", "Values": [stack.name]}]
    vpcs = _answered("VPCs", account.pages("ec2", "describe_vpcs", "Vpcs", Filters=tag), unseen)
    # None is no cluster of that name; empty is no answer.
    clusters = _answered("clusters", _cluster_of_name(account, stack.name), unseen)
    own = next((item for item in clusters if item and item.get("tags", {}).get(STACK_TAG) == stack.name), None)
    groups = account.pages("eks", "list_nodegroups", "nodegroups", clusterName=stack.name) if own else ()
    wanted = {"TagFilters": [{"Key": STACK_TAG, "Values": [stack.name]}]}
    tagged = account.pages("resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", **wanted)
    return Search(
        account=account,
        stack=stack,
        prices=Prices(region=stack.region),
        vpcs=frozenset(vpc["VpcId"] for vpc in vpcs),
        cluster=own,
        node_groups=tuple(_answered("node groups", groups, unseen)),
        owns_cluster_name=own is not None or None in clusters,
        tagged=tuple(item["ResourceARN"] for item in _answered("tagged resources", tagged, unseen)),
    )


def _cluster_of_name(account: Account, name: str) -> Iterator[Mapping[str, Any] | None]:
    try:
        yield account.ask("eks", "describe_cluster", name=name)["cluster"]
    except AwsError as error:
        if error.code != "ResourceNotFoundException":
            raise
        yield None


def _answered(what: str, answers: Iterable[T], unseen: list[Unseen]) -> list[T]:
    """What comes until AWS refuses to answer; then that is noted."""
    got: list[T] = []
    try:
        for answer in answers:
            got.append(answer)  # noqa: PERF402 (what came before a refusal counts)
    except AwsError as error:
        unseen.append(Unseen(what=what, why=str(error), permission=error.permission if error.denied else None))
    return got
