"""Scripting: the original's JSON endpoints."""

from app.console.scripting import groups, jobs, login, runs, users

MODULES = (
    login,
    jobs,
    runs,
    groups,
    users,
)
