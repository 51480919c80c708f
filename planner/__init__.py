"""The planner: whether a deployment fits, how it runs and what it costs, before anything is created.

Pure Python: no cloud, no cluster, no credentials, and no import from the rest of the project.
"""

from planner.plan import Plan, ServingPlan, plan
from planner.problems import SettingsError

__all__ = ["Plan", "ServingPlan", "SettingsError", "plan"]
