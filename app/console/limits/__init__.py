"""Limits of runs at once: their slots, who has them and what waits for them."""

from app.console.limits import actions, editing, pages

MODULES = (actions, editing, pages)
