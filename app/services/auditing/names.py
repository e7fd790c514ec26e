"""Names of the objects in audit entries: a constant number of statements for a page of entries."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.models.audit import AuditEntry
from app.services.auditing.audit import changes_of
from app.store.accounts import audit as store
from app.store.base.paging import to_id
from app.store.executors import groups
from app.store.pickers import choices

#: kind and id of an object -> its name; empty for objects that have only an id
Names = Mapping[tuple[str, int], str]
#: rights of a user on a group, in the text of a dictionary
_GROUP_RIGHTS = re.compile(r"(\d{1,10}): '([a-z,]*)'")


def find_names(session: Session, entries: Sequence[AuditEntry], *, actor: Actor) -> Names:
    """Return the names of all objects that the entries mention, exist, and that the actor may see."""
    ids: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        for kind, object_id in find_mentions(entry):
            ids[kind].add(object_id)
    names: dict[tuple[str, int], str] = {}
    visible = actor.group_ids(Right.VIEW)
    if ids["job"]:
        names |= _of("job", choices.find_job_texts(session, ids["job"], group_ids=visible))
    if ids["group"]:
        titles = groups.find_groups(session, ids["group"])
        names |= _of("group", {key: row.title for key, row in titles.items() if actor.may(key, Right.VIEW)})
    if ids["log"]:
        names |= _of("log", dict.fromkeys(store.find_runs(session, ids["log"], group_ids=visible), ""))
    if actor.is_admin:
        for kind in ("user", "channel", "variable", "limit", "calendar", "blackout", "task"):
            if ids[kind]:
                names |= _of(kind, store.find_names(session, kind, ids[kind]))
    return names


def find_mentions(entry: AuditEntry) -> Iterable[tuple[str, int]]:
    """Yield kind and id of the object of an entry, and of those its fields refer to."""
    if entry.object_id:
        yield entry.object_type, entry.object_id
    changes = changes_of(entry)
    for name, kind in (("job_group", "group"), ("job_id", "job")):
        value = changes.get(name)
        for object_id in value if isinstance(value, list) else [value]:
            if isinstance(object_id, int) and object_id > 0:
                yield kind, object_id
    for object_id in group_ids_of(changes.get("permission")):
        yield "group", object_id
    rights = changes.get("rights")
    for text in rights if isinstance(rights, list) else [rights]:
        for object_id in group_rights_of(text):
            yield "group", object_id
    for ids in changes.get("groups") or []:
        for group_id in ids if isinstance(ids, list) else []:
            yield "group", group_id


def group_ids_of(permission: Any) -> list[int]:
    """Return the ids in a list of groups such as ``1,2``, or in an old and a new one."""
    texts = permission if isinstance(permission, list) else [permission]
    return [
        to_id(piece) for text in texts if isinstance(text, str) for piece in text.split(",") if to_id(piece)
    ]


def group_rights_of(rights: Any) -> dict[int, str]:
    """Return the rights by group in a text such as ``{1: 'view,operate'}``."""
    matches = _GROUP_RIGHTS.findall(rights) if isinstance(rights, str) else []
    return {int(group_id): words for group_id, words in matches}


def _of(kind: str, names: Mapping[int, str]) -> dict[tuple[str, int], str]:
    return {(kind, object_id): name for object_id, name in names.items()}
