"""Runs: the log list, a run with its rolling log, clearing, export."""

from app.console.runs import cleaning, compare, export, pages

MODULES = (
    cleaning,
    export,
    pages,
    compare,
)
