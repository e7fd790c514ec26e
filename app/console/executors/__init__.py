"""Executor groups and their instances."""

from app.console.executors import checks, connect, detail, graph, pages

MODULES = (
    pages,
    checks,
    detail,
    connect,
    graph,
)
