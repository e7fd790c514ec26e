"""Statements on `xxl_job_right`."""

from collections.abc import Iterable, Mapping

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db import affected
from app.models.right import Right as RightRow


def rights_of(session: Session, user_id: int) -> dict[int, str]:
    """Return the stored rights of a user: group id -> ``view,operate``."""
    rows = session.execute(select(RightRow.group_id, RightRow.rights).where(RightRow.user_id == user_id))
    return {row.group_id: row.rights for row in rows}


def rights_of_users(session: Session, user_ids: Iterable[int]) -> dict[int, dict[int, str]]:
    """Return the stored rights of several users."""
    found: dict[int, dict[int, str]] = {}
    query = select(RightRow.user_id, RightRow.group_id, RightRow.rights).where(
        RightRow.user_id.in_(list(user_ids))
    )
    for user_id, group_id, rights in session.execute(query):
        found.setdefault(user_id, {})[group_id] = rights
    return found


def replace_rights(session: Session, user_id: int, rights: Mapping[int, str]) -> None:
    """Make ``rights`` the only rows of the user."""
    affected(session, delete(RightRow).where(RightRow.user_id == user_id))
    session.add_all(
        RightRow(user_id=user_id, group_id=group_id, rights=text) for group_id, text in sorted(rights.items())
    )
    session.flush()


def delete_of_group(session: Session, group_id: int) -> None:
    """Remove every right on a group, so that a later group of the same id inherits nothing."""
    affected(session, delete(RightRow).where(RightRow.group_id == group_id))
