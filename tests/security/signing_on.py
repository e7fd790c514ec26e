"""Fixtures and steps of the tests of the sign-on: a console with a fake provider."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.console.web.current import COOKIE as LOGIN_COOKIE
from app.database.engine import read_scope
from app.models.audit import AuditEntry
from app.models.session import LoginSession
from app.models.user import User
from app.services.auditing import refusals
from app.settings.config import Config
from app.settings.oidc import OidcConfig
from app.store.accounts import users as user_store
from tests.security.fake_provider import CLIENT_ID, CLIENT_SECRET, FakeProvider, serving_provider
from tests.support.console import CONTEXT, Console

CALLBACK = f"{CONTEXT}/sign-on/callback"
PUBLIC = "http://localhost/xxl-job-admin"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with serving_provider() as made:
        yield made


@pytest.fixture
def oidc(provider: FakeProvider) -> OidcConfig:
    return OidcConfig(issuer=provider.issuer, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)


@pytest.fixture
def settings(settings: Config, oidc: OidcConfig) -> Config:
    return replace(settings, public_url=PUBLIC, oidc=oidc)


@pytest.fixture
def configure(console: Console, settings: Config) -> Callable[..., None]:
    """Return a function that changes the meaning of the claims."""

    def change(**changes: Any) -> None:
        current = console.app.extensions["xxl_job_sign_on"]
        current._config = current._provider._config = replace(current._config, **changes)

    return change


def start(console: Console) -> str:
    response = console.get("/sign-on")
    assert response.status_code == 303, response.text
    return response.headers["Location"]


def sign_in(console: Console, provider: FakeProvider, **changes: str) -> TestResponse:
    """Start and finish a sign-on; ``changes`` are put into the answer the browser delivers."""
    answer = provider.authorize(start(console)) | changes
    return console.client.get(CALLBACK, query_string=answer)


def assert_refused(
    console: Console, response: TestResponse, reason: str, *, status: int = 403, count: int = 1
) -> None:
    """The login page with a notice, no login, and an audit entry with the reason: the ``count``-th."""
    assert response.status_code == status, response.text
    assert 'role="alert"' in response.text
    assert f'action="{CONTEXT}/toLogin"' in response.text
    assert LOGIN_COOKIE not in response.headers.get("Set-Cookie", "")
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        query = select(AuditEntry).where(AuditEntry.action == "login.refused").order_by(AuditEntry.id)
        entries = list(session.scalars(query))
        assert session.scalars(select(LoginSession)).all() == []
    assert len(entries) == count
    assert reason in json.loads(entries[-1].changes or "{}")["sign_on"]
    assert console.get("/account").headers["Location"] == f"{CONTEXT}/toLogin"


def user_named(name: str) -> User | None:
    with read_scope() as session:
        return user_store.find_by_name(session, name)
