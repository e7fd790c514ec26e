"""Shared parts of the pages: forms, labels, filters, lists, sorting, pickers, saved views."""

from app.console.ui import pickers, saved_views, tasks

MODULES = (
    pickers,
    saved_views,
    tasks,
)
