"""Passwords set by administrators while something else changes the same user."""

import hashlib
from collections.abc import Callable

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.enums import WeakPassword
from app.errors import InvalidInput
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts import login, passwords, sign_on, users
from app.services.accounts.login import Attempt
from app.services.accounts.users import UserDraft
from app.settings.oidc import OidcConfig
from app.store.accounts import users as user_store

# on SQLite writers wait for each other
pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.databases("mariadb", "postgresql")]

NOW: Millis = 1_714_530_000_000
PASSWORD, NEW = "correct-horse-7", "new-secret-88"
ADOPTED = passwords.wrap(hashlib.md5(PASSWORD.encode(), usedforsecurity=False).hexdigest())
OIDC = OidcConfig(issuer="https://id.example", client_id="xxl-job")
ACTOR = system_actor("test")


def update_user(session: Session, user: User) -> None:
    draft = UserDraft(username=user.username, password=NEW)
    users.update_user(session, user.id, draft, actor=ACTOR, now_ms=NOW)


def set_password(session: Session, user: User) -> None:
    draft = UserDraft(username=user.username, password=NEW)
    users.set_password(session, draft, actor=ACTOR, now_ms=NOW)


def link(session: Session, user: User) -> None:
    sign_on.link(session, OIDC, user.username, "subject-1", actor=ACTOR, now_ms=NOW)


Reset = Callable[[Session, User], None]
Meanwhile = Callable[[Callable[[Session], object], int], None]


@pytest.fixture
def norman() -> User:
    with session_scope() as session:
        user = User(username="norman", password=ADOPTED, role=0, permission="")
        session.add(user)
        session.flush()
        session.expunge(user)
    return user


def stored(user: User) -> User:
    with read_scope() as session:
        found = user_store.find_user(session, user.id)
        assert found is not None
        return found


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Return a function that commits a change once a user was read by name for the ``number``-th time."""

    def arrange(change: Callable[[Session], object], number: int) -> None:
        real, reads = user_store.find_by_name, list[str]()

        def find_by_name(session: Session, username: str) -> User | None:
            found = real(session, username)
            reads.append(username)
            if len(reads) == number:
                with session_scope() as other:
                    change(other)
            return found

        monkeypatch.setattr(user_store, "find_by_name", find_by_name)

    return arrange


@pytest.mark.parametrize("reset", [update_user, set_password, link])
def test_a_login_does_not_undo_a_reset_made_meanwhile(
    norman: User, meanwhile: Meanwhile, reset: Reset
) -> None:
    # a login reads the user to check the password, and again to open a session
    meanwhile(lambda session: reset(session, norman), 2)
    with pytest.raises(InvalidInput, match="Wrong user name or password"):
        login.log_in(Attempt("norman", PASSWORD, False, "10.0.0.1", "test"), now_ms=NOW)
    with read_scope() as session:
        assert session.scalars(select(LoginSession)).all() == []
    assert not passwords.verify(stored(norman).password, PASSWORD)


@pytest.mark.parametrize("reset", [set_password, link])
def test_a_reset_removes_a_mark_set_meanwhile(norman: User, meanwhile: Meanwhile, reset: Reset) -> None:
    mark = update(User).where(User.id == norman.id).values(weak_password=WeakPassword.GRACE)
    meanwhile(lambda session: session.execute(mark), 1)
    with session_scope() as session:
        reset(session, norman)
    assert stored(norman).weak_password == WeakPassword.NO
