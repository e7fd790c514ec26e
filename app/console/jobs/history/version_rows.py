"""Versions of a job as rows of its page."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.jobs.history.version_words import group_ids, group_titles, source_text, words
from app.console.ui.audit.entries import Change
from app.console.web.language import _
from app.domain.access.permissions import Actor
from app.domain.jobs.members import MEMBER_OF
from app.models.job import Job
from app.services.jobs import version_history
from app.services.jobs.version_history import KeptVersion

#: versions on a page
LENGTH = 15


@dataclass(frozen=True, slots=True)
class VersionRow:
    """Version in words; ``text`` is what its changes do not say."""

    number: int
    at_ms: Millis
    by: str
    source: str
    text: str
    changes: list[Change]
    #: attributes that it changes
    attributes: frozenset[str]
    is_current: bool


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Some versions, newest first."""

    rows: list[VersionRow]
    #: number before which older ones begin; 0: there are none
    older: int
    #: whether these are older ones
    is_older: bool
    #: another program has changed the job since its newest version
    is_changed_since: bool


def version_page(
    session: Session, job: Job, *, actor: Actor, before: int, limit: int = LENGTH
) -> VersionPage:
    """Return the newest versions of a job, below number ``before`` unless that is 0."""
    history, has_older = version_history.list_versions(
        session, job.id, actor=actor, limit=limit, before=before or None
    )
    is_first = not before
    present = version_history.present_fields(session, job) if is_first and history else {}
    is_current = bool(present) and not version_history.difference(present, history[0].fields)
    ids = {group_id for version in history for group_id in group_ids(version.changes or {})}
    titles = group_titles(session, ids, actor=actor)
    rows = [
        _row(version, words(version.changes or {}, titles), is_current and version is history[0])
        for version in history
    ]
    older = history[-1].number if has_older else 0
    return VersionPage(rows, older, not is_first, bool(present) and not is_current)


def _row(version: KeptVersion, changes: list[Change], is_current: bool) -> VersionRow:
    return VersionRow(
        number=version.number,
        at_ms=version.at_ms,
        by=version.username or "–",
        source="" if version.is_outside else source_text(version.source),
        text=_text(version),
        changes=changes,
        attributes=frozenset(MEMBER_OF[name].attribute for name in version.changes or ()),
        is_current=is_current,
    )


def _text(version: KeptVersion) -> str:
    if version.is_outside:
        return _("Changed by another program on this database")
    if version.changes is not None:
        return ""
    if version.number > 1:
        return _("Earlier versions are not shown")
    return _("The job as it was added") if version.username else _("The job before its first kept change")
