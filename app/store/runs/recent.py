"""Recent runs: the newest runs of many jobs at once, with the few columns a bar shows. Reads only.

The cost is bounded, however long the log is: for each job an index lookup and at most ``limit`` rows, on
PostgreSQL by a lateral join, elsewhere by a branch of a UNION, which PostgreSQL takes 80 ms to plan for a
hundred jobs. A correlated subquery would read all runs of a busy job on MariaDB.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    column,
    func,
    select,
    true,
    tuple_,
    type_coerce,
    union_all,
)
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, Millis
from app.database.dialects.choice import dialect_of
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.models.base import EpochMillis, millis_of
from app.models.log import JobLog
from app.store.fires.logs import is_failed
from app.store.pickers.overview import GroupIds, OpenRun, in_groups, is_running

#: numbers of branches in a statement, each built once; unused branches select a job that does not exist
SIZES = (1, 10, 30, 100)
NO_ID = -1


class Run(NamedTuple):
    """A log row as a bar shows it."""

    id: int
    job_id: int
    job_group: int
    trigger_time: Millis
    trigger_code: int
    handle_time: Millis | None
    handle_code: int
    duration_ms: Millis | None = None
    killed: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Number of runs of each job, among those that were read."""

    counts: Counter[int]
    #: there are more than were read
    is_cut: bool


_RUN = tuple(getattr(JobLog, name) for name in Run._fields)
#: columns read by owner
_READ: dict[str, tuple[Any, ...]] = {"job_id": _RUN, "job_group": (JobLog.job_id, JobLog.job_group)}
#: the same as one text for MySQL, because PyMySQL reads a column as slowly as another driver a row
_TEXT = {
    owner: func.concat_ws(",", *(func.coalesce(type_coerce(value, String), "") for value in columns))
    for owner, columns in _READ.items()
}


_MOST = bindparam("most", type_=Integer)


def find_newest_of_jobs(
    session: Session,
    job_ids: Collection[int],
    *,
    group_ids: GroupIds,
    limit: int,
    since_ms: Millis = 0,
    before_ms: Millis = LATEST_MS,
) -> dict[int, list[Run]]:
    """Return the newest runs of each of the jobs, newest first.

    They were triggered from ``since_ms`` to before ``before_ms``. Of the newest ``limit`` of a job, those in
    other groups than these (None: in any) are left out.
    """
    runs_by_job: dict[int, list[Run]] = {}
    for row in _newest_of_each(
        session, "job_id", job_ids, limit=limit, since_ms=since_ms, before_ms=before_ms
    ):
        if group_ids is None or row[2] in group_ids:
            runs_by_job.setdefault(row[1], []).append(Run._make(row))
    for runs in runs_by_job.values():
        runs.sort(key=lambda run: (run.trigger_time, run.id), reverse=True)
    return runs_by_job


