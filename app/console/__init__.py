"""The console: its areas behind one gate. An area names its modules with routes in ``MODULES``."""

from flask import Flask

from app.console import (
    account,
    alarms,
    backfills,
    blackouts,
    calendars,
    executors,
    help,
    jobs,
    limits,
    operations,
    promises,
    report,
    rounds,
    runs,
    scripting,
    ui,
    users,
    variables,
)
from app.console.account import sessions
from app.console.operations import health, metrics
from app.console.runs import trace
from app.console.ui import filters, labels, live_parts, page_parts, preferences, promise_words
from app.console.ui.calendars import words as calendar_words
from app.console.ui.rounds import words as round_words
from app.console.web import compression, errors, guards, headers, static_files

AREAS = (
    account,
    scripting,
    ui,
    report,
    jobs,
    runs,
    executors,
    alarms,
    promises,
    limits,
    rounds,
    backfills,
    calendars,
    blackouts,
    variables,
    users,
    operations,
)
MODULES = (*(module for area in AREAS for module in area.MODULES), help)
POLICY = guards.merge_policies(MODULES)


def register(app: Flask) -> None:
    """Add gate, error pages, headers and all areas to an application."""
    compression.init_app(app)
    static_files.init_app(app)
    guards.init_app(app, POLICY)
    errors.init_app(app)
    headers.init_app(app)
    for module in MODULES:
        app.register_blueprint(module.blueprint)
    words = (filters, labels, promise_words, round_words, calendar_words)
    for part in (*words, health, metrics, sessions, trace, page_parts, preferences, live_parts):
        part.init_app(app)
