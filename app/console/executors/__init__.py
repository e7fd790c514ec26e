"""Executor groups and their instances."""

from app.console.executors import checks, connect, detail, pages

MODULES = (
    pages,
    checks,
    detail,
    connect,
)
