"""The console: its areas, each a blueprint in a module of its own, behind one gate."""

from importlib import import_module
from importlib.util import find_spec

from flask import Flask

from app.console import errors, filters, guards, headers, preferences, words

#: modules with a ``blueprint``
AREAS = (
    "auth",
    "scripting_login",
    "scripting_jobs",
    "scripting_logs",
    "scripting_groups",
    "scripting_users",
    "account",
    "dashboard",
    "jobs",
    "job_actions",
    "glue",
    "logs",
    "groups",
    "users",
    "help",
)


def register(app: Flask) -> None:
    """Add gate, error pages, headers and all areas to an application."""
    guards.init_app(app)
    errors.init_app(app)
    headers.init_app(app)
    for name in AREAS:
        if find_spec(f"app.console.{name}") is not None:
            app.register_blueprint(import_module(f"app.console.{name}").blueprint)
    filters.init_app(app)
    words.init_app(app)
    preferences.init_app(app)
