"""Statements on `xxl_job_favourite`."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from app.db import affected
from app.models.favourite import Favourite
from app.models.job import Job
from app.store import bulk


def find_favourites(session: Session, user_id: int, job_ids: Collection[int]) -> set[int]:
    """Return which of the jobs a user has starred."""
    query = select(Favourite.job_id).where(Favourite.user_id == user_id, Favourite.job_id.in_(list(job_ids)))
    return {row[0] for row in bulk.read_rows(session, query)}


def add_favourite(session: Session, user_id: int, job_id: int) -> None:
    """Star a job; a second star changes nothing."""
    bulk.insert_ignore(session, Favourite, [{"user_id": user_id, "job_id": job_id}])


def remove_favourite(session: Session, user_id: int, job_id: int) -> None:
    """Take a star back."""
    affected(session, delete(Favourite).where(Favourite.user_id == user_id, Favourite.job_id == job_id))


def delete_of_user(session: Session, user_id: int) -> None:
    """Remove all stars of a user."""
    affected(session, delete(Favourite).where(Favourite.user_id == user_id))


def is_favourite_of(user_id: int) -> ColumnElement[bool]:
    """Match jobs a user has starred."""
    return Job.id.in_(select(Favourite.job_id).where(Favourite.user_id == user_id))
