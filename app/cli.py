"""Commands of ``flask --app wsgi``."""

from flask import Flask


def add_commands(app: Flask) -> None:
    """Add the commands to an application."""
