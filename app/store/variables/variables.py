"""Statements on `xxl_job_variable` and `xxl_job_variable_version`: lists, changes, former values.

No statement of this module reads the value of a secret; those of ``app.store.variables.values`` do.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, insert, literal, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.domain.jobs.variables import INSTALLATION, allowed_ids, allowed_text, may_use_secret
from app.models.job import Job
from app.models.variable import Variable, VariableVersion
from app.store.base.paging import Page, contains, fetch_page
from app.store.pickers.overview import GroupIds, in_groups

#: columns that a former value takes over
_KEPT = ("name", "group_id", "version", "value", "secret", "allowed")


@dataclass(frozen=True, slots=True)
class VariableFilter:
    """Filters of the list."""

    #: part of a name
    text: str = ""
    #: the whole name
    name: str = ""
    #: INSTALLATION, or a group; None: any
    group_id: int | None = None
    is_secret: bool | None = None


def list_page(
    session: Session, criteria: VariableFilter, group_ids: GroupIds, *, start: int, length: int
) -> Page[Variable]:
    """Return a page of those of these groups (None: of all) and of the installation, by name."""
    query = _filter(session, criteria, group_ids)
    return fetch_page(
        session, query.order_by(Variable.name, Variable.group_id, Variable.id), start=start, length=length
    )


def list_after(
    session: Session, criteria: VariableFilter, group_ids: GroupIds, *, after_id: int, limit: int
) -> list[Variable]:
    """Return those with an id above ``after_id`` in its order."""
    query = _filter(session, criteria, group_ids).where(Variable.id > after_id)
    return list(session.scalars(query.order_by(Variable.id).limit(limit)))


def list_usable_names(session: Session, group_id: int, *, limit: int) -> list[tuple[str, bool]]:
    """Return names of a group and of the installation that its jobs may use, and whether each is a secret."""
    query = select(Variable.name, Variable.group_id, Variable.allowed, _IS_SECRET.label("is_secret"))
    query = query.where(Variable.group_id.in_([INSTALLATION, group_id])).order_by(Variable.name)
    names = {
        (row.name, bool(row.is_secret)): None
        for row in session.execute(query)
        if not row.is_secret or may_use_secret(group_id, owner_id=row.group_id, group_list=row.allowed)
    }
    # Not limited by the database: secrets of the installation for other groups would count.
    return list(names)[:limit]


def find_variable(session: Session, variable_id: int) -> Variable | None:
    """Return a variable or secret, without the secret's value; None: there is none."""
    return session.scalar(select(Variable).where(Variable.id == variable_id))


def lock_variable(session: Session, variable_id: int) -> Variable | None:
    """Lock and return a variable or secret."""
    query = select(Variable).where(Variable.id == variable_id).with_for_update()
    return session.scalar(query.execution_options(populate_existing=True))


def count_of_group(session: Session, group_id: int) -> int:
    """Return how many variables and secrets a group or the installation has."""
    query = select(func.count()).select_from(Variable).where(Variable.group_id == group_id)
    return session.scalar(query) or 0


def last_version(session: Session, group_id: int, name: str) -> int:
    """Return the highest version of former values of a name; 0 without any."""
    query = select(func.max(VariableVersion.version)).where(*_is_of(group_id, name))
    return session.scalar(query) or 0


def keep_version(session: Session, variable_id: int, *, username: str, now_ms: Millis) -> None:
    """Copy a variable or secret, whose value is not read, to the former values."""
    values: list[Any] = [getattr(Variable, name) for name in _KEPT]
    query = select(*values, literal(now_ms), literal(username)).where(Variable.id == variable_id)
    session.execute(insert(VariableVersion).from_select([*_KEPT, "replaced_ms", "username"], query))


def delete_older(session: Session, group_id: int, name: str, *, values: int, secrets: int) -> None:
    """Delete former values of a name but so many of the newest, of variables and of secrets."""
    for column, keep in ((VariableVersion.value, values), (VariableVersion.secret, secrets)):
        query = select(VariableVersion.id).where(*_is_of(group_id, name), column.is_not(None))
        ids = list(session.scalars(query.order_by(VariableVersion.version.desc())))[keep:]
        if ids:
            session.execute(delete(VariableVersion).where(VariableVersion.id.in_(ids)))


