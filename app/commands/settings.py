"""Command ``check-config``: the settings in effect, and whether the services can start with them."""

from collections.abc import Mapping
from typing import Any

import click

from app.commands.context import configuration, one_line_errors, open_database
from app.database.engine import read_scope
from app.database.urls import without_password
from app.services.accounts import weak_passwords
from app.services.accounts.password_list import common_passwords
from app.services.installation import preconditions
from app.settings.config import SECRET_VARIABLES, SETTINGS, Config
from app.settings.home import SECRET_KEY_FILE, TOKEN_FILE

DATABASE = "XXL_JOB_DATABASE_URL"
ARCHIVE = "XXL_JOB_LOG_ARCHIVE"
HIDDEN = "***"
#: what a value alone does not say; behind its source
NOTES: Mapping[str, str] = {
    "XXL_JOB_LANGUAGE": "the language of the user or the browser comes first; alarms are in English",
}
#: secrets that are generated in the home if they are not set
GENERATED: Mapping[str, str] = {"XXL_JOB_ACCESS_TOKEN": TOKEN_FILE, "XXL_JOB_SECRET_KEY": SECRET_KEY_FILE}


@click.command("check-config", short_help="Print the settings, check them and the database.")
@one_line_errors
def check_config() -> None:
    """Print each setting with where it was set, secrets hidden; check database, schema and passwords."""
    config = configuration()
    for line in setting_lines(config):
        click.echo(line)
    preconditions.check_settings(config)
    open_database()
    click.echo("database and schema: ok")
    common_passwords()
    with read_scope() as session:
        weak = weak_passwords.count(session)
    if weak:
        click.echo(f"warning: users with a common password: {weak}; see the list of users in the console")


def setting_lines(config: Config) -> list[str]:
    """Return a line ``NAME=value  # source`` for each setting, with a note behind the source of some."""
    texts = {variable: f"{variable}={_shown(config, variable)}" for variable in SETTINGS}
    width = min(max(map(len, texts.values())), 60)
    return [f"{text:<{width}}  # {_source(config, variable)}" for variable, text in texts.items()]


def _shown(config: Config, variable: str) -> str:
    value = _value(config, variable)
    if variable == DATABASE:
        return without_password(config.database_url)
    if variable in SECRET_VARIABLES:
        return HIDDEN if value else ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    return str(value)


def _value(config: Config, variable: str) -> Any:
    parts = {"XXL_JOB_MAIL_": config.mail, "XXL_JOB_OIDC_": config.oidc, ARCHIVE: config.archive}
    part = next((part for prefix, part in parts.items() if variable.startswith(prefix)), config)
    return getattr(part, SETTINGS[variable][0])


def _source(config: Config, variable: str) -> str:
    source = config.sources.get(variable) or "default"
    if source == "default" and variable in GENERATED:
        return f"{config.home / GENERATED[variable]}, generated at the first start"
    return f"{source}; {NOTES[variable]}" if variable in NOTES else source
