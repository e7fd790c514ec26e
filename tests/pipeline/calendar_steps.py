"""Steps of calendars and blackouts: changes, what the monitor does after them, and the account of a job."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.completeness.equation import Account, account
from app.domain.completeness.expected_instants import Interval
from app.models.calendar import CalendarVersion, JobBlackout, JobCalendar
from app.models.job import Job
from app.pipeline.calendars.changes import Change, begin_change
from app.pipeline.scan import scan
from app.pipeline.spans import keep_spans
from app.store.completeness import spans as span_store
from app.store.completeness.evidence import find_evidence
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import call_back
from tests.support.factories import T0, make_due_job

ZONE = "UTC"
WORKDAYS = {"name": "cn", "on": "workdays", "otherwise": "skip"}


def change_rules(
    write: Callable[[Session, Change], Any], *, now_ms: Millis = T0, of_calendar: bool = False
) -> Any:
    """Change calendars or blackouts as the services do; return what ``write`` returns."""

    def work(session: Session) -> Any:
        change = begin_change(session, None, clock=lambda: now_ms, of_calendar=of_calendar)
        written = write(session, change)
        change.finish(session)
        return written

    return transact(work)


def put_calendar(
    days: dict[str, str], *, name: str = "cn", weekend: str = "6,7", now_ms: Millis = T0
) -> None:
    """Write a version of a calendar."""

    def write(session: Session, change: Change) -> None:
        calendar = session.query(JobCalendar).filter_by(name=name).first() or JobCalendar(name=name)
        session.add(calendar)
        session.flush()
        version = CalendarVersion(
            calendar_id=calendar.id,
            name=name,
            number=1,
            from_ms=change.now_ms,
            weekend=weekend,
            days=json.dumps({date.fromisoformat(day).isoformat(): kind for day, kind in days.items()}),
        )
        session.add(version)
        session.flush()
        calendar.version_id = version.id

    change_rules(write, now_ms=now_ms, of_calendar=True)


def add_blackout(from_ms: Millis, until_ms: Millis | None, *, now_ms: Millis = T0, **values: Any) -> int:
    """Write a blackout; return its id."""

    def write(session: Session, change: Change) -> int:
        begins = {"from_ms": max(from_ms, change.now_ms), "until_ms": until_ms, "created_ms": now_ms}
        row = JobBlackout(**({"reason": "release", "zone": ZONE} | begins | values))
        session.add(row)
        session.flush()
        return row.id

    return int(change_rules(write, now_ms=now_ms))


def end_blackout(blackout_id: int, *, now_ms: Millis) -> None:
    """End a blackout."""

    def write(session: Session, change: Change) -> None:
        row = session.get_one(JobBlackout, blackout_id)
        row.ended_ms = change.now_ms
        row.until_ms = max(row.from_ms, min(change.now_ms, row.until_ms or change.now_ms))

    change_rules(write, now_ms=now_ms)


def ruled_job(
    next_ms: Millis, kind: str, conf: str, *, calendar: dict[str, Any] | None = None, **values: Any
) -> Job:
    """Commit a job that is on, with its history since T0 and its calendar."""
    text = json.dumps(calendar) if calendar else None
    job = make_due_job(next_ms, kind, conf, calendar=text, time_zone=ZONE, last_fire_ms=0, **values)
    with session_scope() as session:
        keep_spans(session, [job.id], now_ms=T0)
    return job


def pass_time(now_ms: Millis) -> list[int]:
    """Let a scheduler look at a time, and end all runs that begin; return their log ids."""
    scan(node="one", zone=ZONE, now_ms=now_ms)
    ids = [run.log_id for run in claim_due(now_ms)]
    for log_id in ids:
        call_back(log_id, 200, now_ms=now_ms)
    return ids


def account_of(job: Job, until_ms: Millis, *, from_ms: Millis = T0) -> Account:
    """Return what became of the instants of a job, as if a scheduler had looked up to the end."""
    interval = Interval(from_ms + 1, until_ms + 1)
    with read_scope() as session:
        spans = span_store.find_spans(session, interval, job_ids=[job.id]).get(job.id, [])
        evidence = find_evidence(session, [job.id], interval, delayed_ids=[])
    return account(spans, evidence[job.id], interval, scanned_ms=until_ms)
