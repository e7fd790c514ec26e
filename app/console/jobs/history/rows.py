"""Tab History of a job: its audit entries and its versions in words, newest first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup, escape
from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.jobs.history.version_rows import VersionRow, version_page
from app.console.jobs.history.version_words import source_text, words
from app.console.ui.audit.entries import Change, EntryRow, entry_rows, object_phrase
from app.console.ui.audit.words import sentence_of
from app.domain.access.permissions import Actor, Right
from app.domain.code.document import ENABLED
from app.domain.jobs.history import Mark, versions_made
from app.models.audit import AuditEntry
from app.models.job import Job
from app.services.code.history import CodeChange, list_code_changes
from app.store.accounts import audit

#: rows of the tab
ROWS_MAX = 25


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One change of the job, in words."""

    at_ms: Millis
    by: str
    #: what it was done through, or came from; empty: the console
    via: str
    sentence: str | Markup
    changes: list[Change]
    #: the version it made; 0: none
    version: int = 0
    is_current: bool = False


def history_rows(session: Session, job: Job, *, actor: Actor) -> list[HistoryRow]:
    """Return the last changes of the job: entries with their versions, other versions, applies."""
    newest = audit.list_of_object(session, "job", job.id, limit=ROWS_MAX)
    entries = _visible(newest, actor)
    versions = version_page(session, job, actor=actor, before=0, limit=ROWS_MAX).rows
    rows = _merge(job, entry_rows(session, entries, actor=actor), versions)
    since_ms = entries[-1].at_ms if len(entries) < len(newest) else 0
    changes = list_code_changes(session, job.id, limit=ROWS_MAX)
    rows += [_of_code(job, change) for change in changes if change.at_ms >= since_ms]
    return sorted(rows, key=lambda row: -row.at_ms)[:ROWS_MAX]


def _merge(job: Job, entries: Sequence[EntryRow], versions: Sequence[VersionRow]) -> list[HistoryRow]:
    made_by = versions_made(
        [Mark(row.entry.at_ms, row.entry.username, row.entry.action) for row in entries],
        [Mark(version.at_ms, version.by) for version in versions],
    )
    indexes = set(made_by.values())
    of_entries = [
        _of_entry(row, versions[made_by[i]] if i in made_by else None) for i, row in enumerate(entries)
    ]
    rest = [version for i, version in enumerate(versions) if i not in indexes]
    return [*of_entries, *(_of_version(job, version) for version in rest)]


def _of_entry(row: EntryRow, version: VersionRow | None) -> HistoryRow:
    change = HistoryRow(row.entry.at_ms, row.by, row.via, row.sentence, row.changes)
    if version is None:
        return change
    via = row.via if row.entry.via else version.source
    return replace(change, via=via, version=version.number, is_current=version.is_current)


def _of_version(job: Job, version: VersionRow) -> HistoryRow:
    """Return a version without an entry of the job: of an apply, of another program, of the time before."""
    sentence = version.text or _job_sentence(job, "job.update", version.attributes)
    return HistoryRow(
        version.at_ms,
        version.by,
        version.source,
        sentence,
        version.changes,
        version.number,
        version.is_current,
    )


def _of_code(job: Job, change: CodeChange) -> HistoryRow:
    """Return what an apply or its undoing changed besides the fields of a version."""
    action, changes = "job.update", change.changes
    if changes.keys() == {ENABLED}:
        action, changes = ("job.start" if changes[ENABLED][1] else "job.stop"), {}
    sentence = _job_sentence(job, action)
    return HistoryRow(
        change.at_ms, change.username or "–", source_text(change.source), sentence, words(changes, {})
    )


def _job_sentence(job: Job, action: str, attributes: frozenset[str] = frozenset()) -> Markup:
    """Return the sentence of an action with the job, as entries have it."""
    noun: Any = object_phrase("job", job.id, {}, {("job", job.id): job.job_desc})
    return escape(sentence_of(action, attributes, has_object=True)) % {"object": noun}


def _visible(newest_first: list[AuditEntry], actor: Actor) -> list[AuditEntry]:
    """Return the entries since the job was moved out of a group that the actor cannot see."""
    if actor.is_admin:
        return newest_first
    for number, entry in enumerate(newest_first, 1):
        if entry.action == "job.update" and not _came_from_visible(entry.changes or "{}", actor):
            return newest_first[:number]
    return newest_first


def _came_from_visible(changes: str, actor: Actor) -> bool:
    """Return whether the job was in a visible group before a change; False if the entry is unreadable."""
    try:
        group_ids = json.loads(changes).get("job_group")
    except ValueError:
        return False
    return not isinstance(group_ids, list) or actor.may(group_ids[0], Right.VIEW)
