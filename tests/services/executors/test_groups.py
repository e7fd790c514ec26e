"""Executor groups: deleted while something else changes the rights on them."""

import pytest
from sqlalchemy.orm import Session

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Right, system_actor
from app.models.user import User
from app.services.accounts import actors
from app.services.accounts import users as accounts
from app.services.accounts.users import UserDraft
from app.services.executors import groups
from app.store.accounts import users
from tests.support.factories import T0, make_group, save

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("test")


@pytest.mark.databases("mariadb", "postgresql")  # on SQLite writers wait for each other
def test_a_deleted_group_restores_no_right_revoked_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, revoked, deleted = (
        make_group(app_name=f"app-{name}").id for name in ("kept", "revoked", "deleted")
    )
    permission = f"{kept},{revoked},{deleted}"
    user = save(User(username="norman", password="", role=0, permission=permission))
    rights = {kept: frozenset({Right.VIEW}), deleted: ALL_RIGHTS}
    draft = UserDraft(username="norman", group_ids=(kept, deleted), rights=rights)
    real = users.all_users

    def all_users(session: Session) -> list[User]:
        found = real(session)
        with session_scope() as other:
            accounts.update_user(other, user.id, draft, actor=ADMIN, now_ms=T0)
        return found

    monkeypatch.setattr(users, "all_users", all_users)
    with session_scope() as session:
        groups.remove_group(session, deleted, actor=ADMIN, now_ms=T0)
    with read_scope() as session:
        found = users.find_user(session, user.id)
        assert found is not None
        assert found.permission == f"{kept}"
        assert actors.actor_of(session, found, address="").rights == {kept: {Right.VIEW}}
