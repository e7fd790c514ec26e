"""Promises: what a job owes, when that is evaluated, whether it was kept, and incidents."""
