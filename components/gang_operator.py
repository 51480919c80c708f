"""The LeaderWorkerSet operator, which makes a gang's pods.

Owns one Helm release on the system nodes, unless the cluster has the operator already. It is a part of its own because
it must outlive a paused gang: its webhooks refuse a gang for a while after each installation.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Resource, ResourceOptions

from components.charts import LEADER_WORKER_SET, release
from components.cluster import Cluster
from planner.settings import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class GangOperatorArgs:
    """`cluster`: the release dies with it. `nodes`: where the operator runs."""

    chart: Chart
    cluster: Cluster
    nodes: Resource


class GangOperator(ComponentResource):
    """The LeaderWorkerSet operator, installed or found there."""

    def __init__(self, name: str, args: GangOperatorArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:GangOperator", name, None, opts)
        if args.chart.install:
            options = ResourceOptions(parent=self, deleted_with=args.cluster.cluster, depends_on=[args.nodes])
            release(f"{name}-{LEADER_WORKER_SET.name}", LEADER_WORKER_SET, args.chart, {}, options)
        self.register_outputs({})
