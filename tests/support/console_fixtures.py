"""Fixtures of the console on the test database, and a client for browsers and scripts: a plugin of pytest."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from flask import Flask
from jinja2 import FileSystemBytecodeCache
from werkzeug.routing import Rule

from app.console.operations import health, metrics
from app.database.engine import bind_engine, engine_options
from app.database.flask_db import db
from app.domain.access.permissions import Right
from app.domain.enums import Role
from app.factory import add_layers, flask_settings, make_pages
from app.settings.config import Config
from app.settings.home import prepare_home
from tests.support.console import ADMIN_PASSWORD, NETWORKS, Console, add_row, add_user
from tests.support.migrated_databases import kept_engine

TOKEN, SECRET_KEY = "token-of-the-console-tests", "secret-key-of-the-console-tests-" * 2
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
    """Settings of the console, whose secrets need no files; a test overrides the fixture for others."""
    return replace(
        config,
        admin_password=ADMIN_PASSWORD,
        language="en",
        executor_networks=NETWORKS,
        access_tokens=(TOKEN,),
        secret_key=SECRET_KEY,
    )


@dataclass(frozen=True)
class Pages:
    """An application with all pages and compiled templates, used by one test after the other."""

    app: Flask
    #: of the application without a test's layers
    config: dict[str, Any]
    extensions: dict[str, Any]
    views: dict[str, Any]
    static_folder: str | None

    @classmethod
    def make(cls, settings: Config, compiled: Path) -> Self:
        """Make one; what it takes from the settings depends on the time zone alone.

        ``compiled`` is the folder of compiled templates, which all workers share.
        """
        app = make_pages(settings)
        app.jinja_env.bytecode_cache = FileSystemBytecodeCache(str(compiled))
        return cls(app, dict(app.config), dict(app.extensions), dict(app.view_functions), app.static_folder)

    def with_layers(self, settings: Config) -> Flask:
        """Return the application as ``create_app`` makes it; what a test may change is made anew."""
        app = self.app
        for of_app, own in (
            (app.config, self.config | flask_settings(settings)),
            (app.extensions, self.extensions),
            (app.view_functions, self.views),
        ):
            of_app.clear()
            of_app.update(own)
        app.static_folder = self.static_folder
        vars(app).pop("wsgi_app", None)
        for part in (health, metrics):  # They remember.
            part.init_app(app)
        engine = kept_engine(url=settings.database_url, **engine_options(settings))
        db._app_engines[app][None] = engine
        bind_engine(settings, engine)
        add_layers(app, settings)
        return app


_pages: dict[str, Pages] = {}


@pytest.fixture(scope="session")
def compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run, the same for all of its workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "templates"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def app(settings: Config, database: str, compiled_templates: Path, monkeypatch: pytest.MonkeyPatch) -> Flask:
    monkeypatch.setattr(db, "_make_engine", lambda _key, options, _app: kept_engine(**options))
    prepare_home(settings.home)
    if settings.time_zone not in _pages:
        _pages[settings.time_zone] = Pages.make(settings, compiled_templates)
    made = _pages[settings.time_zone].with_layers(settings)
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
