"""Rights in the change history, in words."""

from collections.abc import Collection, Mapping
from typing import Any

from app.console.ui.filters import listed
from app.console.ui.labels import RIGHTS
from app.console.web.language import _
from app.domain.access.api_tokens import ADMIN
from app.services.auditing.names import Names, group_ids_of, group_rights_of

FIELD = "rights"


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
    return listed(words.get(right, right) for right in rights.split(",") if right) or _("none")
