"""What earlier runs give to later ones: filled parameters, results, parents of retries. Reads only."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.enums import HandleCode, TriggerType
from app.models.log import JobLog

#: retries that are followed back to the run that they repeat
RETRIES_FOLLOWED = 100

_FILLED = select(
    JobLog.id,
    JobLog.executor_param,
    JobLog.filled_param,
    JobLog.logical_ms,
    JobLog.fire_time,
    JobLog.trigger_time,
).where(among(JobLog.id), JobLog.filled_param.is_not(None))
_GIVEN = select(
    JobLog.id, JobLog.executor_param, JobLog.filled_param, JobLog.handle_code, JobLog.handle_msg
).where(among(JobLog.id))
_SOURCES = select(JobLog.id, JobLog.trigger_type, JobLog.source_log_id).where(among(JobLog.id))


class FilledRun(NamedTuple):
    """Run whose parameter was filled in."""

    log_id: int
    template: str
    #: marked text
    filled: str | None
    #: logical time; None: the run has no time at all
    logical_ms: Millis | None


class GivenRow(NamedTuple):
    """Run with its parameter and its message."""

    log_id: int
    template: str
    #: marked text; None: the parameter was sent as it is
    filled: str | None
    is_success: bool
    message: str


def find_filled(session: Session, log_ids: Collection[int]) -> dict[int, FilledRun]:
    """Return log id -> filled parameter, for those of the runs that have one."""
    rows = bulk.read_among(session, _FILLED, sorted(log_ids)) if log_ids else ()
    return {row[0]: FilledRun(row[0], row[1] or "", row[2], _logical_of(*row[3:])) for row in rows}


def _logical_of(
    logical_ms: Millis | None, fire_time: Millis | None, trigger_ms: Millis | None
) -> Millis | None:
    return next((at_ms for at_ms in (logical_ms, fire_time, trigger_ms) if at_ms is not None), None)


def find_given(session: Session, log_ids: Collection[int]) -> dict[int, GivenRow]:
    """Return the runs that exist, by log id."""
    rows = bulk.read_among(session, _GIVEN, sorted(log_ids)) if log_ids else ()
    return {
        row[0]: GivenRow(row[0], row[1] or "", row[2], row[3] == HandleCode.SUCCESS, row[4] or "")
        for row in rows
    }


def find_parents(session: Session, log_ids: Collection[int]) -> dict[int, int]:
    """Return log id -> parent of the first run of its chain of retries; missing where that is no child.

    A statement per retry, for at most RETRIES_FOLLOWED of them: they are read in claims.
    """
    parents: dict[int, int] = {}
    at = {log_id: log_id for log_id in log_ids}
    for _ in range(RETRIES_FOLLOWED + 1):
        if not at:
            break
        rows = bulk.read_among(session, _SOURCES, sorted(set(at.values())))
        sources = {row[0]: (row[1], row[2]) for row in rows if row[2] is not None}
        runs = {log_id: sources[run_id] for log_id, run_id in at.items() if run_id in sources}
        parents |= {log_id: source for log_id, (kind, source) in runs.items() if kind == TriggerType.PARENT}
        # Ids of earlier runs are lower, so that the search ends.
        at = {
            log_id: source
            for log_id, (kind, source) in runs.items()
            if kind == TriggerType.RETRY and 0 < source < at[log_id]
        }
    return parents
