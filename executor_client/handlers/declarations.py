"""Job declarations: terms of a job beside its handler, ``@job("closeOrders", cron="0 0/5 * * * ?")``.

They are checked when the handler is registered, and sent to a console only by ``python -m executor_client
plan`` and ``apply``. The console decides on terms that are not declared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Literal, TypedDict

from executor_client.handlers import terms
from executor_client.wire.errors import HandlerConflict

Route = Literal[
    "FIRST",
    "LAST",
    "ROUND",
    "RANDOM",
    "CONSISTENT_HASH",
    "LEAST_FREQUENTLY_USED",
    "LEAST_RECENTLY_USED",
    "FAILOVER",
    "BUSYOVER",
    "SHARDING_BROADCAST",
]
Block = Literal["SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY"]
Misfire = Literal["DO_NOTHING", "FIRE_ONCE_NOW", "RUN_ALL"]
Delivery = Literal["auto", "at_most_once", "at_least_once"]
WhenFull = Literal["wait", "skip", "newest", "replace"]
LogArchive = Literal["off", "failed", "all"]


class Terms(TypedDict, total=False):
    """Keyword arguments of ``@job`` that declare its job; all optional."""

    description: str
    owner: str
    #: cron expression of 5 (Unix) or 6 to 7 fields (Quartz)
    cron: str
    #: interval between the starts of runs; seconds, or a timedelta of whole seconds
    every: int | timedelta
    #: pause between the end of a run and the start of the next one
    fixed_delay: int | timedelta
    #: IANA zone in which the schedule is read, such as Europe/Berlin
    timezone: str
    #: the schedule starts no run before, or after; one without tzinfo is a local time of ``timezone``
    not_before: datetime
    not_after: datetime
    #: parameter of every run: a text, or a value that is sent as JSON
    param: Any
    #: whether placeholders of the parameter, such as ``${time:yyyy-MM-dd}``, are filled in before it is sent
    fill_parameter: bool
    route: Route
    block: Block
    misfire: Misfire
    #: by ``RUN_ALL``: most missed runs that run, the newest, and how old they may be
    misfire_max: int
    misfire_max_age: int | timedelta
    #: a run is ended after this time; 0: never
    timeout: int | timedelta
    #: how often a failed run is repeated
    retry: int
    #: pause before the first retry
    retry_interval: int | timedelta
    #: factor by which the delay grows with each retry: 2 doubles it
    retry_backoff: float
    delivery: Delivery
    #: handlers whose declared jobs run after a success, or ``<app name>/<handler>``
    children: Sequence[str]
    #: handlers after whose declared jobs it runs, or ``<app name>/<handler>``; or those as ``jobs`` of a
    #: mapping with a rule, such as ``{"jobs": ["load", "check"], "rule": "all_ended"}``
    runs_after: Sequence[str] | Mapping[str, Any]
    #: calendar of the console on whose workdays the schedule runs, or a rule such as
    #: ``{"name": "cn", "on": "workdays", "otherwise": "next"}``
    calendar: str | Mapping[str, Any]
    #: what the job promises, such as ``{"kind": "finishes_by", "at": "06:00"}``; at most ten
    promises: Sequence[Mapping[str, Any]]
    #: further channel for incidents, such as ``{"channel": "On call", "after_minutes": 15}``
    escalation: Mapping[str, Any]
    #: most runs at once, on all instances together; 0: no limit
    max_running: int
    #: what becomes of a run for which there is no slot
    when_full: WhenFull
    #: place of waiting runs: 9 is first, 1 last
    priority: int
    #: a waiting run is skipped after this time; 0: never
    max_wait: int | timedelta
    #: named limits of the console, such as ``"reporting database"`` or ``{"limit": "mail", "weight": 2}``
    limits: Sequence[str | Mapping[str, Any]]
    #: counts the runs for each value by itself, such as ``${param.customer}``
    limit_key: str
    #: of which runs the console keeps the log, so that it outlives this process
    log_archive: LogArchive
    #: days that the console keeps archived logs, and runs
    log_days: int
    run_days: int
    tags: Sequence[str]
    #: addresses that get mail about failed runs
    alarm_email: str | Sequence[str]
    #: names of alarm channels of the console
    alarm_channels: Sequence[str]
    #: whether the schedule is on; left out: a new job arrives stopped, and the console switches it
    enabled: bool


@dataclass(frozen=True)
class Declaration:
    """Declared terms of a job, checked and in their final form: times in seconds, instants with tzinfo."""

    terms: Mapping[str, Any] = field(hash=False)

    @property
    def members(self) -> dict[str, Any]:
        """The members of the job that are declared, by their names in API v1 and jobs as code."""
        members: dict[str, Any] = {}
        for name, value in self.terms.items():
            if name in SCHEDULES:
                members["schedule_type"] = SCHEDULES[name]
            members[MEMBERS.get(name, name)] = _json(name, value)
        return members


#: term that is a schedule -> its type
SCHEDULES = {"cron": "CRON", "every": "FIX_RATE", "fixed_delay": "FIX_DELAY"}
#: term -> member of a job, where their names differ
MEMBERS = {
    **dict.fromkeys(SCHEDULES, "schedule"),
    "timezone": "time_zone",
    "route": "route_strategy",
    "block": "block_strategy",
    "misfire": "misfire_strategy",
    "misfire_max_age": "misfire_max_age_s",
    "timeout": "timeout_s",
    "retry": "retry_count",
    "retry_interval": "retry_interval_s",
    "retry_backoff": "retry_backoff_percent",
    "max_wait": "max_wait_s",
}
#: term -> reader of its value, which raises ValueError
_READERS = {
    "description": terms.text,
    "owner": terms.text,
    "cron": terms.cron,
    "every": terms.seconds(1),
    "fixed_delay": terms.seconds(1),
    "timezone": terms.zone,
    "not_before": terms.moment,
    "not_after": terms.moment,
    "param": terms.param_text,
    "fill_parameter": terms.switch,
    "route": terms.choice(Route),
    "block": terms.choice(Block),
    "misfire": terms.choice(Misfire),
    "misfire_max": terms.number(1, 1_000),
    "misfire_max_age": terms.seconds(1),
    "timeout": terms.seconds(0),
    "retry": terms.number(0, 9_999),
    "retry_interval": terms.seconds(0),
    "retry_backoff": terms.factor,
    "delivery": terms.choice(Delivery),
    "children": terms.texts,
    "runs_after": terms.predecessors,
    "calendar": terms.calendar,
    "promises": terms.mappings,
    "escalation": terms.mapping,
    "max_running": terms.number(0, 10_000),
    "when_full": terms.choice(WhenFull),
    "priority": terms.number(1, 9),
    "max_wait": terms.seconds(0),
    "limits": terms.shares,
    "limit_key": terms.text,
    "log_archive": terms.choice(LogArchive),
    "log_days": terms.number(0, 36_500),
    "run_days": terms.number(0, 36_500),
    "tags": terms.texts,
    "alarm_email": terms.addresses,
    "alarm_channels": terms.texts,
    "enabled": terms.switch,
}


def declare(handler: str, arguments: Mapping[str, Any]) -> Declaration | None:
    """Return the declaration of a handler, None without any term; raise HandlerConflict with one line."""
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in _READERS:
            matches = get_close_matches(name, [*_READERS, "init", "destroy", "process"], 1)
            hint = f"did you mean {matches[0]}?" if matches else f"known: {', '.join(_READERS)}"
            raise HandlerConflict(f"job handler {handler!r}: there is no argument {name}; {hint}")
        if value is None:
            continue
        try:
            values[name] = _READERS[name](value)
        except ValueError as exc:
            raise HandlerConflict(f"job handler {handler!r}: {name} {exc}") from exc
    if not values:
        return None
    _require_key(handler)
    _require_one_schedule(handler, values)
    for name in ("not_before", "not_after"):
        if name in values:
            values[name] = _with_zone(handler, name, values)
    return Declaration({name: values[name] for name in _READERS if name in values})


def _require_key(handler: str) -> None:
    if not terms.is_key(handler):
        raise HandlerConflict(
            f"job handler {handler!r}: a declared job needs a name of at most {terms.KEY_MAX} letters,"
            " digits, dots, - and _, because the name is its key"
        )


def _require_one_schedule(handler: str, values: Mapping[str, Any]) -> None:
    schedules = [name for name in SCHEDULES if name in values]
    if len(schedules) > 1:
        raise HandlerConflict(
            f"job handler {handler!r}: {' and '.join(schedules)} cannot be used together;"
            " a job has one schedule"
        )


def _with_zone(handler: str, name: str, values: Mapping[str, Any]) -> datetime:
    """Return an instant; a local time is read in the declared zone."""
    moment: datetime = values[name]
    if moment.tzinfo is not None:
        return moment
    zone = terms.zone_of(values["timezone"]) if "timezone" in values else None
    if zone is None:
        raise HandlerConflict(
            f"job handler {handler!r}: {name} needs a time zone: declare timezone=…,"
            " or give it tzinfo, such as datetime(2026, 12, 24, tzinfo=timezone.utc)"
        )
    return moment.replace(tzinfo=zone)


def _json(name: str, value: Any) -> Any:
    if name in SCHEDULES:
        return str(value)
    if name == "retry_backoff":
        return round(value * 100)
    if isinstance(value, datetime):
        return value.astimezone(terms.UTC).isoformat(timespec="milliseconds")
    return list(value) if isinstance(value, tuple) else value
