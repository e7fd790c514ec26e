"""Helpers of the tests of api v1, for all that need them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import Flask
from werkzeug.test import Client, TestResponse

from app.api.v1.application import create_api
from app.api.v1.endpoint import Resource
from app.api.v1.resources import all_resources
from app.blobs.stores import archive_of
from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Right, system_actor
from app.executors.gateway import Gateway
from app.services.accounts.api_tokens import TokenDraft, create_token
from app.services.executors.callers import Caller
from app.settings.config import Config

ALL = frozenset(Right)


ADMINISTRATOR = system_actor("test")


@dataclass
class Api:
    """Client of the API with one API token; empty: none."""

    app: Flask
    token: str = ""

    def __call__(self, method: str, path: str, body: Any = None, **more: Any) -> TestResponse:
        """Send a request; ``body`` is sent as JSON."""
        headers = {
            **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
            **more.pop("headers", {}),
        }
        if body is not None:
            more["json"] = body
        return Client(self.app).open(path, method=method, headers=headers, **more)

    def get(self, path: str, **more: Any) -> TestResponse:
        return self("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self("POST", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self("PATCH", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self("PUT", path, body, **more)

    def delete(self, path: str, **more: Any) -> TestResponse:
        return self("DELETE", path, **more)

    def with_token(self, token: str) -> "Api":
        return replace(self, token=token)


def make_token(
    *rights: Right, admin: bool = False, group_ids: Sequence[int] | None = None, name: str = "ci"
) -> str:
    """Store a service token and return it."""
    grant = Grant(frozenset(rights), admin, None if group_ids is None else frozenset(group_ids))
    with session_scope() as session:
        draft = TokenDraft(name, grant, service=True)
        return create_token(session, draft, actor=ADMINISTRATOR, now_ms=now_ms()).token


def app_of(config: Config, resources: Sequence[Resource] = ()) -> Flask:
    """Return the application of the API; without ``resources``, of all."""
    tokens = ("an-access-token-of-executors",)
    executors = Caller(Gateway(config.executor_networks), tokens, archive=archive_of(config))
    return create_api(config, executors, resources or all_resources())
