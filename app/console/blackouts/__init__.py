"""Blackouts: the list, one to add or end, an executor group off and on."""

from app.console.blackouts import groups, pages

MODULES = (pages, groups)
