"""Shared parts of the pages: forms, labels, filters, lists, sorting, pickers, saved views."""

from app.console.ui import saved_views, tasks
from app.console.ui.forms import pickers

MODULES = (
    pickers,
    saved_views,
    tasks,
)
