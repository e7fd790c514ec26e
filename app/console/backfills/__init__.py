"""Backfills: the list, the page of one, the form with the list of what it would run."""

from app.console.backfills import actions, pages, starting

MODULES = (pages, starting, actions)