def list_versions(session: Session, group_id: int, name: str, *, limit: int) -> list[VariableVersion]:
    """Return the former values of a name, the newest first, without those of secrets."""
    query = select(VariableVersion).where(*_is_of(group_id, name))
    return list(
        session.scalars(
            query.order_by(VariableVersion.version.desc(), VariableVersion.id.desc()).limit(limit)
        )
    )


def delete_variable(session: Session, variable_id: int) -> None:
    """Delete a variable or secret; its former values stay."""
    session.execute(delete(Variable).where(Variable.id == variable_id))


def list_ids_of_group(session: Session, group_id: int) -> list[int]:
    """Return the ids of the variables and secrets of a group, in order."""
    query = select(Variable.id).where(Variable.group_id == group_id)
    return list(session.scalars(query.order_by(Variable.id)))


def forget_group(session: Session, group_id: int) -> None:
    """Remove a deleted group from the secrets of the installation."""
    query = select(Variable.id, Variable.allowed).where(Variable.group_id == INSTALLATION, _IS_SECRET)
    for variable_id, group_list in session.execute(query).all():
        ids = allowed_ids(group_list)
        if group_id in ids:
            change = update(Variable).where(Variable.id == variable_id)
            session.execute(change.values(allowed=allowed_text(ids - {group_id})))


def delete_former(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete former values of secrets and of what was deleted, replaced before; return how many."""
    present = select(Variable.id).where(
        Variable.group_id == VariableVersion.group_id, Variable.name == VariableVersion.name
    )
    is_old = and_(
        VariableVersion.replaced_ms < before_ms,
        or_(VariableVersion.value.is_(None), ~present.exists()),
    )
    query = select(VariableVersion.id).where(is_old).order_by(VariableVersion.replaced_ms).limit(limit)
    ids = list(session.scalars(query))
    if not ids:
        return 0
    return affected(session, delete(VariableVersion).where(VariableVersion.id.in_(ids)))


def list_jobs_with(
    session: Session, text: str, group_ids: GroupIds, *, without: Collection[int] = (), limit: int
) -> list[tuple[int, str, int]]:
    """Return id, name and group of the first jobs of these groups whose filled parameter holds a text.

    ``without``: groups that are left out, because they have a variable of the name themselves.
    """
    query = select(Job.id, Job.job_desc, Job.job_group, Job.executor_param).where(
        Job.fill_parameter == 1, contains(Job.executor_param, text), *in_groups(Job.job_group, group_ids)
    )
    if without:
        query = query.where(Job.job_group.not_in(sorted(without)))
    # Names are compared without case by the database, and exactly here.
    rows = session.execute(query.order_by(Job.id).limit(limit)).all()
    return [(job_id, name, group_id) for job_id, name, group_id, parameter in rows if text in parameter]


def groups_with(session: Session, name: str, *, is_secret: bool) -> list[int]:
    """Return the groups that have a variable, or a secret, of a name."""
    query = select(Variable.group_id).where(
        Variable.name == name, Variable.group_id != INSTALLATION, _IS_SECRET if is_secret else ~_IS_SECRET
    )
    return list(session.scalars(query))


_IS_SECRET: ColumnElement[bool] = Variable.value.is_(None)


def _is_of(group_id: int, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return VariableVersion.group_id == group_id, VariableVersion.name == name


def _filter(session: Session, criteria: VariableFilter, group_ids: GroupIds) -> Select[tuple[Variable]]:
    query = select(Variable)
    if criteria.name:
        query = query.where(Variable.name == criteria.name)
    if criteria.text:
        query = query.where(contains(Variable.name, criteria.text))
    if criteria.group_id is not None:
        query = query.where(Variable.group_id == criteria.group_id)
    if criteria.is_secret is not None:
        query = query.where(_IS_SECRET if criteria.is_secret else ~_IS_SECRET)
    if group_ids is None:
        return query
    hidden_ids = _hidden_secrets(session, group_ids)
    query = query.where(Variable.group_id.in_([INSTALLATION, *sorted(group_ids)]))
    return query.where(Variable.id.not_in(hidden_ids)) if hidden_ids else query


def _hidden_secrets(session: Session, group_ids: Collection[int]) -> list[int]:
    """Return the secrets of the installation that none of these groups may use."""
    query = select(Variable.id, Variable.allowed).where(Variable.group_id == INSTALLATION, _IS_SECRET)
    rows = session.execute(query).all()
    return [variable_id for variable_id, group_list in rows if allowed_ids(group_list).isdisjoint(group_ids)]
