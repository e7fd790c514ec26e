"""Versions of a job and its fields owned by code in words: labels and values as the forms have them."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.console.ui.audit.entries import Change
from app.console.ui.audit.words import MEMBER_WORDS, field_label, value_text
from app.console.ui.filters import comma_list
from app.console.web.language import _, lazy_gettext, ngettext
from app.domain.access.permissions import Actor, Right
from app.domain.code import change_sources as sources
from app.domain.jobs.members import MEMBER_OF
from app.services.jobs.version_history import Changes
from app.store.executors import groups

#: kind of source -> the source in words
_SOURCES = {
    sources.APPLY: lazy_gettext("apply %(name)s"),
    sources.IMPORT: lazy_gettext("import %(name)s"),
    sources.TOKEN: lazy_gettext("token %(name)s"),
    sources.UNDO: lazy_gettext("undo of apply %(name)s"),
}
#: label of what code owns of a job besides its members
_FURTHER = {
    "enabled": lazy_gettext("Switched on"),
    "alarm_channels": lazy_gettext("Alarm channels"),
    "code": lazy_gettext("Source"),
}
_GROUP = "group_id"


def source_text(source: str) -> str:
    """Return a source in words: ``token ci``; one of an unknown kind as it is, empty for the console."""
    restored_from = sources.name_in(source, sources.RESTORE)
    if restored_from is not None:
        number, _comma, further = restored_from.partition(", ")
        head = _("restored version %(number)s", number=number)
        return comma_list(filter(None, (head, source_text(further))))
    for kind, text in _SOURCES.items():
        name = sources.name_in(source, kind)
        if name is not None:
            return str(text) % {"name": name}
    return _("import") if source == sources.IMPORT else source


def group_titles(session: Session, fields: Iterable[Any], *, actor: Actor) -> dict[int, str]:
    """Return group id -> title, of those of the ids that the actor may see."""
    ids = {field for field in fields if isinstance(field, int)}
    rows = groups.find_groups(session, ids) if ids else {}
    return {group_id: group.title for group_id, group in rows.items() if actor.may(group_id, Right.VIEW)}


def group_ids(changes: Changes) -> Iterable[Any]:
    """Return the ids of groups in changes."""
    return changes.get(_GROUP, ())


def words(changes: Changes, titles: Mapping[int, str]) -> list[Change]:
    """Return changes of fields in words."""
    return [
        Change(label(name), value(name, old, titles), value(name, new, titles))
        for name, (old, new) in changes.items()
    ]


def drift_words(session: Session, drift: Changes, *, actor: Actor) -> list[Change]:
    """Return the drift of a managed job in words: ``old`` is in the code, ``new`` is what the job has."""
    return words(drift, group_titles(session, group_ids(drift), actor=actor))


def label(name: str) -> str:
    """Return the label of a member, as the forms have it."""
    member = MEMBER_OF.get(name)
    return field_label(member.attribute) if member is not None else str(_FURTHER.get(name, name))


def stored_value(text: str, name: str) -> str:
    """Return the value of a member in a change of a file, which is text; numbers have their unit."""
    member = MEMBER_OF.get(name)
    if member is not None and member.attribute in MEMBER_WORDS:
        return value_text(member.attribute, text or "null")
    return value_text(member.attribute, int(text)) if member is not None and text.isdecimal() else text


def value(name: str, raw: Any, titles: Mapping[int, str]) -> str:
    """Return the JSON value of a member as the pages show it; an instant is markup."""
    if name == _GROUP:
        return titles.get(raw) or str(raw or "–")
    if name == "code" and isinstance(raw, dict):
        lines, sha256 = int(raw.get("lines") or 0), str(raw.get("sha256"))
        return ngettext(
            "%(num)d line, SHA-256 %(hash)s", "%(num)d lines, SHA-256 %(hash)s", lines, hash=sha256[:8]
        )
    member = MEMBER_OF.get(name)
    if member is None or isinstance(raw, list):
        return value_text(name, raw)
    return value_text(member.attribute, member.write(raw))
