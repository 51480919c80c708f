"""Access of a pod's service account to one prefix of a bucket, by EKS Pod Identity: no key lies in the cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pulumi import Input, Output, Resource, ResourceOptions
from pulumi_aws import eks, iam

from components.cluster import trust

READ = ("s3:GetObject",)
WRITE = (*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
LIST = ("s3:ListBucket",)
LIST_UPLOADS = (*LIST, "s3:ListBucketMultipartUploads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Who may reach what: `account` of `namespace` in `cluster`, objects below `prefix` of `bucket`."""

    cluster: Input[str]
    namespace: Input[str]
    account: Input[str]
    bucket: Input[str]
    prefix: str
    write: bool


def grant(name: str, wanted: Grant, parent: Resource) -> Resource:
    """The role, its policy and the association; pods that start after it have the credentials."""
    role = iam.Role(
        f"{name}-role", assume_role_policy=trust("pods.eks.amazonaws.com"), opts=ResourceOptions(parent=parent)
    )
    policy = iam.RolePolicy(
        f"{name}-policy",
        role=role.id,
        policy=Output.from_input(wanted.bucket).apply(lambda bucket: document(bucket, wanted.prefix, wanted.write)),
        opts=ResourceOptions(parent=parent),
    )
    return eks.PodIdentityAssociation(
        f"{name}-identity",
        cluster_name=wanted.cluster,
        namespace=wanted.namespace,
        service_account=wanted.account,
        role_arn=role.arn,
        opts=ResourceOptions(parent=parent, depends_on=[policy]),
    )


def document(bucket: str, prefix: str, write: bool) -> str:
    """The policy: objects below the prefix, and the bucket's list, without which a missing object reads as denied."""
    arn = f"arn:aws:s3:::{bucket}"
    objects = {
        "Effect": "Allow",
        "Action": list(WRITE if write else READ),
        "Resource": f"{arn}/{prefix}/*" if prefix else f"{arn}/*",
    }
    listing: dict[str, object] = {
        "Effect": "Allow",
        "Action": list(LIST_UPLOADS if write else LIST),
        "Resource": arn,
    }
    if prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}}
    return json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]}, sort_keys=True)
