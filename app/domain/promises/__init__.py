"""Promises: what a job owes, when that is looked at, and whether it was kept."""
