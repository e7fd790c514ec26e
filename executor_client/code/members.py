"""Member names of jobs-as-code files, in their order, to suggest the right one; the console checks values."""

from difflib import get_close_matches

#: member whose placeholders are those of the console
PARAMETER = "param"
GROUP_FILE = ("group", "jobs", "groups", "calendars", "channels")
JOB = (
    "description",
    "owner",
    "handler",
    PARAMETER,
    "fill_parameter",
    "code",
    "schedule_type",
    "schedule",
    "time_zone",
    "not_before",
    "not_after",
    "enabled",
    "children",
    "promises",
    "escalation",
    "max_running",
    "when_full",
    "priority",
    "max_wait_s",
    "limits",
    "limit_key",
    "runs_after",
    "calendar",
    "log_archive",
    "log_days",
    "run_days",
    "tags",
    "alarm_email",
    "route_strategy",
    "misfire_strategy",
    "misfire_max",
    "misfire_max_age_s",
    "block_strategy",
    "timeout_s",
    "retry_count",
    "retry_interval_s",
    "retry_backoff_percent",
    "delivery",
    "alarm_channels",
)
CODE = ("language", "source", "file", "remark")
GROUP = (
    *("title", "address_type", "addresses", "promises", "escalation", "max_running"),
    *("log_archive", "log_days", "run_days"),
)
CHANNEL = ("kind", "settings", "for_all", "groups", "jobs", "daily")
CALENDAR = ("weekend", "days", "names", "valid_until", "unknown")
#: section of a document -> members of its objects
OF_SECTION = {"groups": GROUP, "jobs": JOB, "calendars": CALENDAR, "channels": CHANNEL}


def unknown(name: str, names: tuple[str, ...]) -> str:
    """Return the problem of an unknown member, with the closest name as a suggestion."""
    matches = get_close_matches(name, names, 1)
    hint = f"did you mean {matches[0]}?" if matches else f"known members: {', '.join(names)}"
    return f"there is no member {name}; {hint}"
