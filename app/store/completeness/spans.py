"""Statements on `xxl_job_span`: histories of switches and schedules."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.calendars.day_rule import parse_rule
from app.domain.calendars.rule_book import RuleBook
from app.domain.completeness.expected_instants import Interval
from app.domain.completeness.rule_history import with_rules
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import Schedule
from app.models.completeness import JobSpan
from app.models.job import Job
from app.store.calendars import rules

#: columns of `span_of`
COLUMNS = (
    JobSpan.id,
    JobSpan.job_id,
    JobSpan.group_id,
    JobSpan.is_on,
    JobSpan.from_ms,
    JobSpan.until_ms,
    JobSpan.schedule_type,
    JobSpan.schedule_conf,
    JobSpan.time_zone,
    JobSpan.not_before_ms,
    JobSpan.not_after_ms,
    JobSpan.anchor_ms,
    JobSpan.end_reason,
    JobSpan.calendar,
)
_OPEN = select(*COLUMNS).where(among(JobSpan.job_id), JobSpan.until_ms.is_(None)).order_by(JobSpan.id)


#: a blackout that ended so long before an interval may run something in it
RUN_ONCE_MS: Millis = DAY_MS


class OpenSpan(NamedTuple):
    """A span that has not ended, and the id of its row."""

    id: int
    span: Span


def find_open(session: Session, job_ids: Collection[int]) -> dict[int, OpenSpan]:
    """Return the spans of jobs that have not ended, by job id."""
    session.flush()
    rows = bulk.read_among(session, _OPEN, list(job_ids))
    return {row[1]: OpenSpan(row[0], span_of(row)) for row in rows}


def find_spans(
    session: Session,
    interval: Interval,
    *,
    job_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
) -> dict[int, list[Span]]:
    """Return job id -> spans that reach into an interval, in the order of their writing; None: of all jobs.

    With the group of a span its job is chosen as a whole, so that a move does not tear its history apart.
    """
    within: list[ColumnElement[bool]] = [
        or_(JobSpan.until_ms.is_(None), JobSpan.until_ms >= interval.from_ms),
        JobSpan.from_ms < interval.until_ms,
    ]
    if job_ids is not None:
        within.append(JobSpan.job_id.in_(list(job_ids)))
    if group_ids is not None:
        of_groups = select(JobSpan.job_id).where(*within, JobSpan.group_id.in_(list(group_ids)))
        within.append(JobSpan.job_id.in_(of_groups))
    spans: defaultdict[int, list[Span]] = defaultdict(list)
    for row in bulk.read_rows(session, select(*COLUMNS).where(*within).order_by(JobSpan.id)):
        spans[row[1]].append(span_of(row))
    return _with_rules(session, spans, interval)


def _with_rules(
    session: Session, spans: Mapping[int, list[Span]], interval: Interval
) -> dict[int, list[Span]]:
    """Return the spans of jobs with the calendars and blackouts that held in them."""
    if not rules.find_number(session):
        return dict(spans)
    since_ms = interval.from_ms - RUN_ONCE_MS
    history = read_history(session, (span for parts in spans.values() for span in parts), since_ms=since_ms)
    return {job_id: with_rules(history, parts) for job_id, parts in spans.items()}


def read_history(session: Session, spans: Iterable[Span], *, since_ms: Millis) -> RuleBook:
    """Return all versions of the calendars of spans, and the blackouts that reach later than ``since_ms``."""
    texts = {span.schedule.calendar for span in spans}
    names = {rule.name for text in texts if (rule := parse_rule(text)) is not None}
    return rules.read_history(session, names, since_ms=since_ms)


def find_first(session: Session) -> Millis | None:
    """Return the first instant of which a history is known; None: there is none."""
    first_ms = session.scalar(select(func.min(JobSpan.from_ms)))
    return None if first_ms is None else first_ms + 1


def close_spans(session: Session, until_by_id: Mapping[int, Millis], reason: str) -> None:
    """End spans, by the ids of their rows."""
    rows = [{"id": id_, "until_ms": at_ms, "end_reason": reason} for id_, at_ms in until_by_id.items()]
    bulk.update_many(session, JobSpan, rows)


def insert_spans(session: Session, spans: Sequence[Span]) -> None:
    """Insert spans that begin."""
    bulk.insert_many(session, JobSpan, [_row(span) for span in spans])


class ComparedJob(NamedTuple):
    """A job and, if it has one, its open span, as one statement has read them."""

    job_id: int
    schedule_conf: str
    trigger_next_time: Millis
    update_time: Millis | None
    #: None: it has no open span
    anchor_ms: Millis | None
    #: 1: its open span is absent or describes another schedule
    differs: int


def find_different(session: Session, *, zone: str) -> list[ComparedJob]:
    """Return the jobs whose open span is absent or describes another schedule, and all of a fixed rate.

    Whether the phase of a fixed rate is that of its span is left to the caller.
    """
    job_zone = func.coalesce(func.nullif(Job.time_zone, ""), literal(zone))
    is_known = Job.schedule_type.in_([kind.value for kind in ScheduleType])
    pairs = (
        (JobSpan.is_on, case((Job.trigger_status == TriggerStatus.RUNNING, 1), else_=0)),
        (JobSpan.group_id, Job.job_group),
        (JobSpan.schedule_type, case((is_known, Job.schedule_type), else_=ScheduleType.NONE.value)),
        (JobSpan.schedule_conf, func.coalesce(Job.schedule_conf, "")),
        (JobSpan.time_zone, job_zone),
        (JobSpan.not_before_ms, Job.not_before_ms),
        (JobSpan.not_after_ms, Job.not_after_ms),
        (func.coalesce(JobSpan.calendar, ""), func.coalesce(Job.calendar, "")),
    )
    differs = or_(JobSpan.id.is_(None), *(of_span != of_job for of_span, of_job in pairs))
    is_rate = and_(Job.schedule_type == ScheduleType.FIX_RATE, Job.trigger_status == TriggerStatus.RUNNING)
    query = (
        select(
            Job.id,
            func.coalesce(Job.schedule_conf, ""),
            Job.trigger_next_time,
            Job.update_time,
            JobSpan.anchor_ms,
            case((differs, 1), else_=0),
        )
        .outerjoin(JobSpan, and_(JobSpan.job_id == Job.id, JobSpan.until_ms.is_(None)))
        .where(or_(differs, is_rate))
    )
    return [ComparedJob._make(row) for row in bulk.read_rows(session, query)]


def find_without_job(session: Session) -> list[int]:
    """Return the ids of jobs that are gone although their history has not ended."""
    query = (
        select(JobSpan.job_id)
        .outerjoin(Job, Job.id == JobSpan.job_id)
        .where(JobSpan.until_ms.is_(None), Job.id.is_(None))
    )
    return list(session.scalars(query))


def span_of(row: Sequence[Any]) -> Span:
    _, job_id, group_id, is_on, from_ms, until_ms, kind, conf, zone, first, last, anchor, reason, rule = row
    kind_of_schedule = ScheduleType(kind) if kind in ScheduleType.__members__ else ScheduleType.NONE
    schedule = Schedule(kind_of_schedule, conf, zone, first, last, rule or "")
    return Span(job_id, group_id, bool(is_on), from_ms, until_ms, schedule, anchor, reason)


def _row(span: Span) -> bulk.Row:
    return {
        "job_id": span.job_id,
        "group_id": span.group_id,
        "is_on": int(span.is_on),
        "from_ms": span.from_ms,
        "schedule_type": span.schedule.type.value,
        "schedule_conf": span.schedule.conf,
        "time_zone": span.schedule.time_zone,
        "not_before_ms": span.schedule.not_before_ms,
        "not_after_ms": span.schedule.not_after_ms,
        "anchor_ms": span.anchor_ms,
        "calendar": span.schedule.calendar or None,
        "explained_ms": span.from_ms,
        "until_ms": span.until_ms,
        "end_reason": span.end_reason,
    }
