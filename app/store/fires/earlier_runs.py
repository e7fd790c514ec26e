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
from app.store.fires import logs

#: trigger types of runs that follow another one
GIVEN_TO = (TriggerType.PARENT, TriggerType.AFTER)
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


class FilledRun(NamedTuple):
    """Run whose parameter was filled in."""

    log_id: int
    template: str
    #: marked text
    marked_text: str | None
    #: what its logical time comes from (``app.domain.runs.logical_times``)
    logical_ms: Millis | None
    fire_time: Millis | None
    trigger_time: Millis | None


class GivenRow(NamedTuple):
    """Run with its parameter and its message."""

    log_id: int
    template: str
    #: marked text; None: the parameter was sent as it is
    marked_text: str | None
    is_success: bool
    message: str


def find_filled(session: Session, log_ids: Collection[int]) -> dict[int, FilledRun]:
    """Return log id -> filled parameter, for those of the runs that have one."""
    rows = bulk.read_among(session, _FILLED, sorted(log_ids)) if log_ids else ()
    return {row[0]: FilledRun(row[0], row[1] or "", *row[2:]) for row in rows}


def find_given(session: Session, log_ids: Collection[int]) -> dict[int, GivenRow]:
    """Return the runs that exist, by log id."""
    rows = bulk.read_among(session, _GIVEN, sorted(log_ids)) if log_ids else ()
    return {
        row[0]: GivenRow(row[0], row[1] or "", row[2], row[3] == HandleCode.SUCCESS, row[4] or "")
        for row in rows
    }


def find_parents(session: Session, log_ids: Collection[int]) -> dict[int, int]:
    """Return log id -> parent of the first run of its chain of retries; missing where that follows none.

    A statement per retry, for at most RETRIES_FOLLOWED of them: they are read in claims.
    """
    origins = logs.find_origins(session, log_ids, most=RETRIES_FOLLOWED)
    return {
        log_id: origin.source_id
        for log_id, origin in origins.items()
        if origin.trigger_type in GIVEN_TO and origin.source_id
    }
