"""Favourite jobs of a user. They are private, and jobs the user can no longer see are not listed."""

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor
from app.services.jobs import jobs
from app.store.jobs import favourites


def star_job(session: Session, job_id: int, *, is_favourite: bool, actor: Actor) -> None:
    """Add a visible job to the actor's favourites (``is_favourite``), or remove it."""
    jobs.get_job(session, job_id, actor=actor)
    change = favourites.add_favourite if is_favourite else favourites.remove_favourite
    change(session, actor.user_id, job_id)
