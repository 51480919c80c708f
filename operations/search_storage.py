"""Looking for what holds bytes: file systems and their backups, buckets, log groups."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from operations.account import AwsError
from operations.findings import FREE, Found
from operations.search import Search, tags_of

MOST_OBJECTS = 5000
"""How many objects of a bucket are added up; a checkpoint has some hundred."""

GIB, GB = 2**30, 1e9


def file_systems(search: Search) -> Iterator[Found]:
    """FSx file systems: they bill for what they could hold."""
    for item in search.account.pages("fsx", "describe_file_systems", "FileSystems"):
        if not search.owns(tags_of(item.get("Tags"))) or item.get("Lifecycle") == "DELETING":
            continue
        which = item["FileSystemId"]
        lustre = " --lustre-configuration SkipFinalBackup=true" if item["FileSystemType"] == "LUSTRE" else ""
        # The AWS CLI has no command that waits for this.
        gone = search.command(f"fsx describe-file-systems --file-system-ids {which}")
        yield Found(
            kind="file system",
            id=which,
            since=item.get("CreationTime"),
            usd_per_hour=_file_system_price(search, item),
            note=f"{item.get('StorageCapacity')} GiB{_kept(search)}",
            remove=search.command(f"fsx delete-file-system --file-system-id {which}{lustre}")
            + f" && while {gone} > /dev/null 2>&1; do sleep 15; done",
        )


def _file_system_price(search: Search, item: Mapping[str, Any]) -> float | None:
    lustre = item.get("LustreConfiguration", {})
    if lustre.get("DeploymentType") != "PERSISTENT_2" or item.get("StorageType") != "SSD":
        return None
    throughput = lustre.get("PerUnitStorageThroughput")
    return search.prices.hourly(f"fsx_persistent_2/{throughput}", item["StorageCapacity"])


def file_system_backups(search: Search) -> Iterator[Found]:
    """Backups of file systems: by their own tags, or by those of the file system that they are of."""
    for item in search.account.pages("fsx", "describe_backups", "Backups"):
        if search.owns(tags_of(item.get("FileSystem", {}).get("Tags")) | tags_of(item.get("Tags"))):
            yield Found(
                kind="file system backup",
                id=item["BackupId"],
                since=item.get("CreationTime"),
                usd_per_hour=None,
                note=f"of {item.get('FileSystem', {}).get('FileSystemId', 'a file system')}",
                remove=search.command(f"fsx delete-backup --backup-id {item['BackupId']}"),
            )


def buckets(search: Search) -> Iterator[Found]:
    """Buckets with the stack's tag, and the bytes that lie in them now."""
    for name in search.tagged_ids("s3"):
        try:
            objects = list(islice(search.account.pages("s3", "list_objects_v2", "Contents", Bucket=name), MOST_OBJECTS))
        except AwsError as error:
            if error.code == "NoSuchBucket":
                continue
            raise
        size = sum(item["Size"] for item in objects)
        more = "at least " if len(objects) == MOST_OBJECTS else ""
        yield Found(
            kind="bucket",
            id=name,
            usd_per_hour=search.prices.hourly("s3/standard", size / GB) if size else FREE,
            note=f"{more}{size / GB:,.1f} GB in {len(objects)} objects{_kept(search)}",
            remove=search.command(f"s3 rb s3://{name} --force"),
        )


def log_groups(search: Search) -> Iterator[Found]:
    """The control plane's logs, which EKS may make again when the cluster goes. What keeping them costs is unknown."""
    name = f"/aws/eks/{search.stack.name}/cluster"
    if not search.owns_cluster_name:
        return
    for group in search.account.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=name):
        if group["logGroupName"] != name:
            continue
        stored, days = group.get("storedBytes", 0), group.get("retentionInDays")
        yield Found(
            kind="log group",
            id=name,
            since=datetime.datetime.fromtimestamp(group["creationTime"] / 1000, tz=datetime.UTC),
            usd_per_hour=None if stored else FREE,
            note=f"{stored / GIB:.3f} GiB, " + (f"kept {days} days" if days else "kept for ever"),
            remove=search.command(f"logs delete-log-group --log-group-name {name}"),
        )


def _kept(search: Search) -> str:
    return ", kept on purpose (weights.retain)" if search.stack.retained else ""
