"""Statements on `xxl_job_user`: users of the console."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.domain.enums import Role, WeakPassword
from app.domain.lists.orders import UNSORTED, Order
from app.models.user import User
from app.store.base.ordering import SortKey, ordering
from app.store.base.paging import Page, contains, fetch_page, is_small, is_storable

#: sort keys of the list, by their name in the URL
ORDERS: dict[str, SortKey] = {
    "name": SortKey((User.username,)),
    "role": SortKey((User.role, User.username)),
    "state": SortKey((User.disabled, User.username)),
}


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Filters and order of the list of users; an empty name and role -1 match all."""

    username: str = ""
    role: int = -1
    order: Order = UNSORTED
    #: only users with a weak password
    weak_only: bool = False


def find_user(session: Session, user_id: int) -> User | None:
    """Return a user or None."""
    return session.get(User, user_id)


def lock_user(session: Session, user_id: int) -> User | None:
    """Lock and return a user."""
    return session.get(User, user_id, with_for_update=True, populate_existing=True)


def find_by_name(session: Session, username: str) -> User | None:
    """Return the user with this name, ignoring case.

    If several match, which only another program can have caused, the case must match too. The comparison here
    is stricter than MySQL's, which takes ``ádmin`` for ``admin``.
    """
    if not is_storable(username):
        return None
    folded_name = username.casefold()
    users = [
        user
        for user in session.scalars(select(User).where(_has_name(username)))
        if user.username.casefold() == folded_name
    ]
    matches = [user for user in users if user.username == username] or users
    return matches[0] if len(matches) == 1 else None


def lock_by_name(session: Session, username: str) -> User | None:
    """Lock and return the user that ``find_by_name`` finds, as it is now, or None."""
    user = find_by_name(session, username)
    return lock_user(session, user.id) if user is not None else None


def lock_by_identity(session: Session, identity: str) -> User | None:
    """Lock and return the user of an OpenID provider's issuer and subject, or None."""
    user = session.scalar(select(User).where(User.identity == identity).with_for_update())
    # MariaDB ignores trailing blanks
    return user if user is not None and user.identity == identity else None


def is_name_taken(session: Session, username: str) -> bool:
    """Whether the name is in use, ignoring case, by the database's own comparison."""
    query = select(func.count()).select_from(User).where(_has_name(username))
    return is_storable(username) and bool(session.scalar(query))


def _has_name(username: str) -> ColumnElement[bool]:
    """Match a name case-insensitively (SQLite: A to Z only)."""
    return func.lower(User.username) == func.lower(username)


def insert_user(session: Session, user: User) -> bool:
    """Insert a user and set the id; False if another request has just taken the name: roll back then."""
    session.add(user)
    try:
        session.flush()
    except IntegrityError:
        return False
    return True


def count_users(session: Session) -> int:
    """Return how many users there are."""
    return session.scalar(select(func.count()).select_from(User)) or 0


def lock_enabled_admins(session: Session) -> list[User]:
    """Lock and return the enabled administrators, so that two requests cannot both remove the last one."""
    query = select(User).where(User.role == Role.ADMIN, User.disabled == 0).order_by(User.id)
    return list(session.scalars(query.with_for_update()))


def list_users(session: Session, user_filter: UserFilter, *, start: int, length: int) -> Page[User]:
    """Return a page of users, by name unless another order is given."""
    query = _of(user_filter).order_by(
        *ordering(user_filter.order, ORDERS, row_id=User.id, default=(User.username, User.id))
    )
    if user_filter.weak_only:
        query = query.where(User.weak_password != WeakPassword.NO)
    return fetch_page(session, query, start=start, length=length)


def list_after(
    session: Session, user_filter: UserFilter, after: tuple[str, int], *, limit: int
) -> list[User]:
    """Return the users behind ``after`` (name and id) by name; weak or not."""
    name, user_id = after
    query = _of(user_filter).order_by(User.username, User.id).limit(limit)
    if user_id:
        query = query.where(or_(User.username > name, and_(User.username == name, User.id > user_id)))
    return list(session.scalars(query))


def _of(user_filter: UserFilter) -> Select[tuple[User]]:
    query = select(User)
    if user_filter.username:
        query = query.where(contains(User.username, user_filter.username))
    return query.where(is_small(User.role, user_filter.role)) if user_filter.role >= 0 else query


def weak_names(session: Session) -> list[str]:
    """Return the names of the enabled users whose scripts still log in with a weak password."""
    query = select(User.username).where(User.weak_password == WeakPassword.GRACE, User.disabled == 0)
    return list(session.scalars(query.order_by(User.username)))


def find_marked(session: Session, mark: WeakPassword) -> list[User]:
    """Return the users whose password has this mark, ids ascending."""
    return list(session.scalars(select(User).where(User.weak_password == mark).order_by(User.id)))


def count_weak(session: Session) -> int:
    """Return how many enabled users have a weak password that scripts still log in with."""
    query = select(func.count()).where(User.weak_password == WeakPassword.GRACE, User.disabled == 0)
    return session.scalar(query) or 0


def all_users(session: Session) -> list[User]:
    """Return every user."""
    return list(session.scalars(select(User).order_by(User.id)))


def delete_user(session: Session, user_id: int) -> bool:
    """Delete a user; True if there was one."""
    return affected(session, delete(User).where(User.id == user_id)) == 1
