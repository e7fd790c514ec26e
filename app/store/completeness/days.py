"""Statements on `xxl_job_day` and `xxl_job_seal`: totals of instants by job and day, and their seals."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.completeness.equation import Tally
from app.models.completeness import WATERMARK_JOB, DaySeal, JobDay

#: columns of numbers, with the names of a tally
NUMBERS = (
    "expected",
    "on_time",
    "late",
    "unexplained",
    "unexpected",
    "unknown",
    "java",
    "finished",
    "failed",
    "unresolved",
)
#: terms with reasons
BY_REASON = ("not_started", "skipped")


class DayKey(NamedTuple):
    """A job and a day."""

    job_id: int
    day: str


class StoredDay(NamedTuple):
    """A row of a job and a day."""

    id: int
    key: DayKey
    group_id: int
    tally: Tally
    removed: Mapping[str, int]
    cleared: bool
    open_from_ms: Millis


class OpenDay(NamedTuple):
    """A job that is not counted from an instant on, although that is before the watermark."""

    job_id: int
    day: str
    open_from_ms: Millis


def find_watermark(session: Session) -> Millis:
    """Return up to when all jobs are counted, but for those that are still open; 0: nothing is."""
    query = select(JobDay.open_from_ms).where(JobDay.job_id == WATERMARK_JOB)
    return session.scalar(query) or 0


def lock_watermark(session: Session) -> Millis:
    """Lock and return the watermark; one node counts at a time."""
    bulk.insert_if_absent(session, JobDay, {"job_id": WATERMARK_JOB, "day": "", "group_id": 0})
    query = select(JobDay.open_from_ms).where(JobDay.job_id == WATERMARK_JOB).with_for_update()
    return session.scalar(query) or 0


def set_watermark(session: Session, at_ms: Millis) -> None:
    """Store up to when all jobs are counted; the caller has locked it."""
    session.execute(update(JobDay).where(JobDay.job_id == WATERMARK_JOB).values(open_from_ms=at_ms))


def save_recent(session: Session, tally: Tally) -> None:
    """Store what was found after the watermark when it was looked at last."""
    values = {"expected": tally.expected, "unexplained": tally.unexplained, "unexpected": tally.unexpected}
    session.execute(update(JobDay).where(JobDay.job_id == WATERMARK_JOB).values(**values))


def count_unexplained(session: Session, *, from_day: str) -> int:
    """Return the unexplained instants since a day, as counted last; with those after the watermark."""
    query = select(func.sum(JobDay.unexplained)).where(
        (JobDay.day >= from_day) | (JobDay.job_id == WATERMARK_JOB)
    )
    return int(session.scalar(query) or 0)


def find_open(session: Session) -> list[OpenDay]:
    """Return the jobs that are not counted up to the watermark."""
    query = select(JobDay.job_id, JobDay.day, JobDay.open_from_ms).where(
        JobDay.open_from_ms > 0, JobDay.job_id != WATERMARK_JOB
    )
    return [OpenDay._make(row) for row in bulk.read_rows(session, query)]


def find_days(session: Session, day: str, job_ids: Collection[int] | None = None) -> dict[int, StoredDay]:
    """Return the rows of a day by job id; ``job_ids`` None: of all jobs."""
    query = select(JobDay).where(JobDay.day == day, JobDay.job_id != WATERMARK_JOB)
    if job_ids is not None:
        query = query.where(JobDay.job_id.in_(list(job_ids)))
    return {row.job_id: _day_of(row) for row in session.scalars(query)}


def save_days(session: Session, days: Sequence[StoredDay]) -> None:
    """Store rows; ``id`` 0: a new one."""
    rows = [_row(day) for day in days]
    bulk.update_many(
        session, JobDay, [{"id": day.id} | row for day, row in zip(days, rows, strict=True) if day.id]
    )
    bulk.insert_many(session, JobDay, [row for day, row in zip(days, rows, strict=True) if not day.id])


def sum_days(
    session: Session,
    days: Collection[str],
    *,
    job_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
) -> dict[int, tuple[int, Tally]]:
    """Return job id -> group and totals of days, in one statement and another for reasons.

    None: of all jobs, of all groups.
    """
    if not days:
        return {}
    scope: list[ColumnElement[bool]] = [
        JobDay.day.in_(sorted(days)),
        JobDay.job_id != WATERMARK_JOB,
    ]
    if job_ids is not None:
        scope.append(JobDay.job_id.in_(list(job_ids)))
    if group_ids is not None:
        scope.append(JobDay.group_id.in_(list(group_ids)))
    sums = [func.sum(getattr(JobDay, name)) for name in NUMBERS]
    query = select(JobDay.job_id, func.max(JobDay.group_id), *sums).where(*scope).group_by(JobDay.job_id)
    totals: dict[int, tuple[int, Tally]] = {}
    for row in bulk.read_rows(session, query):
        numbers: dict[str, Any] = dict(zip(NUMBERS, map(int, row[2:]), strict=True))
        totals[row[0]] = row[1], Tally(**numbers)
    reasons = select(JobDay.job_id, JobDay.reasons).where(*scope, JobDay.reasons.is_not(None))
    for job_id, text in bulk.read_rows(session, reasons):
        _add_reasons(totals[job_id][1], text)
    return totals


def mark_changed(session: Session, keys: Collection[DayKey]) -> None:
    """Note that counted runs of these jobs and days got another result."""
    for key in sorted(set(keys)):
        of_day = (JobDay.job_id == key.job_id) & (JobDay.day == key.day)
        affected(session, update(JobDay).where(of_day).values(changed=1))


def take_changed(session: Session, *, limit: int) -> list[StoredDay]:
    """Return days that are to be counted again, and take the mark from them."""
    query = select(JobDay).where(JobDay.changed == 1).order_by(JobDay.id).limit(limit)
    rows = list(session.scalars(query.with_for_update()))
    for row in rows:
        row.changed = 0
    session.flush()
    return [_day_of(row) for row in rows]


def mark_cleared(session: Session, job_ids: Collection[int], first: str, last: str) -> None:
    """Note that rows of counted instants of these jobs and days are deleted."""
    days = JobDay.day.between(first, last)
    affected(
        session,
        update(JobDay).where(JobDay.job_id.in_(list(job_ids)), days, JobDay.cleared == 0).values(cleared=1),
    )


_REMOVED = select(JobDay.job_id, JobDay.day, JobDay.removed).where(
    among(JobDay.job_id), JobDay.removed.is_not(None)
)


def find_removed(
    session: Session, job_ids: Collection[int], first: date, last: date
) -> dict[int, Counter[str]]:
    """Return job id -> term -> number of instants whose rows were deleted before they were counted.

    Those of the days from ``first`` to ``last``, both included.
    """
    counts_by_job: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for job_id, day, text in bulk.read_among(session, _REMOVED, list(job_ids)):
        if first.isoformat() <= day <= last.isoformat():
            counts_by_job[job_id].update(json.loads(text))
    return dict(counts_by_job)


def add_removed(
    session: Session, numbers: Mapping[DayKey, Counter[str]], group_by_job: Mapping[int, int]
) -> None:
    """Add instants whose rows are deleted before they are counted."""
    by_day: defaultdict[str, list[DayKey]] = defaultdict(list)
    for key in numbers:
        by_day[key.day].append(key)
    for day, keys in by_day.items():
        row_by_job = find_days(session, day, [key.job_id for key in keys])
        rows = []
        for key in keys:
            row = row_by_job.get(key.job_id) or StoredDay(
                0, key, group_by_job[key.job_id], Tally(), {}, False, 0
            )
            rows.append(row._replace(removed=Counter(row.removed) + numbers[key]))
        save_days(session, rows)


class Seal(NamedTuple):
    """Seal of a day; one with a number above 0 is a correction of the one before."""

    day: str
    number: int
    #: as JSON text
    totals: str
    rows_hash: str
    hash: str
    restored: int = 0


_SEALS = select(*(getattr(DaySeal, name) for name in Seal._fields))


def find_seals(session: Session) -> list[Seal]:
    """Return all seals in the order of their chain."""
    return [Seal._make(row) for row in bulk.read_rows(session, _SEALS.order_by(DaySeal.id))]


def find_last_seal(session: Session) -> Seal | None:
    """Return the end of the chain."""
    rows = bulk.read_rows(session, _SEALS.order_by(DaySeal.id.desc()).limit(1))
    return Seal._make(rows[0]) if rows else None


def find_last_day(session: Session) -> str:
    """Return the last day that is sealed; empty: none is."""
    return session.scalar(select(func.max(DaySeal.day))) or ""


def find_last_number(session: Session, day: str) -> int:
    """Return the number of the latest seal of a day; -1: it is not sealed."""
    number = session.scalar(select(func.max(DaySeal.number)).where(DaySeal.day == day))
    return -1 if number is None else int(number)


def find_last_sealed_ms(session: Session) -> Millis:
    """Return when the last seal was made; 0: there is none."""
    return session.scalar(select(func.max(DaySeal.sealed_ms))) or 0


def insert_seal(session: Session, seal: Seal, *, now_ms: Millis) -> None:
    """Append to the chain; the caller has locked the watermark."""
    bulk.insert_many(session, DaySeal, [seal._asdict() | {"sealed_ms": now_ms}])


def _day_of(row: JobDay) -> StoredDay:
    tally = Tally(**{name: getattr(row, name) for name in NUMBERS})
    _add_reasons(tally, row.reasons)
    return StoredDay(
        row.id,
        DayKey(row.job_id, row.day),
        row.group_id,
        tally,
        json.loads(row.removed or "{}"),
        bool(row.cleared),
        row.open_from_ms,
    )


def _add_reasons(tally: Tally, text: str | None) -> None:
    for term, numbers in json.loads(text or "{}").items():
        getattr(tally, term).update(numbers)


def _row(day: StoredDay) -> bulk.Row:
    tally = day.tally
    reasons = {term: dict(sorted(numbers.items())) for term in BY_REASON if (numbers := getattr(tally, term))}
    return {
        "job_id": day.key.job_id,
        "day": day.key.day,
        "group_id": day.group_id,
        **{name: getattr(tally, name) for name in NUMBERS},
        **{term: sum(reasons.get(term, {}).values()) for term in BY_REASON},
        "excluded": tally.excluded,
        "reasons": json.dumps(reasons) if reasons else None,
        "removed": json.dumps(dict(day.removed)) if day.removed else None,
        "cleared": int(day.cleared),
        "open_from_ms": day.open_from_ms,
    }


def canonical(days: Iterable[StoredDay]) -> str:
    """Return rows of a day as canonical JSON, by job id, for their hash."""
    rows = sorted((_row(day) for day in days), key=lambda row: row["job_id"])
    left_out = {"removed", "cleared", "excluded"}
    return json.dumps(
        [{name: value for name, value in row.items() if name not in left_out} for row in rows],
        sort_keys=True,
        separators=(",", ":"),
    )
