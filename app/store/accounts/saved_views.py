"""Statements on `xxl_job_view` and `xxl_job_start_page`: saved views and start pages."""

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.models.saved_view import SavedView
from app.models.start_page import StartPage


def list_views(session: Session, user_id: int, *, list_name: str | None = None) -> list[SavedView]:
    """Return the views of a user, by name; None: of all lists."""
    query = select(SavedView).where(SavedView.user_id == user_id)
    if list_name is not None:
        query = query.where(SavedView.list_name == list_name)
    return sorted(session.scalars(query), key=lambda view: (view.list_name, view.name_key))


def find_view(session: Session, user_id: int, view_id: int) -> SavedView | None:
    """Return a view of a user; None if it does not exist or belongs to another user."""
    return session.scalar(select(SavedView).where(SavedView.id == view_id, SavedView.user_id == user_id))


def count_views(session: Session, user_id: int, *, list_name: str) -> int:
    """Return the number of views a user has of a list."""
    query = (
        select(func.count())
        .select_from(SavedView)
        .where(SavedView.user_id == user_id, SavedView.list_name == list_name)
    )
    return session.scalar(query) or 0


def find_start(session: Session, user_id: int) -> str:
    """Return the start page of a user; empty if none was chosen."""
    return session.scalar(select(StartPage.target).where(StartPage.user_id == user_id)) or ""


def replace_start(session: Session, user_id: int, target: str) -> None:
    """Store the start page of a user; empty: the default."""
    affected(session, delete(StartPage).where(StartPage.user_id == user_id))
    if target:
        session.add(StartPage(user_id=user_id, target=target))
    session.flush()


def delete_of_user(session: Session, user_id: int) -> None:
    """Delete the views and the start page of a user."""
    affected(session, delete(SavedView).where(SavedView.user_id == user_id))
    affected(session, delete(StartPage).where(StartPage.user_id == user_id))
