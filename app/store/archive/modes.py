"""Archive modes: of which runs the logs are kept, by job, group and installation."""

from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database import single_statement
from app.domain.archive.kinds import ArchiveMode
from app.models.archive import Setting
from app.models.group import Group
from app.models.job import Job
from app.settings.log_archive import present_mode

#: fact about the installation: its mode if none is set
DEFAULT: Final = "log_archive"
#: mode of a job, else of its group; empty: as the installation says
MODE = func.coalesce(
    func.nullif(Job.log_archive, ""),
    select(func.nullif(Group.log_archive, "")).where(Group.id == Job.job_group).scalar_subquery(),
    "",
)
_ON = (ArchiveMode.FAILED, ArchiveMode.ALL)
_OF_ANY = [select(model.id).where(model.log_archive.in_(_ON)).limit(1) for model in (Group, Job)]
_BY_TEXT = {mode.value: mode for mode in ArchiveMode}
_DEFAULT = select(Setting.value).where(Setting.name == DEFAULT)


def installation_mode() -> ArchiveMode:
    """Return the mode of jobs and groups that have none; may open its own transaction.

    It is read once a process: nothing but an upgrade changes what the database says.
    """
    if mode := present_mode():
        return ArchiveMode(mode)
    if _ModeCache.mode is None:
        rows = single_statement.read(_DEFAULT, {})
        is_mode = bool(rows) and rows[0][0] in list(ArchiveMode)
        _ModeCache.mode = ArchiveMode(rows[0][0]) if is_mode else ArchiveMode.OFF
    return _ModeCache.mode


def is_any_archived() -> bool:
    """Return whether the log of any run is archived; opens its own transactions."""
    if installation_mode() is not ArchiveMode.OFF:
        return True
    return any(single_statement.read(query, {}) for query in _OF_ANY)


def stored_mode(session: Session) -> ArchiveMode:
    """Return the mode that the database says: what it is if none is set."""
    text = session.scalar(_DEFAULT)
    return ArchiveMode(text) if text in list(ArchiveMode) else ArchiveMode.OFF


class _ModeCache:
    """What the database says; None: it was not read yet."""

    mode: ArchiveMode | None = None


def forget() -> None:
    """Have it read again."""
    _ModeCache.mode = None


def mode_of(text: str) -> ArchiveMode:
    """Return the mode of a job as ``MODE`` has read it; another program may have stored anything."""
    return _BY_TEXT.get(text) or installation_mode()
