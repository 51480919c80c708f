"""Where the weights are kept, behind one small interface: what a pod mounts to read them, and to keep what it compiles.

`lustre_cache.py` and `weight_bucket.py` own the resources; disks of nodes and claims that are there need none. It does
not fill the cache: `weight_staging.py` and `node_caches.py` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import Input, Output, Resource

from components.lustre_cache import LustreCache, LustreCacheArgs
from components.site import Site
from components.weight_bucket import WeightBucket, WeightBucketArgs
from planner.plan import Plan
from planner.weight_settings import ClaimWeights, FsxWeights, S3Source

Volume = dict[str, Any]
"""A pod's volume but its name, in Kubernetes' spelling: `{"hostPath": {...}}`, `{"persistentVolumeClaim": {...}}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightCache:
    """`weights`: the volume with the models' directories. `compiled`: one that keeps what vLLM compiles.

    `bucket`, `bucket_url`: between the source and the disks of the nodes; None where there is none. `parts`: what the
    stack made of it, to be waited for.
    """

    namespace: Output[str]
    weights: Volume
    compiled: Volume
    bucket: WeightBucket | None
    bucket_url: Output[str] | None
    parts: Sequence[Resource]


def weight_cache(name: str, plan: Plan, namespace: Input[str], site: Site) -> WeightCache:
    """The cache that the stack file asks for, with the resources it needs."""
    kept, inside = plan.settings.weights, Output.from_input(namespace)
    if isinstance(kept, FsxWeights):
        if site.eks is None:
            raise ValueError("FSx needs EKS: planner.weight_rules refuses it elsewhere")
        args = LustreCacheArgs(deployment=plan.settings.name, settings=kept, namespace=namespace, eks=site.eks)
        made = LustreCache(name, args, site.opts)
        claim = _claim(made.claim_name)
        return WeightCache(namespace=inside, weights=claim, compiled=claim, bucket=None, bucket_url=None, parts=[made])
    if isinstance(kept, ClaimWeights):
        claim = _claim(kept.claim)
        # A directory that is served as it is may lie on a volume that nobody may write to.
        compiled: Volume = {"emptyDir": {}} if kept.directory else claim
        return WeightCache(namespace=inside, weights=claim, compiled=compiled, bucket=None, bucket_url=None, parts=[])
    root = f"{kept.host_path}/{plan.settings.name}"
    bucket = _bucket(name, plan, site) if plan.weights.through_bucket else None
    url = bucket.bucket.apply(lambda made: f"s3://{made}") if bucket else None
    return WeightCache(
        namespace=inside,
        weights=_folder(f"{root}/weights"),
        compiled=_folder(f"{root}/compiled"),
        bucket=bucket,
        bucket_url=Output.from_input(kept.source.url) if isinstance(kept.source, S3Source) else url,
        parts=[bucket] if bucket else [],
    )


def _bucket(name: str, plan: Plan, site: Site) -> WeightBucket:
    if site.eks is None:
        raise ValueError("a bucket of the stack's own needs AWS: planner.cache.through_bucket says so")
    retain = not isinstance(plan.settings.weights, ClaimWeights) and plan.settings.weights.retain
    args = WeightBucketArgs(
        deployment=plan.settings.name, account=site.eks.account, region=site.eks.platform.region, retain=retain
    )
    return WeightBucket(name, args, site.eks.opts)


def _claim(name: Input[str]) -> Volume:
    return {"persistentVolumeClaim": {"claimName": name}}


def _folder(path: str) -> Volume:
    return {"hostPath": {"path": path, "type": "DirectoryOrCreate"}}
