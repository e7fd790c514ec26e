"""Fixtures of the console on the test database, and a client for browsers and scripts: a plugin of pytest."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache
from werkzeug.routing import Rule

from app.database.flask_db import db
from app.domain.access.permissions import Right
from app.domain.enums import Role
from app.factory import create_app
from app.settings.config import Config
from tests.support.console import ADMIN_PASSWORD, NETWORKS, Console, add_row, add_user
from tests.support.migrated_databases import kept_engine


class Compiled(BytecodeCache):
    """Share compiled templates between applications: saves half a second for the first page of each."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


TEMPLATES = Compiled()

_builders: dict[tuple[str, str, bool], Callable[..., tuple[str, str]]] = {}
_compile_builder = Rule._compile_builder


def compile_builder_once(rule: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
    """Share compiled URL builders between applications: most of the time of ``create_app``."""
    key = (rule.rule, repr((rule._trace, rule.defaults)), append_unknown)
    if key not in _builders:
        _builders[key] = _compile_builder(rule, append_unknown)
    return _builders[key]


Rule._compile_builder = compile_builder_once  # type: ignore[method-assign]


@pytest.fixture
def settings(config: Config) -> Config:
    """Settings of the console; a test overrides the fixture for others."""
    return replace(config, admin_password=ADMIN_PASSWORD, language="en", executor_networks=NETWORKS)


@pytest.fixture
def app(settings: Config, database: str, monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setattr(db, "_make_engine", lambda _key, options, _app: kept_engine(**options))
    made = create_app(settings)
    made.jinja_env.bytecode_cache = TEMPLATES
    add_row("admin", ADMIN_PASSWORD, Role.ADMIN)
    return made


@pytest.fixture
def console(app: Flask) -> Console:
    """A client without a login."""
    return Console(app, app.test_client())


@pytest.fixture
def admin(console: Console) -> Console:
    """A client with the administrator logged in."""
    return console.log_in()


@pytest.fixture
def normal_user(console: Console) -> Callable[..., Console]:
    """Return a function that stores a normal user of some groups and returns a client logged in as it."""

    def make(
        *group_ids: int, username: str = "norman", rights: dict[int, frozenset[Right]] | None = None
    ) -> Console:
        add_user(username, group_ids, rights)
        return console.another().log_in(username)

    return make
