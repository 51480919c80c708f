"""Looking for the cluster, its node groups, their instances and disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from operations.findings import FREE, Found, Prices
from operations.search import Search, tags_of
from planner.bill_lines import support
from planner.cache import INCLUDED_MIB_PER_SECOND
from planner.prices import today

LIVE_STATES = ("pending", "running", "stopping", "stopped", "shutting-down")
# What gp3 includes in its price; planner/prices.yaml knows none for more operations per second.
INCLUDED_OPERATIONS = 3000


def clusters(search: Search) -> Iterator[Found]:
    """The control plane, known by its name and its tag; add-ons and access entries go with it."""
    if search.cluster is None:
        return
    name, version = search.stack.name, str(search.cluster.get("version"))
    term = support(version, today())
    yield Found(
        kind="cluster",
        id=name,
        since=search.cluster.get("createdAt"),
        usd_per_hour=search.prices.hourly(f"eks/{term}_support"),
        note=f"EKS {version}, {term} support",
        remove=search.and_wait(f"eks delete-cluster --name {name}", f"eks wait cluster-deleted --name {name}"),
    )


def node_groups(search: Search) -> Iterator[Found]:
    """The node groups of the cluster, whoever made them: no cluster goes before its last one."""
    name = search.stack.name
    for group in search.node_groups:
        about = search.account.ask("eks", "describe_nodegroup", clusterName=name, nodegroupName=group)["nodegroup"]
        which = f"--cluster-name {name} --nodegroup-name {group}"
        yield Found(
            kind="node group",
            id=group,
            since=about.get("createdAt"),
            usd_per_hour=FREE,
            note="its instances bill, each by itself",
            remove=search.and_wait(f"eks delete-nodegroup {which}", f"eks wait nodegroup-deleted {which}"),
        )


def instances(search: Search) -> Iterator[Found]:
    """The instances that are not terminated."""
    filters = [{"Name": "instance-state-name", "Values": list(LIVE_STATES)}, search.tag_filter]
    for reservation in search.account.pages("ec2", "describe_instances", "Reservations", Filters=filters):
        for instance in reservation["Instances"]:
            tags = tags_of(instance.get("Tags"))
            if search.owns(tags):
                yield _instance(search, instance, tags)


def _instance(search: Search, instance: Mapping[str, Any], tags: Mapping[str, str]) -> Found:
    group, scaling_group = tags.get("eks:nodegroup-name"), tags.get("aws:autoscaling:groupName")
    which, state = instance["InstanceId"], instance["State"]["Name"]
    gone = f"ec2 wait instance-terminated --instance-ids {which}"
    if group in search.node_groups:
        remove, note = "", f"goes with node group {group}"
    elif scaling_group:  # which would start another in its place
        delete = f"autoscaling delete-auto-scaling-group --force-delete --auto-scaling-group-name {scaling_group}"
        remove, note = search.and_wait(delete, gone), f"of Auto Scaling group {scaling_group}"
    else:
        remove, note = search.and_wait(f"ec2 terminate-instances --instance-ids {which}", gone), "of no node group"
    return Found(
        kind="instance",
        id=which,
        since=instance.get("LaunchTime"),
        usd_per_hour=instance_price(search.prices, instance),
        note=f"{instance['InstanceType']}, {state}, {note}",
        remove=remove,
    )


def instance_price(prices: Prices, instance: Mapping[str, Any]) -> float | None:
    """On demand by the hour. Spot follows a market and a capacity block is paid for already: unknown both."""
    if instance["State"]["Name"] in ("stopped", "shutting-down"):
        return FREE
    if instance.get("InstanceLifecycle") is not None:
        return None
    return prices.hourly(f"on_demand/{instance['InstanceType']}")


def volumes(search: Search) -> Iterator[Found]:
    """EBS volumes; one that is attached goes with its instance if EC2 was told so."""
    for volume in search.account.pages("ec2", "describe_volumes", "Volumes", Filters=[search.tag_filter]):
        if not search.owns(tags_of(volume.get("Tags"))):
            continue
        going = [item["InstanceId"] for item in volume.get("Attachments", ()) if item.get("DeleteOnTermination")]
        size = f"{volume['Size']} GiB of {volume['VolumeType']}"
        yield Found(
            kind="volume",
            id=volume["VolumeId"],
            since=volume.get("CreateTime"),
            usd_per_hour=_volume_price(search, volume),
            note=f"{size}, goes with {going[0]}" if going else size,
            remove="" if going else search.command(f"ec2 delete-volume --volume-id {volume['VolumeId']}"),
        )


def _volume_price(search: Search, volume: Mapping[str, Any]) -> float | None:
    if volume["VolumeType"] != "gp3" or volume.get("Iops", 0) > INCLUDED_OPERATIONS:
        return None
    space = search.prices.hourly("gp3", volume["Size"])
    beyond = volume.get("Throughput", 0) - INCLUDED_MIB_PER_SECOND
    speed = search.prices.hourly("gp3/throughput", beyond) if beyond > 0 else FREE
    return None if space is None or speed is None else space + speed


def snapshots(search: Search) -> Iterator[Found]:
    """EBS snapshots; their price follows the blocks that changed, which EC2 does not tell."""
    request: dict[str, Any] = {"OwnerIds": ["self"], "Filters": [search.tag_filter]}
    for snapshot in search.account.pages("ec2", "describe_snapshots", "Snapshots", **request):
        if search.owns(tags_of(snapshot.get("Tags"))):
            yield Found(
                kind="snapshot",
                id=snapshot["SnapshotId"],
                since=snapshot.get("StartTime"),
                usd_per_hour=None,
                note=f"of {snapshot.get('VolumeSize')} GiB",
                remove=search.command(f"ec2 delete-snapshot --snapshot-id {snapshot['SnapshotId']}"),
            )
