"""Statements on `xxl_job_right`: rights of users on executor groups."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.models.right import Right as RightRow


def rights_of(session: Session, user_id: int) -> dict[int, str]:
    """Return the stored rights of a user: group id -> ``view,operate``."""
    rows = session.execute(select(RightRow.group_id, RightRow.rights).where(RightRow.user_id == user_id))
    return {row.group_id: row.rights for row in rows}


def rights_of_users(session: Session, user_ids: Collection[int]) -> Mapping[int, dict[int, str]]:
    """Return the stored rights of some users: user id -> group id -> ``view,operate``."""
    rights_by_user: dict[int, dict[int, str]] = defaultdict(dict)
    for row in session.scalars(select(RightRow).where(RightRow.user_id.in_(list(user_ids)))):
        rights_by_user[row.user_id][row.group_id] = row.rights
    return rights_by_user


def replace_rights(session: Session, user_id: int, rights: Mapping[int, str]) -> None:
    """Replace all rights of a user."""
    affected(session, delete(RightRow).where(RightRow.user_id == user_id))
    session.add_all(
        RightRow(user_id=user_id, group_id=group_id, rights=text) for group_id, text in sorted(rights.items())
    )
    session.flush()


def delete_of_group(session: Session, group_id: int) -> None:
    """Delete all rights on a group, so that a later group with the same id inherits none."""
    affected(session, delete(RightRow).where(RightRow.group_id == group_id))
