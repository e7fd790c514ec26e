"""Runs: the log list, a run with its rolling log, search of archived logs, clearing, export."""

from app.console.runs import clearing, compare, export, log_search, pages

MODULES = (
    clearing,
    export,
    pages,
    compare,
    log_search,
)
