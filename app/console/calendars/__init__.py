"""Calendars: the list, the year of one, its forms."""

from app.console.calendars import editing, pages

MODULES = (editing, pages)
