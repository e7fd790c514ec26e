"""Job members: the names and JSON values of a job's attributes in API v1, in versions and in jobs as code.

A new attribute of a job is a line of ``JobDraft`` and one of ``MEMBERS``. Limits, choices and defaults are
those of ``app.domain.jobs.fields``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.clock import Millis
from app.domain.jobs.children import child_ids_of, child_ids_text
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.job_field import JobField, Kind
from app.domain.jobs.structures import read_structure
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.schedules.instants import read_instant, write_instant
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import with_field_name
from app.errors import ForeignValue, InvalidInput

CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class JobMember:
    """Member of a job's JSON object."""

    name: str
    #: of the draft, and of the model but for the tags
    attribute: str
    #: for the reference, in English
    description: str
    #: kept and shown with the versions of the code, not with the other members
    is_code: bool = False

    @property
    def field(self) -> JobField | None:
        """Kind and limits; None for the tags."""
        return FIELD_OF.get(self.attribute)

    @property
    def default(self) -> Any:
        """JSON value of a new job that omits the member; None where it has to be given, or is open."""
        job_field = self.field
        if job_field is None or self.name == CHILDREN:
            return []
        if job_field.is_required or job_field.kind is Kind.INSTANT or self.name == "group_id":
            return None
        if job_field.kind is Kind.CHOICE:
            return str(job_field.default or next(iter(job_field.choices)))
        return self.read(job_field.default) if self.is_converted else job_field.default

    @property
    def is_required(self) -> bool:
        """Whether a new job must have it."""
        return self.name == "group_id" or (self.field is not None and self.field.is_required)

    @property
    def is_converted(self) -> bool:
        """Whether the JSON value is not that of the attribute."""
        return self.name == CHILDREN or self._kind in (Kind.INSTANT, Kind.BOOLEAN, Kind.STRUCTURE)

    @property
    def _kind(self) -> Kind | None:
        return self.field.kind if self.field is not None else None

    def read(self, value: Any) -> Any:
        """Return the JSON value of an attribute's value."""
        if self.attribute == TAGS:
            return list(value or ())
        if self.name == CHILDREN:
            return child_ids_of(value)
        if self._kind is Kind.INSTANT:
            return instant_text(value)
        if self._kind is Kind.BOOLEAN:
            return bool(value)
        if self.field is not None and self._kind is Kind.STRUCTURE:
            return read_structure(self.field, value)
        return "" if value is None else value

    def write(self, value: Any) -> Any:
        """Return the attribute's value of a JSON value; raises InvalidInput for an unreadable instant."""
        if self.attribute == TAGS:
            return tuple(value)
        if self.name == CHILDREN:
            return child_ids_text(value)
        if self._kind is Kind.INSTANT:
            return _read_bound(self.name, value) if value else 0
        if self._kind is Kind.BOOLEAN:
            return int(value)
        if self._kind is Kind.STRUCTURE:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return value


