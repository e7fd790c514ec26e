"""Stops a build of the server without the files that the set-up makes; all else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup

MADE = ("app/static/vendor/unpacked", "app/translations/zh_Hans_CN/LC_MESSAGES/messages.mo")

if missing := [name for name in MADE if not (Path(__file__).parent / name).exists()]:
    raise SystemExit(f"{missing[0]} is missing; run: python3 manage.py setup")
setup()
