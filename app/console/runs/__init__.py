"""Runs: the log list, a run with its rolling log, clearing, export."""

from app.console.runs import clearing, compare, export, pages

MODULES = (
    clearing,
    export,
    pages,
    compare,
)
