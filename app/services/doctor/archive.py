"""Check of the log archive: what is archived, whether the store takes it, and what waits. Writes nothing."""

from sqlalchemy.orm import Session

from app.blobs.folder import Folder
from app.blobs.stores import store_of
from app.clock import MINUTE_MS, now_ms
from app.domain.archive.kinds import ArchiveMode
from app.domain.enums import NodeKind
from app.services.archive.keeping import OWNER, owner_of
from app.services.doctor.findings import Findings, check, fine, problem, warning
from app.settings.config import Config
from app.store.archive import health
from app.store.archive.modes import stored_mode
from app.store.fires.log_ids import find_identity
from app.store.nodes import nodes

GIB = 1024**3
#: a log that is due and not fetched for so long is a finding
LATE_MS = 10 * MINUTE_MS
#: room of the disk below which logs will soon not be taken any more
FREE_MIN = GIB
SETTING = "XXL_JOB_LOG_ARCHIVE"


@check("log archive")
def check_archive(session: Session, config: Config) -> Findings:
    """Name the mode, a store that takes nothing, logs that wait, and folders that nodes do not share."""
    mode = config.archive.mode or stored_mode(session)
    if mode == ArchiveMode.OFF and not health.has_mode(session):
        yield fine(f"off: logs go with their executors; {SETTING}=failed keeps those of failed runs")
        return
    state = health.find_health(session, now_ms=now_ms())
    source = f"{SETTING}={mode}" + ("" if config.archive.mode else ", as the database was made")
    most = f" of {config.archive.total_gb}" if config.archive.total_gb else ""
    yield fine(f"{source}; {state.stored / GIB:.1f}{most} GiB are stored")
    yield from _store(session, config)
    if state.not_taken:
        yield problem(
            f"the store did not take {state.not_taken} logs when it was asked last: it is full or away",
            "free some space or mend the store; they are fetched again by themselves while their executors"
            " have them",
        )
    late_ms = now_ms() - state.oldest_due_ms if state.oldest_due_ms else 0
    if late_ms > LATE_MS and not state.not_taken:
        yield warning(
            f"{state.waiting} logs wait to be fetched, the oldest for {late_ms // MINUTE_MS} minutes",
            "see whether the workers run, and the lines of the archiver in their log",
        )
    count = nodes.count_live(session, NodeKind.WORKERS, now_ms=now_ms())
    if count > 1 and not config.archive.url:
        yield warning(
            f"{count} nodes archive logs, each in the folder of its home",
            "set XXL_JOB_LOG_ARCHIVE_URL to a folder that all share, or to a bucket, if they are on several"
            " hosts",
        )


def _store(session: Session, config: Config) -> Findings:
    store = store_of(config)
    try:
        owner = owner_of(store)
        free = store.free_bytes()
        if not isinstance(store, Folder):
            next(store.list("doctor"), None)
    except OSError as exc:
        advice = "correct XXL_JOB_LOG_ARCHIVE_URL, or start the server"
        yield problem(f"the store does not answer: {exc}", advice)
        return
    if owner not in ("", find_identity(session)):
        yield problem(
            "the folder or bucket is the log archive of another database, so that no old files are deleted",
            f"set another XXL_JOB_LOG_ARCHIVE_URL; if no other installation uses it, delete its file {OWNER}",
        )
    if free is not None and free < FREE_MIN:
        yield warning(
            f"{free / GIB:.1f} GiB are free for archived logs",
            "free some space, or lower XXL_JOB_LOG_ARCHIVE_TOTAL_GB",
        )
