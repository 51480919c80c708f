"""What a node group takes from the resources that it names."""

from __future__ import annotations

from simulation.aws.store import Row, View
from simulation.aws.values import Properties, at
from simulation.aws.versions import DEFAULT_KUBERNETES

_CLUSTER = "aws:eks/cluster:Cluster"
_LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def launch_template(view: View, node_group: Properties) -> Row | None:
    """The launch template that the node group names by id or name."""
    wanted = at(node_group, "launchTemplate.id"), at(node_group, "launchTemplate.name")
    rows = view.rows(_LAUNCH_TEMPLATE) if any(wanted) else []
    return next((row for row in rows if row.id == wanted[0] or row.state["name"] == wanted[1]), None)


def template_id(view: View, node_group: Properties) -> str:
    """The id of the node group's launch template."""
    template = launch_template(view, node_group)
    return template.id if template else ""


def template_name(view: View, node_group: Properties) -> str:
    """The name of the node group's launch template."""
    template = launch_template(view, node_group)
    return str(template.state["name"]) if template else ""


def cluster_version(view: View, cluster: str) -> str:
    """The Kubernetes version of the cluster."""
    rows = (row.state for row in view.rows(_CLUSTER) if row.state["name"] == cluster)
    return str(at(next(rows, {}), "version", DEFAULT_KUBERNETES))


def instance_type(view: View, node_group: Properties) -> str:
    """The instance type of the node group or of its launch template; EKS's default if neither says."""
    template = launch_template(view, node_group)
    own, theirs = at(node_group, "instanceTypes[]"), at(template.state, "instanceType") if template else None
    return str(own or theirs or "t3.medium")
