"""Resources of the API, which are imported when they are needed.

A console needs all of them, a command on the server (``--local``) only those of the path and the method that
it calls.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module

from app.api.v1.endpoint import Resource

#: module of this package -> where its operations are: below the first word of a path, or, before that, where
#: the first and the third word are these
PLACES = {
    "alarms": ("alarms",),
    "audit": ("audit",),
    "jobs.backfills": ("backfills", "jobs/backfills"),
    "calendars.calendars": ("calendars",),
    "calendars.blackouts": ("blackouts",),
    "channels": ("channels",),
    "jobs.code": ("code",),
    "completeness": ("report",),
    "executors.drains": ("drains",),
    "jobs.glue": ("jobs/code",),
    "executors.groups": ("groups",),
    "executors.group_changes": ("groups",),
    "incidents": ("incidents", "jobs/promises"),
    "executors.instances": ("instances", "groups/instances"),
    "jobs.jobs": ("jobs",),
    "jobs.job_changes": ("jobs",),
    "limits": ("limits",),
    "logs": ("logs", "runs/log"),
    "mutes": ("mutes",),
    "nodes": ("nodes",),
    "own_token": ("me",),
    "report": ("report",),
    "rounds": ("rounds", "chains", "jobs/graph"),
    "runs": ("runs",),
    "jobs.schedules": ("schedules",),
    "jobs.skips": ("skips",),
    "tokens": ("tokens",),
    "triggers": ("runs:batch", "jobs/runs"),
    "users": ("users",),
    "variables": ("variables",),
    "jobs.versions": ("jobs/versions",),
}
#: modules whose operations all change something
CHANGES = frozenset(("executors.group_changes", "jobs.job_changes"))


def all_resources() -> Sequence[Resource]:
    """Return all resources."""
    return _resources(PLACES)


def resources_at(path: str, method: str) -> Sequence[Resource]:
    """Return those that may have the operation of this method at a path, such as ``/jobs/7/versions``."""
    words = [*path.split("/"), "", "", ""]
    for place in (f"{words[1]}/{words[3]}", words[1]):
        if names := [name for name, places in PLACES.items() if place in places]:
            return _resources(name for name in names if method != "GET" or name not in CHANGES)
    return ()


def _resources(names: Iterable[str]) -> Sequence[Resource]:
    return tuple(import_module(f"{__name__}.{name}").resource for name in names)