MEMBERS = (
    JobMember("group_id", "job_group", "Id of the executor group whose instances run the job."),
    JobMember("description", "job_desc", "What the job does, as lists show it."),
    JobMember("owner", "author", "Who is responsible for the job."),
    JobMember(
        "alarm_email", "alarm_email", "Addresses that get mail about failed runs, separated by commas."
    ),
    JobMember(
        "schedule_type",
        "schedule_type",
        "How the times of runs are computed. `NONE`: never by itself. `CRON`: by a cron expression."
        " `FIX_RATE`: every so many seconds. `FIX_DELAY`: so many seconds after the end of the last run."
        " `AT`: once.",
    ),
    JobMember(
        "schedule",
        "schedule_conf",
        "The schedule itself: a cron expression of 5 (Unix) or 6 to 7 fields (Quartz), a number of seconds,"
        " or a local time such as `2026-12-24 18:00:00` for `AT`.",
    ),
    JobMember(
        "time_zone",
        "time_zone",
        "IANA zone in which the schedule is read, such as `Asia/Shanghai`; empty: the server's.",
    ),
    JobMember("not_before", "not_before_ms", "The schedule starts no run before this instant; null: open."),
    JobMember("not_after", "not_after_ms", "The schedule starts no run after this instant; null: open."),
    JobMember(
        "run_mode",
        "glue_type",
        "What a run executes: a handler of the executor (`BEAN`) or the job's own code. It never changes.",
    ),
    JobMember("source", "glue_source", "Code of the job, for run modes other than `BEAN`.", is_code=True),
    JobMember("source_remark", "glue_remark", "Remark on this version of the code.", is_code=True),
    JobMember(
        "handler",
        "executor_handler",
        "Name under which the executor registers the handler; required for run mode `BEAN`.",
    ),
    JobMember("param", "executor_param", "Parameter that every run gets."),
    JobMember(
        "fill_parameter",
        "fill_parameter",
        "Whether placeholders of the parameter, such as `${time-1d:yyyy-MM-dd}`, are filled in before a run"
        " is sent.",
    ),
    JobMember(
        "route_strategy",
        "executor_route_strategy",
        "How an instance is chosen for a run. `FAILOVER`: the first that answers; `BUSYOVER`: the first idle"
        " one; `SHARDING_BROADCAST`: all of them, each with its shard index.",
    ),
    JobMember(CHILDREN, "child_jobid", "Ids of the jobs that run after a success of this one."),
    JobMember(
        "misfire_strategy",
        "misfire_strategy",
        "What to do with runs that missed their scheduled time. `DO_NOTHING`: skip them; `FIRE_ONCE_NOW`: run"
        " once in their place; `RUN_ALL`: run each of them, one after the other, which needs `when_full`"
        " `wait`.",
    ),
    JobMember(
        "misfire_max",
        "misfire_max",
        "By `RUN_ALL`: most missed runs that run, the newest; the others are skipped.",
    ),
    JobMember(
        "misfire_max_age_s",
        "misfire_max_age_s",
        "By `RUN_ALL`: seconds after which a missed run is too old, and skipped.",
    ),
    JobMember(
        "block_strategy",
        "executor_block_strategy",
        "What an executor does with a run while an earlier one of the job is in progress. `SERIAL_EXECUTION`:"
        " it waits; `DISCARD_LATER`: it fails; `COVER_EARLY`: the earlier one is ended.",
    ),
    JobMember("timeout_s", "executor_timeout", "Seconds after which a run is ended; 0: never."),
    JobMember("retry_count", "executor_fail_retry_count", "How often a failed run is repeated."),
    JobMember("retry_interval_s", "retry_interval_s", "Seconds before the first retry; 0: at once."),
    JobMember(
        "retry_backoff_percent",
        "retry_backoff_percent",
        "Each retry waits this percentage of the delay before it, a day at most; 100: all wait equally long.",
    ),
    JobMember(
        "delivery",
        "delivery",
        "Whether a run is sent again when contact was lost and it may or may not have started. `auto`: where"
        " the executor remembers its runs; `at_most_once`: never; `at_least_once`: always.",
    ),
    JobMember(
        "promises",
        "promises",
        "What the job promises, ten at most; a broken promise is an incident and sends a message. Those of"
        " the group hold for the kinds of which the job has none. Jobs without a schedule or with a fixed"
        " delay have no `starts_within`, `finishes_within`, `finishes_by`.",
    ),
    JobMember(
        "escalation",
        "escalation",
        "Further channel for incidents that are not acknowledged, and after how many minutes; null: that of"
        " the group.",
    ),
    JobMember(
        "max_running",
        "max_running",
        "Most runs of the job at once, on all instances together; 0: no limit. With `limit_key` for each"
        " key.",
    ),
    JobMember(
        "when_full",
        "when_full",
        "What becomes of a run for which a limit has no slot. `wait`: it waits; `skip`: it is skipped;"
        " `newest`: it waits, and those that wait already are skipped; `replace`: the same, and the run in"
        " progress is killed.",
    ),
    JobMember(
        "priority",
        "priority",
        "Place of waiting runs: 9 is first, 1 last. Ten minutes of waiting count as much as one step.",
    ),
    JobMember(
        "max_wait_s", "max_wait_s", "Seconds after which a waiting run is skipped; 0: it goes on waiting."
    ),
    JobMember(
        "limits",
        "limits",
        "Named limits that the job shares with others, ten at most, each with the slots that a run takes.",
    ),
    JobMember(
        "limit_key",
        "limit_key",
        "Counts `max_running` for each value by itself: a text with placeholders of the parameter, such as"
        " `${param.customer}`.",
    ),
    JobMember(
        "runs_after",
        "runs_after",
        "Jobs after which the job runs, and by which rule; null: none. In jobs as code they are named by"
        " their keys, of another group as `<AppName>/<key>`.",
    ),
    JobMember(
        "calendar",
        "calendar",
        "On which days of a calendar the schedule runs, and what becomes of its instants on others; null: it"
        " runs on all days.",
    ),
    JobMember(
        "log_archive",
        "log_archive",
        "Of which runs the log is kept beyond the life of the executor: `off`, `failed` or `all`; empty: as"
        " the group, else the installation says.",
    ),
    JobMember(
        "log_days",
        "log_days",
        "Days that archived logs are kept; 0: as the group, else the installation says.",
    ),
    JobMember(
        "run_days",
        "run_days",
        "Days that runs are kept, three at least; 0: as the group, else the installation says.",
    ),
    JobMember("tags", "tags", "Tags, compared without case."),
)
#: name -> member
MEMBER_OF = {member.name: member for member in MEMBERS}
#: the members without those of the code: what a version of a job has
PLAIN_MEMBERS = tuple(member for member in MEMBERS if not member.is_code)
#: name of a field in errors -> name of the member
MEMBER_OF_ERROR = {
    name: member.name
    for member in MEMBERS
    if member.field is not None
    for name in (member.attribute, member.field.error_name)
} | {"notBefore": "not_before", "notAfter": "not_after"}


