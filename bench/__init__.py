"""Measurements: what the planner computes against what real runs reported."""
