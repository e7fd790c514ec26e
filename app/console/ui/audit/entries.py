"""Entries of the change history in words with links, for its own page and for the page of a job."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import url_for
from markupsafe import Markup, escape
from sqlalchemy.orm import Session

from app.console.ui.audit.words import MEMBER_WORDS, OBJECT_TEXTS, field_label, sentence_of, value_text
from app.console.ui.filters import comma_list
from app.console.ui.labels import RIGHTS
from app.console.web.language import _
from app.domain.access.api_tokens import ADMIN
from app.domain.access.permissions import Actor
from app.domain.code.change_sources import TOKEN, name_in
from app.models.audit import AuditEntry
from app.services.auditing.audit import BLANKED, changes_of
from app.services.auditing.names import Names, find_names, group_ids_of, group_rights_of

FIELD = "rights"
#: kind of object -> endpoint of its page, and the argument that takes its id
_PAGES = {
    "job": ("jobs.show", "job_id"),
    "group": ("group_page.show", "group_id"),
    "log": ("logs.show", "log_id"),
    "task": ("tasks.show", "task_id"),
    "channel": ("alarm_channels.edit", "channel_id"),
    "variable": ("variables.show", "variable_id"),
    "limit": ("limits.show", "limit_id"),
    "calendar": ("calendars.show", "calendar_id"),
}
#: fields that the sentence has already
_IN_SENTENCE = {
    "job.switched_off": {"failures"},
    "log.kill": {"job_id"},
    "log.clear": {"job_id"},
    "run.release": {"job_id"},
}
#: kind of object -> the field in which entries keep its name
_NAME_FIELDS = {
    "job": "job_desc",
    "user": "username",
    "group": "app_name",
    "channel": "name",
    "variable": "name",
    "limit": "name",
    "calendar": "name",
    "token": "name",
}
#: fields whose values are lists, not an old and a new value
_LISTS = frozenset({"addresses", "adopt", "create", "delete", "targets", "update"})


@dataclass(frozen=True, slots=True)
class Change:
    """Field of an entry; ``old`` is None where only one value is known."""

    label: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    """Entry of the change history; ``sentence`` begins with a verb and links the object."""

    entry: AuditEntry
    sentence: Markup
    changes: list[Change]

    @property
    def by(self) -> str:
        """Who did it."""
        return self.entry.username or (
            _("scheduler") if self.entry.action in ("job.ended", "job.switched_off") else "–"
        )

    @property
    def via(self) -> str:
        """What it was done through; empty: the console."""
        name = name_in(self.entry.via, TOKEN)
        return _("API token %(name)s", name=name) if name is not None else self.entry.via


def entry_rows(session: Session, entries: Sequence[AuditEntry], *, actor: Actor) -> list[EntryRow]:
    """Return the entries in words; objects that the actor may not see have no name and no link."""
    names = find_names(session, entries, actor=actor)
    return [_row(entry, names) for entry in entries]


def _row(entry: AuditEntry, names: Names) -> EntryRow:
    fields = with_rights_in_words(changes_of(entry), names)
    noun = object_phrase(entry.object_type, entry.object_id, fields, names)
    sentence = sentence_of(entry.action, frozenset(fields), has_object=bool(noun))
    text = escape(sentence)
    hides = _IN_SENTENCE.get(entry.action, set())
    own_name = _NAME_FIELDS.get(entry.object_type, "")
    if not isinstance(fields.get(own_name), list) or entry.action.endswith(".add"):
        hides = hides | {own_name}
    if not fields.get("withdrawn"):
        hides = hides | {"withdrawn"}
    changes = [
        _change(entry.action, name, value, names) for name, value in fields.items() if name not in hides
    ]
    return EntryRow(entry, text % {"object": noun}, [change for change in changes if change is not None])


def object_phrase(kind: str, object_id: int, fields: Mapping[str, Any], names: Names) -> Markup:
    """Return an object with its name, linked if it exists; empty without an object."""
    if not kind or (not object_id and kind != "node"):
        return Markup()
    exists = (kind, object_id) in names
    name = names.get((kind, object_id)) or _former_name(kind, fields)
    values = {"id": object_id, "name": name or ("" if kind == "job" else object_id or "")}
    text = (str(OBJECT_TEXTS[kind]) % values if kind in OBJECT_TEXTS else f"{kind} {object_id}").strip()
    phrase = escape(text)
    if exists:
        phrase = Markup('<a href="{}">{}</a>').format(_href(kind, object_id, name), text)
    job_id = fields.get("job_id")
    if kind == "log" and isinstance(job_id, int) and job_id:
        job = object_phrase("job", job_id, {}, names)
        return Markup(escape(_("%(run)s of %(job)s"))) % {"run": phrase, "job": job}  # nosec B704
    return phrase


def _former_name(kind: str, fields: Mapping[str, Any]) -> str:
    """Return the name that an entry keeps of an object that has been deleted since."""
    value = fields.get(_NAME_FIELDS.get(kind, ""))
    return str(value[-1] if isinstance(value, list) and value else value or "")


def _href(kind: str, object_id: int, name: str) -> str:
    if kind == "user":
        return url_for("users.index", username=name)
    if kind == "blackout":
        return url_for("blackouts.index")
    endpoint, argument = _PAGES[kind]
    values: dict[str, Any] = {argument: object_id}
    return url_for(endpoint, **values)


def _change(action: str, name: str, value: Any, names: Names) -> Change | None:
    """Return a field in words; None for one without information."""
    label = field_label(name)
    if action == "alarm.failed" and isinstance(value, str):
        return Change(label, None, _(value))
    if name not in _LISTS and isinstance(value, list) and len(value) == 2:
        old, new = value
        if old in (None, "", []) and new in (None, "", []):
            return None
        if name in MEMBER_WORDS and value_text(name, old) == value_text(name, new):
            return None  # both none, stored in two ways
        if BLANKED in value:
            return Change(label, None, _("changed") if new == old else _("set") if new else _("removed"))
        shown_old = None if action.endswith(".add") else _value(name, old, names)
        return Change(label, shown_old, _value(name, new, names))
    if value in (None, "", [], {}) or (action.endswith(".add") and value is False):
        return None
    return Change(label, None, _value(name, value, names))


def _value(name: str, value: Any, names: Names) -> str:
    if name == "job_group" and isinstance(value, int):
        return names.get(("group", value)) or str(value or "–")
    if name == "job_id" and isinstance(value, int):
        return object_phrase("job", value, {}, names) or "–"
    if name == "backfill" and isinstance(value, int):
        return Markup('<a href="{}">{}</a>').format(url_for("backfills.show", backfill_id=value), value)
    if name in {"permission", "groups"} and value:
        ids = value if isinstance(value, list) else group_ids_of(value)
        return comma_list(names.get(("group", group_id)) or str(group_id) for group_id in ids)
    return value_text(name, value)


def with_rights_in_words(fields: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Return the fields of an entry with those of rights in words.

    A token has ``view,operate``, a user ``{1: 'view,operate'}`` with the groups of fewer than all rights.
    """
    rights, groups = fields.get(FIELD), fields.get("permission")
    if isinstance(rights, list):
        # The entry lacks groups whose rights have not changed.
        all_ids = {group_id for text in rights for group_id in group_rights_of(text)}
        sides = groups if isinstance(groups, list) and len(groups) == len(rights) else [None] * len(rights)
        words: Any = [
            _words(text, all_ids if side is None else group_ids_of(side), names)
            for text, side in zip(rights, sides, strict=True)
        ]
    else:
        words = _words(rights, group_ids_of(groups), names)
    return {**fields, FIELD: words} if FIELD in fields else dict(fields)


def _words(rights: Any, groups: Collection[int], names: Names) -> Any:
    if not isinstance(rights, str):
        return rights
    if not rights.startswith("{"):
        return _list(rights)
    rows = group_rights_of(rights)
    parts = []
    for group_id in sorted(rows.keys() | set(groups)):
        title = names.get(("group", group_id)) or str(group_id)
        parts.append(f"{title}{_(': ')}{_list(rows[group_id]) if group_id in rows else _('All')}")
    return " · ".join(parts)


def _list(rights: str) -> str:
    """Return ``View, Operate`` for ``view,operate``."""
    if rights == ADMIN:
        return _("Administration")
    words = {right.value: str(label) for right, label in RIGHTS.items()}
    return comma_list(words.get(right, right) for right in rights.split(",") if right) or _("none")
