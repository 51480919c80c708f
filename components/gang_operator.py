"""The LeaderWorkerSet operator, which makes a gang's pods.

Owns one Helm release on the system nodes, unless the cluster has the operator already. It is a part of its own because
it must outlive a paused gang: its webhooks refuse a gang for a while after each installation.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions

from components.charts import LEADER_WORKER_SET, release
from components.site import Site
from planner.settings import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class GangOperatorArgs:
    """`site`: where the operator runs, and what the release dies with."""

    chart: Chart
    site: Site


class GangOperator(ComponentResource):
    """The LeaderWorkerSet operator, installed or found there."""

    def __init__(self, name: str, args: GangOperatorArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("vllm-multinode:index:GangOperator", name, None, opts)
        if args.chart.install:
            options = ResourceOptions(parent=self, deleted_with=args.site.lifetime, depends_on=list(args.site.ready))
            release(f"{name}-{LEADER_WORKER_SET.name}", LEADER_WORKER_SET, args.chart, {}, options)
        self.register_outputs({})
