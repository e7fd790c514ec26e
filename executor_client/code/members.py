"""Members of the files, for errors that suggest the right one; the console checks the values."""

from difflib import get_close_matches

GROUP_FILE = ("group", "jobs", "groups", "channels")
JOB = (
    "description",
    "owner",
    "alarm_email",
    "schedule_type",
    "schedule",
    "time_zone",
    "not_before",
    "not_after",
    "handler",
    "param",
    "route_strategy",
    "children",
    "misfire_strategy",
    "block_strategy",
    "timeout_s",
    "retry_count",
    "retry_interval_s",
    "retry_backoff_percent",
    "delivery",
    "tags",
    "enabled",
    "alarm_channels",
    "code",
)
CODE = ("language", "source", "file", "remark")
GROUP = ("title", "address_type", "addresses")
CHANNEL = ("kind", "settings", "for_all", "groups", "jobs")
#: section of a document -> members of its objects
OF_SECTION = {"groups": GROUP, "jobs": JOB, "channels": CHANNEL}


def unknown(name: str, known: tuple[str, ...]) -> str:
    """Return the problem of a member that does not exist, with the one that was perhaps meant."""
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"known members: {', '.join(known)}"
    return f"there is no member {name}; {hint}"
