"""Values of variables and secrets for the pipeline: one statement each, for all runs of a claim."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, String, bindparam, null, select, type_coerce, union_all
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.jobs.variables import INSTALLATION, KEPT_MS, may_use_secret
from app.models.variable import Variable, VariableVersion
from app.settings.sealing import CannotUnseal, sealer

#: group and name
Key = tuple[int, str]


def find_values(session: Session, names: Collection[str], group_ids: Collection[int]) -> dict[Key, str]:
    """Return (group, name) -> value of the variables that jobs of these groups use, by one statement.

    A variable of the group goes before one of the installation; a name without either is left out.
    """
    if not names or not group_ids:
        return {}
    rows = session.execute(_VALUES, _query_values(names, group_ids)).all()
    values: dict[Key, str] = {(row.group_id, row.name): row.value for row in rows}
    return _for_groups(values, group_ids, rows)


def find_sealed(session: Session, names: Collection[str], group_ids: Collection[int]) -> dict[Key, str]:
    """Return (group, name) -> sealed text of the secrets that jobs of these groups may use.

    One statement; nothing is opened, see ``open_sealed``. A secret of the group goes before one of the
    installation that names the group; a name without either is left out.
    """
    if not names or not group_ids:
        return {}
    rows = session.execute(_SEALED, _query_values(names, group_ids)).all()
    texts: dict[Key, str] = {(row.group_id, row.name): row.secret for row in rows}
    return _for_groups(texts, group_ids, rows)


def open_sealed(text: str) -> str:
    """Return the value of a sealed text. Raises CannotUnseal for one of another application key."""
    return sealer().unseal(text)


class SecretValues(NamedTuple):
    """Values of the secrets of a name, present and former ones; a tuple that never shows them."""

    name: str
    values: tuple[str, ...]

    def __repr__(self) -> str:
        return f"SecretValues({self.name!r}, {len(self.values)} values)"


def find_masked_by_group(
    session: Session, names_by_group: Mapping[int, Collection[str]], *, now_ms: Millis
) -> dict[int, list[SecretValues]]:
    """Return for each name of a group the values that its secrets, usable there, had in the last 90 days.

    By group; one statement for all. Values that cannot be opened are left out: they were never sent with this
    key.
    """
    names = {name for group_names in names_by_group.values() for name in group_names}
    if not names:
        return {group_id: [] for group_id in names_by_group}
    parameters = _query_values(names, names_by_group) | {"since_ms": now_ms - KEPT_MS}
    plain_values = [
        (row, value)
        for row in session.execute(_MASKED, parameters)
        if (value := opened_or_none(row.secret)) is not None
    ]
    by_group = {}
    for group_id, group_names in names_by_group.items():
        values: dict[str, dict[str, None]] = defaultdict(dict)
        for row, value in plain_values:
            is_usable = may_use_secret(group_id, owner_id=row.group_id, group_list=row.allowed)
            if row.name in group_names and is_usable:
                values[row.name][value] = None
        by_group[group_id] = [SecretValues(name, tuple(texts)) for name, texts in sorted(values.items())]
    return by_group


def opened_or_none(text: str) -> str | None:
    """Return the value of a sealed text; None if it cannot be opened."""
    try:
        return open_sealed(text)
    except CannotUnseal:
        return None


def find_all_sealed(session: Session) -> list[tuple[str, str]]:
    """Return the name and sealed text of each secret and of each former one, for the check of the key."""
    return [
        (row[0], row[1])
        for table in (Variable, VariableVersion)
        for row in session.execute(
            select(table.name, type_coerce(table.secret, String)).where(table.secret.is_not(None))
        )
    ]


def _for_groups(texts: dict[Key, str], group_ids: Iterable[int], rows: Collection[Any]) -> dict[Key, str]:
    """Return (group, name) -> text of the group itself, else the one of the installation that it may use."""
    of_installation = [row for row in rows if row.group_id == INSTALLATION]
    group_texts = {key: text for key, text in texts.items() if key[0] != INSTALLATION}
    for group_id in set(group_ids):
        for row in of_installation:
            is_usable = row.allowed is None or may_use_secret(
                group_id, owner_id=INSTALLATION, group_list=row.allowed
            )
            if is_usable:
                group_texts.setdefault((group_id, row.name), texts[INSTALLATION, row.name])
    return group_texts


def _query_values(names: Collection[str], group_ids: Collection[int]) -> dict[str, Any]:
    return {"names": sorted(set(names)), "group_ids": sorted({INSTALLATION, *group_ids})}


_NAMES: BindParameter[Any] = bindparam("names", expanding=True)
_GROUP_IDS: BindParameter[Any] = bindparam("group_ids", expanding=True)


def _is_wanted(table: type[Variable] | type[VariableVersion]) -> tuple[ColumnElement[bool], ...]:
    return table.group_id.in_(_GROUP_IDS), table.name.in_(_NAMES)


def _sealed_text(table: type[Variable] | type[VariableVersion]) -> ColumnElement[Any]:
    return type_coerce(table.secret, String).label("secret")


_VALUES = select(Variable.group_id, Variable.name, Variable.value, null().label("allowed")).where(
    *_is_wanted(Variable), Variable.value.is_not(None)
)
_SEALED = select(Variable.group_id, Variable.name, _sealed_text(Variable), Variable.allowed).where(
    *_is_wanted(Variable), Variable.secret.is_not(None)
)
_MASKED = union_all(
    _SEALED,
    select(
        VariableVersion.group_id, VariableVersion.name, _sealed_text(VariableVersion), VariableVersion.allowed
    ).where(
        *_is_wanted(VariableVersion),
        VariableVersion.secret.is_not(None),
        VariableVersion.replaced_ms >= bindparam("since_ms"),
    ),
)
