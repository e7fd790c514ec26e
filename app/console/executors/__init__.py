"""Executor groups and their instances."""

from app.console.executors import checks, detail, pages

MODULES = (
    pages,
    checks,
    detail,
)
