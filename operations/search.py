"""What every look-up for a stack's things needs: whom to ask, whose a thing is, how commands are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from operations.account import Account
from operations.command import STACK_TAG, Stack
from operations.findings import Found, Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """`vpcs` are the stack's own. `tagged`: ARNs that the tagging API gives, some of what is gone by now.

    `cluster`: EKS's description of the stack's, None if there is none; `node_groups`: their names in it.
    `owns_cluster_name`: no cluster that lacks the stack's tag has the stack's name, so that what names it is the
    stack's.
    """

    account: Account
    stack: Stack
    prices: Prices
    vpcs: frozenset[str]
    cluster: Mapping[str, Any] | None
    node_groups: tuple[str, ...]
    owns_cluster_name: bool
    tagged: tuple[str, ...]

    @property
    def tag_filter(self) -> dict[str, object]:
        """For EC2: whatever carries one of the keys by which a thing may be known as the stack's."""
        return {"Name": "tag-key", "Values": [STACK_TAG, *self._cluster_tags]}

    @property
    def _cluster_tags(self) -> dict[str, str]:
        """What EKS, its CNI and Kubernetes' controllers put on what they make for a cluster."""
        name = self.stack.name
        return {
            f"kubernetes.io/cluster/{name}": "owned",
            "eks:cluster-name": name,
            "aws:eks:cluster-name": name,
            "cluster.k8s.amazonaws.com/name": name,
            "elbv2.k8s.aws/cluster": name,
        }

    def owns(self, tags: Mapping[str, str], vpc: str | None = None) -> bool:
        """Whether a thing is the stack's: by its tags, or because it stands in a VPC of the stack."""
        if STACK_TAG in tags:
            return tags[STACK_TAG] == self.stack.name
        of_cluster = any(tags.get(key) == value for key, value in self._cluster_tags.items())
        return (of_cluster and self.owns_cluster_name) or vpc in self.vpcs

    def tagged_ids(self, service: str, prefix: str = "") -> tuple[str, ...]:
        """What follows `prefix` in the ARNs of a service, as the bucket's name in those of s3."""
        resources = (arn.split(":", 5) for arn in self.tagged)
        names = (parts[5] for parts in resources if parts[2] == service)
        return tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def command(self, words: str) -> str:
        """A command of the AWS CLI in the stack's region."""
        return f"aws {words} --region {self.stack.region}"

    def and_wait(self, words: str, wait: str) -> str:
        """A command, and another that ends when what it removes is gone."""
        return f"{self.command(words)} && {self.command(wait)}"


Lookup = Callable[[Search], Iterable[Found]]


def tags_of(pairs: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """The list of keys and values that most services answer with, in either spelling, as a mapping."""
    return {str(pair.get("Key", pair.get("key"))): str(pair.get("Value", pair.get("value"))) for pair in pairs or ()}
