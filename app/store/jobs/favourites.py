"""Statements on `xxl_job_favourite`: favourite jobs of users."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, bindparam, delete, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.models.favourite import Favourite
from app.models.job import Job

_AMONG = select(Favourite.job_id).where(Favourite.user_id == bindparam("user"), among(Favourite.job_id))


def find_favourites(session: Session, user_id: int, job_ids: Collection[int]) -> set[int]:
    """Return which of the jobs are favourites of a user."""
    rows = direct.read(session, _AMONG, {"user": user_id, WANTED: list(job_ids)})
    return {row[0] for row in rows}


def add_favourite(session: Session, user_id: int, job_id: int) -> None:
    """Add a favourite; an existing one is left unchanged."""
    bulk.insert_ignore(session, Favourite, [{"user_id": user_id, "job_id": job_id}])


def remove_favourite(session: Session, user_id: int, job_id: int) -> None:
    """Remove a favourite."""
    affected(session, delete(Favourite).where(Favourite.user_id == user_id, Favourite.job_id == job_id))


def delete_of_user(session: Session, user_id: int) -> None:
    """Delete all favourites of a user."""
    affected(session, delete(Favourite).where(Favourite.user_id == user_id))


def is_favourite_of(user_id: int) -> ColumnElement[bool]:
    """Return the condition for the favourites of a user."""
    return Job.id.in_(select(Favourite.job_id).where(Favourite.user_id == user_id))