def count_by_job(session: Session, group_ids: GroupIds, *, since_ms: Millis, limit: int) -> RunCounts:
    """Count the runs of each job among the newest ``limit`` of these groups (None: of all) since then."""
    if group_ids is None:
        counts = _count_newest(session, JobLog.trigger_time >= since_ms, limit=limit)
        return RunCounts(counts, counts.total() >= limit)
    share = max(1, limit // max(1, len(group_ids)))
    rows = _newest_of_each(
        session, "job_group", group_ids, limit=share, since_ms=since_ms, before_ms=LATEST_MS
    )
    count_by_group = Counter(row[1] for row in rows)
    return RunCounts(
        Counter(row[0] for row in rows), any(count >= share for count in count_by_group.values())
    )


def find_failed(session: Session, group_ids: GroupIds, *, since_ms: Millis, limit: int) -> list[Run]:
    """Return the newest runs of these groups since then that failed or are unresolved."""
    query = select(*_RUN).where(
        is_failed(), JobLog.trigger_time >= since_ms, *in_groups(JobLog.job_group, group_ids)
    )
    rows = bulk.read_rows(session, query.order_by(JobLog.trigger_time.desc(), JobLog.id.desc()).limit(limit))
    return [Run._make(row) for row in rows]


def count_failed(session: Session, group_ids: GroupIds, *, since_ms: Millis, limit: int) -> Counter[int]:
    """Count the failed and unresolved runs of each job among the newest ``limit`` of these groups."""
    return _count_newest(
        session,
        is_failed(),
        JobLog.trigger_time >= since_ms,
        *in_groups(JobLog.job_group, group_ids),
        limit=limit,
    )


_COUNTS = (
    select(JobLog.job_id, func.count())
    .where(among(JobLog.job_id), JobLog.trigger_time >= bindparam("since", type_=EpochMillis))
    .group_by(JobLog.job_id)
)


def count_of_jobs(session: Session, job_ids: Collection[int], *, since_ms: Millis) -> dict[int, int]:
    """Return how many runs each of the jobs has since then; reads an index only."""
    rows = bulk.read_rows(session, _COUNTS, {WANTED: list(job_ids), "since": since_ms})
    return {row[0]: row[1] for row in rows}


def find_still_running(
    session: Session, open_runs: Sequence[OpenRun], *, before_ms: Millis, now_ms: Millis
) -> list[Run]:
    """Return those of the open runs that run and were triggered before ``before_ms``, oldest first."""
    ids = [run.id for run in open_runs if is_running(run, now_ms=now_ms) and run.trigger_time < before_ms]
    if not ids:
        return []
    rows = bulk.read_rows(session, select(*_RUN).where(JobLog.id.in_(ids)).order_by(JobLog.id))
    return [Run._make(row) for row in rows]


def _count_newest(session: Session, *conditions: ColumnElement[bool], limit: int) -> Counter[int]:
    """Count the newest ``limit`` of these runs by job; the database counts, since drivers read slowly."""
    newest_first = (
        select(JobLog.job_id).where(*conditions).order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    )
    newest = newest_first.limit(limit).subquery()
    query = select(newest.c.job_id, func.count()).group_by(newest.c.job_id)
    return Counter({row[0]: row[1] for row in bulk.read_rows(session, query)})


def _newest_of_each(
    session: Session, owner: str, ids: Collection[int], *, limit: int, since_ms: Millis, before_ms: Millis
) -> Sequence[Sequence[Any]]:
    """Return the columns _READ of the newest runs of each job or group; ``owner`` is a key of _READ."""
    bounds: dict[str, Any] = {"most": limit, "since": since_ms, "before": before_ms}
    dialect = dialect_of(session)
    if dialect.joins_lists:
        return bulk.read_rows(session, _lateral(owner), {**bounds, "ids": list(ids)})
    build = _texts if dialect.reads_texts_faster else _union
    rest, rows = list(ids), list[Sequence[Any]]()
    while rest:
        size = next((size for size in SIZES if size >= len(rest)), SIZES[-1])
        branches = {f"id_{number}": rest[number] if number < len(rest) else NO_ID for number in range(size)}
        rows += direct.read(session, build(owner, size), {**bounds, **branches})
        rest = rest[size:]
    return [_READERS[owner](row[0]) for row in rows] if dialect.reads_texts_faster else rows


@lru_cache
def _union(owner: str, size: int) -> Select[Any]:
    """Build the statement with ``size`` branches; cached, because building it costs more than running it."""
    branches = (_newest_of(owner, one, _READ[owner]).subquery() for one in _ids(size))
    return select(union_all(*map(select, branches)).subquery())


@lru_cache
def _texts(owner: str, size: int) -> Select[Any]:
    """Build the statement for MySQL, which finds the ids in an index; short branches are parsed quickly."""
    newest = union_all(*(_newest_of(owner, one, [JobLog.id]) for one in _ids(size))).subquery("newest")
    return select(_TEXT[owner]).join_from(newest, JobLog, JobLog.id == newest.c.id)


def _ids(size: int) -> list[BindParameter[int]]:
    return [bindparam(f"id_{number}", type_=Integer) for number in range(size)]


def _run_of_text(text: str) -> tuple[Any, ...]:
    log_id, job_id, group_id, trigger_time, sent_ms, handle_time, result, duration_ms, is_killed = text.split(
        ","
    )
    return (
        int(log_id),
        int(job_id),
        int(group_id),
        millis_of(trigger_time),
        int(sent_ms),
        millis_of(handle_time) if handle_time else None,
        int(result),
        int(duration_ms) if duration_ms else None,
        int(is_killed),
    )


def _ids_of_text(text: str) -> tuple[int, int]:
    job_id, group_id = text.split(",")
    return int(job_id), int(group_id)


#: read the texts of _TEXT
_READERS: dict[str, Callable[[str], tuple[Any, ...]]] = {"job_id": _run_of_text, "job_group": _ids_of_text}


@lru_cache
def _lateral(owner: str) -> Select[Any]:
    """Build the statement for PostgreSQL, which has a branch for each element of the array ``ids``."""
    ids = bindparam("ids", type_=ARRAY(Integer))
    ids_table = func.unnest(ids).table_valued(column("id", Integer)).render_derived(name="asked")
    key, since, before = getattr(JobLog, owner), *_bounds()
    # They are compared as pairs, so that only the index on both columns fits. By its statistics PostgreSQL
    # would use the one on the time for a group without recent runs, and read all runs of the others.
    runs = select(*_READ[owner]).where(
        tuple_(key, JobLog.trigger_time) >= tuple_(ids_table.c.id, since),
        tuple_(key, JobLog.trigger_time) < tuple_(ids_table.c.id, before),
    )
    newest_first = runs.order_by(key.desc(), JobLog.trigger_time.desc(), JobLog.id.desc())
    newest = newest_first.limit(_MOST).lateral("newest")
    return select(newest).select_from(ids_table.join(newest, true()))


def _newest_of(owner: str, one: ColumnElement[int], columns: Sequence[Any]) -> Select[Any]:
    since, before = _bounds()
    runs = select(*columns).where(
        getattr(JobLog, owner) == one, JobLog.trigger_time >= since, JobLog.trigger_time < before
    )
    newest_first = runs.order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    return newest_first.limit(_MOST)


def _bounds() -> tuple[BindParameter[Any], BindParameter[Any]]:
    return bindparam("since", type_=EpochMillis), bindparam("before", type_=EpochMillis)
