"""Helpers of the tests of console, for all that need them."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.console.web.current import COOKIE
from app.database.engine import session_scope
from app.domain.access.permissions import ALL_RIGHTS, Right, system_actor
from app.domain.enums import Role
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts import login, passwords, users
from app.services.accounts.users import UserDraft
from app.services.executors import groups
from app.services.executors.groups import GroupDraft
from app.services.jobs import jobs
from app.services.jobs.jobs import JobDraft
from app.settings.config import Config
from app.store.accounts import users as user_store

CONTEXT = "/xxl-job-admin"


ADMIN_PASSWORD = "correct-horse-7"


PASSWORD = "battery-staple-9"


ACTOR = system_actor("test")


NETWORKS = Config.from_env({}, dotenv=None).executor_networks


@dataclass
class Console:
    """Client of the console: paths below the context path, JSON answers as dicts."""

    app: Flask
    client: FlaskClient

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(CONTEXT + path, **options)

    def post(self, path: str, data: Any = None, **options: Any) -> TestResponse:
        return self.client.post(CONTEXT + path, data=data or {}, **options)

    def call(self, path: str, **parameters: Any) -> dict[str, Any]:
        """Post to a JSON endpoint as scripts do; return its answer."""
        response = self.post(path, parameters)
        assert response.status_code == 200, response.text
        answer = response.get_json()
        assert isinstance(answer, dict)
        return answer

    def log_in(self, username: str = "admin", password: str | None = None) -> "Console":
        """Log in; without a password by creating a confirmed session directly, which is quick."""
        if password is not None:
            answer = self.call("/login", userName=username, password=password)
            assert answer["code"] == 200, answer
            return self
        token, at_ms = secrets.token_hex(32), now_ms()
        with session_scope() as session:
            user = user_store.find_by_name(session, username)
            assert user is not None
            row = LoginSession(
                token_hash=login.hash_token(token),
                user_id=user.id,
                created_ms=at_ms,
                last_seen_ms=at_ms,
                expires_ms=at_ms + login.ABSOLUTE_MS,
                confirmed_ms=at_ms,
                address="127.0.0.1",
                agent="test",
            )
            session.add(row)
        self.client.set_cookie(COOKIE, token)
        return self

    def another(self) -> "Console":
        """Return a client of the same console without a login."""
        return Console(self.app, self.app.test_client())


def add_group(app_name: str = "sample-app", title: str = "Sample", addresses: str = "") -> int:
    """Store a group; manual if it has addresses."""
    draft = GroupDraft(
        app_name=app_name,
        title=title,
        address_type=int(bool(addresses)),
        address_list=addresses,
        networks=NETWORKS,
    )
    with session_scope() as session:
        return groups.add_group(session, draft, actor=ACTOR, now_ms=now_ms())


def job_draft(group_id: int, **changes: Any) -> JobDraft:
    """Return a valid job."""
    draft = JobDraft(
        job_group=group_id,
        job_desc="nightly report",
        author="ann",
        schedule_type="CRON",
        schedule_conf="0 0 3 * * ?",
        misfire_strategy="DO_NOTHING",
        executor_route_strategy="FIRST",
        executor_handler="demoJobHandler",
        executor_block_strategy="SERIAL_EXECUTION",
        glue_type="BEAN",
    )
    return replace(draft, **changes)


def add_job(group_id: int, *, start: bool = False, **changes: Any) -> int:
    """Store a job."""
    with session_scope() as session:
        return jobs.add_job(session, job_draft(group_id, **changes), actor=ACTOR, clock=now_ms, start=start)


def add_user(
    username: str, group_ids: Iterable[int] = (), rights: dict[int, frozenset[Right]] | None = None
) -> int:
    """Store a normal user with all rights on the groups; without groups, with those of an adopted user."""
    user_id = add_row(username, PASSWORD, Role.NORMAL)
    groups_of_user = tuple(group_ids)
    draft = UserDraft(
        username=username,
        group_ids=groups_of_user,
        rights={**dict.fromkeys(groups_of_user, ALL_RIGHTS), **(rights or {})},
    )
    with session_scope() as session:
        users.update_user(session, user_id, draft, actor=ACTOR, now_ms=now_ms())
    return user_id


def add_row(username: str, password: str, role: Role) -> int:
    """Store a user without hashing the password each time."""
    with session_scope() as session:
        user = User(username=username, password=hash_of(password), role=int(role), permission="")
        session.add(user)
        session.flush()
        return user.id


@cache
def hash_of(password: str) -> str:
    return passwords.hash_password(password)
