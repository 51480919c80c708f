"""FSx for Lustre and log groups."""

from __future__ import annotations

import secrets

from simulation.aws.checks import storage as checks
from simulation.aws.resources import common
from simulation.aws.resources.common import arn, constant, owner_id, random_id
from simulation.aws.schema import ACCOUNT, PARTITION, Facts, ResourceType, Unique
from simulation.aws.values import Json, at


def _vpc_of_subnet(facts: Facts) -> Json:
    subnet = facts.view.get(common.SUBNET, at(facts.state, "subnetIds", ""))
    return subnet.state["vpcId"] if subnet else ""


def _mount_name(facts: Facts) -> Json:
    return "fsx" if at(facts.state, "deploymentType") == "SCRATCH_1" else secrets.token_hex(4)


_LUSTRE_FILE_SYSTEM = ResourceType(
    token="aws:fsx/lustreFileSystem:LustreFileSystem",  # noqa: S106
    new_id=random_id("fs"),
    outputs={
        "arn": arn("fsx", "file-system"),
        "dnsName": lambda facts: f"{facts.id}.fsx.{facts.region}.amazonaws.com",
        "mountName": _mount_name,
        "networkInterfaceIds": lambda _: [random_id("eni")({}) for _ in range(2)],
        "ownerId": owner_id,
        "vpcId": _vpc_of_subnet,
        "automaticBackupRetentionDays": constant(0),
        "dailyAutomaticBackupStartTime": constant(""),
        "efaEnabled": constant(False),
        "fileSystemTypeVersion": constant("2.12"),
        "kmsKeyId": lambda facts: f"arn:{PARTITION}:kms:{facts.region}:{ACCOUNT}:key/simulated-fsx",
        "logConfiguration": constant({"level": "DISABLED", "destination": ""}),
        "metadataConfiguration": constant({"mode": "AUTOMATIC", "iops": 0}),
        "perUnitStorageThroughput": constant(0),
        "storageCapacity": constant(1200),
        "throughputCapacity": constant(0),
        "weeklyMaintenanceStartTime": constant("7:05:00"),
        "importedFileChunkSize": constant(0),
        "exportPath": constant(""),
        "autoImportPolicy": constant("NONE"),
    },
    defaults={
        "copyTagsToBackups": False,
        "dataCompressionType": "NONE",
        "deploymentType": "SCRATCH_1",
        "skipFinalBackup": True,
        "storageType": "SSD",
    },
    forces_replacement=frozenset(
        {
            "backupId",
            "copyTagsToBackups",
            "deploymentType",
            "driveCacheType",
            "efaEnabled",
            "exportPath",
            "fileSystemTypeVersion",
            "importPath",
            "importedFileChunkSize",
            "kmsKeyId",
            "securityGroupIds",
            "storageType",
            "subnetIds",
        }
    ),
    replaces_when={"storageCapacity": lambda old, new: new < old},
    unread=frozenset({"finalBackupTags", "securityGroupIds", "skipFinalBackup"}),
    references=(common.subnet_reference(), common.security_group_reference("securityGroupIds[]")),
    checks=checks.LUSTRE,
)

_LOG_GROUP = ResourceType(
    token="aws:cloudwatch/logGroup:LogGroup",  # noqa: S106
    new_id=lambda inputs: str(inputs["name"]),
    outputs={
        "arn": lambda facts: f"arn:{PARTITION}:logs:{facts.region}:{ACCOUNT}:log-group:{facts.id}",
        "deletionProtectionEnabled": constant(False),
        "logGroupClass": constant("STANDARD"),
    },
    defaults={"retentionInDays": 0, "skipDestroy": False},
    forces_replacement=frozenset({"name", "namePrefix", "logGroupClass"}),
    unique=(
        Unique(
            paths=("name",),
            error=("ResourceAlreadyExistsException", "The specified log group already exists: {}"),
        ),
    ),
    autonamed="name",
    checks=(checks.log_retention,),
)

TYPES = (_LUSTRE_FILE_SYSTEM, _LOG_GROUP)
