"""Archived logs of runs that end: those that are kept are fetched from now on. Part of the completion."""

from collections.abc import Iterable, Mapping
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.archive.chunks import folder_of
from app.domain.archive.kinds import ArchiveMode, ArchiveState
from app.domain.runs.logical_times import logical_of
from app.models.base import zone_name
from app.store.archive import rows
from app.store.archive.modes import mode_of
from app.store.fires.logs import RunState
from app.store.jobs.of_results import JobOfResult

_FAILED = ArchiveMode.FAILED


def archive_ends(
    session: Session,
    ends: Iterable[tuple[RunState, bool]],
    job_by_id: Mapping[int, JobOfResult],
    *,
    now_ms: Millis,
) -> None:
    """Note the ends of runs whose logs are kept: one statement, or none.

    ``ends``: the runs that an executor has had, and whether they have failed.
    """
    zone = ZoneInfo(zone_name())
    mode_by_text = {text: mode_of(text) for text in {job.log_archive for job in job_by_id.values()}}
    notes = [
        {
            "log_id": run.id,
            "job_id": run.job_id,
            "job_group": run.job_group,
            "folder": folder_of(run.job_id, run.id, logical_of(run) or now_ms, zone),
            "state": ArchiveState.ENDING.value,
            "is_provisional": 0,
            "next_ms": now_ms,
            "ended_ms": now_ms,
        }
        for run, is_failed in ends
        if (job := job_by_id.get(run.job_id)) is not None
        and ((mode := mode_by_text[job.log_archive]) is ArchiveMode.ALL or (is_failed and mode is _FAILED))
        and run.executor_address
    ]
    rows.note_ends(session, notes)
