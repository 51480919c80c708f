"""How long creations take: not at all, unless SIMULATE_SECONDS_PER_MINUTE says how long a minute of AWS lasts here.

Only what AWS takes minutes for is in the table; all else is there at once. The figures are assumed, of the order that
users see; none was measured. A group that starts without nodes has nothing to wait for.
"""

from __future__ import annotations

import math
import os

from simulation.aws.errors import SimulationError
from simulation.aws.resources.common import CLUSTER, NODE_GROUP
from simulation.aws.values import Properties, at

VARIABLE = "SIMULATE_SECONDS_PER_MINUTE"
CREATION_MINUTES = {CLUSTER: 9, NODE_GROUP: 6, "aws:fsx/lustreFileSystem:LustreFileSystem": 10}


def seconds_per_minute() -> float:
    """What the variable says, 0 without it. Raises SimulationError unless it is a finite number of 0 or more."""
    text = os.environ.get(VARIABLE, "0")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise SimulationError(f"{VARIABLE}={text!r} is not a number of seconds, such as 1 or 0.5.")
    return value


def creation_minutes(token: str, inputs: Properties) -> int:
    """The minutes that AWS would take to create the resource."""
    if token == NODE_GROUP and not at(inputs, "scalingConfig.desiredSize", 0):
        return 0
    return CREATION_MINUTES.get(token, 0)
