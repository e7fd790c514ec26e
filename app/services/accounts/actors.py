"""Actors: users with their present rights, for logins and background tasks."""

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, rights_by_group
from app.models.user import User
from app.store.accounts import rights


def actor_of(session: Session, user: User, *, address: str) -> Actor:
    """Return a user as an actor; an administrator needs no rights of groups."""
    user_rights = {} if user.is_admin else rights.rights_of(session, user.id)
    group_rights = {} if user.is_admin else rights_by_group(user.group_ids, user_rights)
    return Actor(
        user_id=user.id, username=user.username, is_admin=user.is_admin, rights=group_rights, address=address
    )
