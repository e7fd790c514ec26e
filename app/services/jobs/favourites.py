"""The jobs a user has starred: nobody else sees them, and what one may no longer see is not listed."""

from sqlalchemy.orm import Session

from app.domain.permissions import Actor
from app.services.jobs import jobs
from app.store import favourites


def star_job(session: Session, job_id: int, *, wanted: bool, actor: Actor) -> None:
    """Add a job the actor may see to their favourites, or take it off them."""
    jobs.get_job(session, job_id, actor=actor)
    change = favourites.add_favourite if wanted else favourites.remove_favourite
    change(session, actor.user_id, job_id)
