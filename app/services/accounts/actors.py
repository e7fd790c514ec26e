"""Actors: users with the rights they have now, as logins and background tasks act."""

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, rights_by_group
from app.models.user import User
from app.store.accounts import rights


def actor_of(session: Session, user: User, *, address: str) -> Actor:
    """Return a user as an actor; an administrator needs no rights of groups."""
    stored = {} if user.is_admin else rights.rights_of(session, user.id)
    granted = {} if user.is_admin else rights_by_group(user.group_ids, stored)
    return Actor(
        user_id=user.id, username=user.username, is_admin=user.is_admin, rights=granted, address=address
    )