#: name, attribute, and the member if its JSON value is not that of its attribute; an import reads 2,000 jobs
_READ = tuple(
    (member.name, member.attribute, member if member.is_converted else None)
    for member in PLAIN_MEMBERS
    if member.attribute != TAGS
)


def read_members(job: object, tags: Iterable[str]) -> dict[str, Any]:
    """Return member -> JSON value of a job (row or draft), without its code."""
    values = dict[str, Any]()
    for name, attribute, member in _READ:
        value = getattr(job, attribute, None)
        values[name] = member.read(value) if member is not None else "" if value is None else value
    values[TAGS] = list(tags)
    return values


def draft_values(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return attribute -> value of members of valid kinds; raises InvalidInput with all errors."""
    values, errors = dict[str, Any](), InputErrors()
    for name, value in members.items():
        with errors:
            values[MEMBER_OF[name].attribute] = MEMBER_OF[name].write(value)
    errors.raise_all()
    return values


def with_member_names(error: InvalidInput) -> InvalidInput:
    """Return an error of the services, with the others of the same input, under the names of the members."""
    first, *further = (
        (ForeignValue if isinstance(problem, ForeignValue) else InvalidInput)(
            MEMBER_OF_ERROR.get(problem.field, problem.field),
            with_field_name(problem.message, MEMBER_OF_ERROR),
        )
        for problem in error.errors
    )
    first.further_errors = tuple(further)
    return first


def instant_text(at_ms: Millis) -> str | None:
    """Return an instant as text; None for 0."""
    return write_instant(at_ms) if at_ms else None


def _read_bound(name: str, text: str) -> Millis:
    """Return the instant of a text; raises InvalidInput, also for 0, which means open."""
    try:
        at_ms = read_instant(text)
    except ValueError as exc:
        raise InvalidInput(name, str(exc)) from exc
    if not at_ms:
        raise InvalidInput(name, "must be a time after 1970-01-01T00:00:00Z")
    return at_ms
