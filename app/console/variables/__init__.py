"""Stored variables and secrets: lists and forms."""

from app.console.variables import editing, pages

MODULES = (editing, pages)
