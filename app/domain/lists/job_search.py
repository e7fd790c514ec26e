"""Filters of the job list that have few values."""

from enum import StrEnum


class LastRun(StrEnum):
    """States of a job by its last run that the list can be filtered by."""

    FAILING = "failing"
    RUNNING = "running"
    NEVER = "never"


class CodeState(StrEnum):
    """States of jobs managed by code that the list can be filtered by."""

    MANAGED = "managed"
    DRIFTED = "drifted"
