"""Archived log of a run, as its page names it."""

from jinja2.filters import do_filesizeformat
from sqlalchemy.orm import Session

from app.console.web.current import executor_caller, translate
from app.console.web.language import _, ngettext
from app.domain.archive.kinds import ArchiveState
from app.services.run_logs.archived_run import ArchivedRun


def archive_fact(session: Session, log_id: int) -> list[str]:
    """Return what the archive has of a log: its state and size, then what is missing; empty: nothing."""
    run = ArchivedRun.find(session, log_id, executor_caller().archive)
    if run is None:
        return []
    state = {
        ArchiveState.OPEN: _("being fetched"),
        ArchiveState.ENDING: _("being fetched"),
        ArchiveState.COMPLETE: _("complete"),
        ArchiveState.PARTIAL: _("incomplete"),
        ArchiveState.PURGED: _("deleted"),
    }.get(ArchiveState(run.row.state), run.row.state)
    count = ngettext("%(num)d line", "%(num)d lines", run.last_line)
    size = do_filesizeformat(run.row.size)
    fact = f"{state} · {count} · {size}" if run.chunks else state
    return [fact, *(translate(part.text) for part in (run.gap, run.tail) if part is not None)]
