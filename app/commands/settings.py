"""Command ``check-config``: the settings in effect, and whether the services can start with them."""

from dataclasses import fields
from typing import Any

import click

from app.commands.context import configuration, one_line_errors, open_database
from app.db import read_scope
from app.services.accounts import weak_passwords
from app.services.accounts.password_list import common_passwords

#: configuration fields that are never printed
SECRET_FIELDS = frozenset({"access_tokens", "admin_password", "secret_key", "alarm_urls"})


@click.command("check-config")
@one_line_errors
def check_config() -> None:
    """Print the settings without secrets, check database and schema, and warn of common passwords."""
    config = configuration()
    for field in fields(config):
        if field.name not in SECRET_FIELDS and field.repr:
            click.echo(f"{field.name}: {_shown(getattr(config, field.name))}")
    open_database()
    click.echo("database and schema: ok")
    common_passwords()
    with read_scope() as session:
        weak = weak_passwords.count(session)
    if weak:
        click.echo(f"warning: users with a common password: {weak}; see the list of users in the console")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
