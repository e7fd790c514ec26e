"""Prompts for values that are missing on the command line."""

import getpass
import sys
import warnings
from typing import Any

import click

from executor_client.api.error_messages import EXIT_USAGE
from executor_client.cli.invocation import Stop
from executor_client.config.terminal import read_line


def may_prompt() -> bool:
    """Return whether no standard stream is closed: a prompt needs all three, wherever it is shown."""
    return None not in (sys.stdin, sys.stdout, sys.stderr)


def ask(text: str, *, instead: str, **options: Any) -> str:
    """Ask for a value as ``click.prompt`` does; raises Stop with what to do ``instead`` if it cannot."""
    if not may_prompt():
        raise Stop(f"cannot prompt with a standard stream closed: {instead}", EXIT_USAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return str(click.prompt(text, **options))
        except getpass.GetPassWarning as exc:
            raise Stop(f"there is no terminal to prompt on: {instead}", EXIT_USAGE) from exc


def ask_password(*, from_stdin: bool) -> str:
    """Ask for a new password, or read it from standard input. Raises Stop unless it is UTF-8."""
    options = {"hide_input": True, "confirmation_prompt": True, "err": True}
    try:
        password = (
            read_line().rstrip("\r\n")
            if from_stdin
            else ask("Password", instead="add --password-stdin", **options)
        )
        password.encode()
    except UnicodeError as exc:
        raise Stop("the password is not UTF-8", EXIT_USAGE) from exc
    return password
