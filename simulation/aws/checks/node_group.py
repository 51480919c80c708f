"""EKS's rules for managed node groups (EKS user guide, launch-templates and managed-node-groups)."""

from __future__ import annotations

from simulation.aws.errors import AwsError
from simulation.aws.lookups import launch_template
from simulation.aws.schema import Request
from simulation.aws.values import at, values_at

_PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
_ROLE = "aws:iam/role:Role"
_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_TAINT_EFFECTS = ("NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE")


def _refuse(message: str) -> AwsError:
    return AwsError("InvalidParameterException", message)


def _template_holds_no_subnet(request: Request) -> None:
    template = launch_template(request.view, request.inputs)
    if template and values_at(template.state, "networkInterfaces[].subnetId"):
        raise _refuse("Launch template should not specify a subnet in its network interfaces; the node group names it.")


def _template_leaves_role_to_group(request: Request) -> None:
    template = launch_template(request.view, request.inputs)
    for field in ("iamInstanceProfile", "instanceInitiatedShutdownBehavior", "hibernationOptions"):
        if template and at(template.state, field):
            raise _refuse(f"Launch template of a managed node group should not specify {field}.")


def _template_holds_disk_and_access(request: Request) -> None:
    for field in ("diskSize", "remoteAccess"):
        if at(request.inputs, "launchTemplate") and at(request.inputs, field):
            raise _refuse(f"{field} cannot be specified together with a launch template; set it in the template.")


def _instance_type_in_one_place(request: Request) -> None:
    template = launch_template(request.view, request.inputs)
    if template is None:
        return
    in_template, in_group = at(template.state, "instanceType"), at(request.inputs, "instanceTypes[]")
    if in_template and in_group:
        raise _refuse("Cannot specify instance types in launch template and API request")
    if not in_template and not in_group:
        raise _refuse(
            "Neither the launch template nor the node group names an instance type: EKS would take "
            "t3.medium. "
            "Name it in one of the two."
        )


def _template_version_exists(request: Request) -> None:
    template, wanted = (
        launch_template(request.view, request.inputs),
        at(request.inputs, "launchTemplate.version"),
    )
    if template and str(wanted).isdigit() and int(wanted) > int(template.state["latestVersion"]):
        raise AwsError(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find the specified version {wanted} for {template.id}",
        )


def _sizes_in_order(request: Request) -> None:
    low, desired, high = (
        int(at(request.inputs, f"scalingConfig.{name}", 0)) for name in ("minSize", "desiredSize", "maxSize")
    )
    if high < 1:
        raise _refuse(f"maxSize {high} is not valid: it is at least 1, also for an empty node group")
    if not 0 <= low <= desired <= high:
        raise _refuse(f"desired capacity {desired} must be between minSize {low} and maxSize {high}")


def _placement_group_in_one_zone(request: Request) -> None:
    template = launch_template(request.view, request.inputs)
    name = at(template.state, "placement.groupName") if template else None
    group = request.view.get(_PLACEMENT_GROUP, name) if name else None
    if group and group.state["strategy"] == "cluster" and len(set(values_at(request.inputs, "subnetIds[]"))) > 1:
        raise _refuse(
            f"Instances in the Placement Group {name} must be launched in one availability zone; "
            "the node group names several subnets."
        )


def _capacity_block_everywhere(request: Request) -> None:
    template = launch_template(request.view, request.inputs)
    market = at(template.state, "instanceMarketOptions.marketType") if template else None
    capacity = at(request.inputs, "capacityType")
    if (market == "capacity-block") != (capacity == "CAPACITY_BLOCK"):
        raise _refuse(
            "A capacity block needs both: capacityType CAPACITY_BLOCK on the node group and the market type "
            "capacity-block in its launch template."
        )


def _taints_are_valid(request: Request) -> None:
    for taint in values_at(request.inputs, "taints[]"):
        if at(taint, "effect") not in _TAINT_EFFECTS:
            raise _refuse(f"Taint effect {at(taint, 'effect')} is not one of {', '.join(_TAINT_EFFECTS)}")


def _node_role_lets_nodes_join(request: Request) -> None:
    arn = request.inputs["nodeRoleArn"]
    names = {row.state["name"] for row in request.view.rows(_ROLE) if row.state["arn"] == arn}
    attached = [row.state["policyArn"] for row in request.view.rows(_ATTACHMENT) if row.state["role"] in names]
    for policy in ("AmazonEKSWorkerNode", "AmazonEC2ContainerRegistry"):
        if names and not any(policy in arn for arn in attached):
            raise AwsError(
                "NodeCreationFailure",
                f"Instances failed to join the kubernetes cluster: no {policy}… policy is attached to {arn}. "
                "Make the node group depend on the attachment.",
            )


NODE_GROUP = (
    _template_holds_no_subnet,
    _template_leaves_role_to_group,
    _template_holds_disk_and_access,
    _instance_type_in_one_place,
    _template_version_exists,
    _sizes_in_order,
    _placement_group_in_one_zone,
    _capacity_block_everywhere,
    _taints_are_valid,
    _node_role_lets_nodes_join,
)
