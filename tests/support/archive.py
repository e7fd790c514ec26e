"""Archived logs for tests: rows with their chunks in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from app.blobs.folder import Folder
from app.domain.archive.chunks import dump_chunks, folder_of
from app.domain.archive.packing import pack_lines
from app.models.archive import LogArchive
from app.models.job import Job
from app.models.log import JobLog
from app.settings.log_archive import FOLDER
from tests.support.factories import T0, make_log, save


def folder_in(home: Path) -> Folder:
    """Return the archive of an installation."""
    return Folder(home / FOLDER)


def archive(
    store: Folder,
    job: Job,
    *pieces: Sequence[str],
    run: dict[str, Any] | None = None,
    without: int = 0,
    **columns: Any,
) -> JobLog:
    """Commit a run whose log is archived, a chunk of each of ``pieces``; return the run.

    ``without``: number of the piece that was not kept, from 1; 0: none.
    """
    log = make_log(job, **{"handle_code": 200, "handle_time": T0, **(run or {})})
    folder = folder_of(job.id, log.id, log.trigger_time or T0, ZoneInfo("UTC"))
    chunks, first = [], 1
    for number, lines in enumerate(pieces, 1):
        chunk, stored = pack_lines(first, lines)
        if number != without:
            store.put(f"{folder}/{chunk.name}", stored)
            chunks.append(chunk)
        first = chunk.last + 1
    values = {
        "log_id": log.id,
        "job_id": job.id,
        "job_group": job.job_group,
        "folder": folder,
        "state": "complete",
        "ended_ms": T0,
        "last_line": first - 1,
        "size": sum(chunk.size for chunk in chunks),
        "stored": sum(chunk.stored for chunk in chunks),
        "chunks": dump_chunks(chunks) if chunks else None,
    }
    save(LogArchive(**{**values, **columns}))
    return log
