"""What simulated buckets hold: a number of objects. Nothing is uploaded, so a bucket is empty unless told otherwise."""

from __future__ import annotations

from simulation import paths
from simulation.aws.errors import SimulationError
from simulation.aws.resources.common import BUCKET
from simulation.aws.store import Store


def fill(bucket: str, count: int) -> None:
    """Has `bucket` hold `count` objects, as a Job that uploads would. Raises SimulationError if there is none."""
    with Store(paths.aws_store()).transaction() as view:
        if view.get(BUCKET, bucket) is None:
            known = ", ".join(row.id for row in view.rows(BUCKET)) or "none"
            raise SimulationError(f"There is no simulated bucket {bucket!r}. There are: {known}.")
        view.fill(BUCKET, bucket, count)
