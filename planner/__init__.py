"""The planner: what a deployment needs, whether it fits and what it costs, decided before anything is created.

Pure Python: no cloud, no cluster, no credentials, and no import from the rest of the project.
"""

from planner.plan import Plan, plan
from planner.problems import SettingsError

__all__ = ["Plan", "SettingsError", "plan"]
