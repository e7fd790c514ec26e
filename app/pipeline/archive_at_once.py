"""Logs that are fetched at once: those of runs whose instance is about to be gone."""

import logging
from collections.abc import Collection
from datetime import tzinfo
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.archive.chunks import folder_of
from app.domain.archive.kinds import ArchiveMode, ArchiveState
from app.domain.archive.pulls import AT_ONCE
from app.models.base import zone_name
from app.store.archive import rows
from app.store.archive.at_instance import find_at_instances
from app.store.archive.modes import mode_of
from app.store.archive.rows import AcceptedRun

logger = logging.getLogger(__name__)


def fetch_at_once(session: Session, addresses: Collection[str]) -> int:
    """Have the logs of the runs in progress at addresses fetched at once; return how many.

    Without such a run it is one statement. A run that was accepted just now gets a row.
    """
    runs = find_at_instances(session, addresses)
    zone = ZoneInfo(zone_name())
    known_ids = [run.log_id for run, is_known in runs if is_known]
    new = [
        open_row(run, mode, zone, next_ms=AT_ONCE)
        for run, is_known in runs
        if not is_known and (mode := mode_of(run.mode)) is not ArchiveMode.OFF
    ]
    if new:
        rows.insert_open(session, new)
    if known_ids:
        rows.hasten(session, known_ids, next_ms=AT_ONCE)
    count = len(known_ids) + len(new)
    if count:
        logger.info("logs fetched at once addresses=%s count=%s", ",".join(sorted(addresses)), count)
    return count


def open_row(run: AcceptedRun, mode: ArchiveMode, zone: tzinfo, *, next_ms: Millis) -> bulk.Row:
    """Return the row of the archived log of a run in progress, which is fetched from a time on."""
    return {
        "log_id": run.log_id,
        "job_id": run.job_id,
        "job_group": run.job_group,
        "folder": folder_of(run.job_id, run.log_id, run.logical_ms, zone),
        "state": ArchiveState.OPEN.value,
        "is_provisional": int(mode is ArchiveMode.FAILED),
        "next_ms": next_ms,
    }
