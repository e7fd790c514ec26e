"""Commands of ``flask --app wsgi``: next-times, create-user, link-identity, check-config, seed-demo.

``db upgrade`` comes from Flask-Migrate.
"""

import functools
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import click
from flask import Flask, current_app
from flask.cli import with_appcontext
from sqlalchemy.exc import DBAPIError

from app.clock import Millis, now_ms
from app.config import Config
from app.database_faults import not_configured
from app.db import bind_engine, check_database, read_scope, session_scope
from app.domain.enums import ScheduleType
from app.domain.permissions import system_actor
from app.domain.schedule import PREVIEW_COUNT, Schedule, check_schedule, next_times
from app.errors import XxlJobError
from app.services import demo, startup
from app.services.accounts import sign_on, users, weak_passwords
from app.services.accounts.password_list import common_passwords
from app.services.accounts.users import UserDraft

#: configuration fields that are never printed
SECRET_FIELDS = frozenset({"access_tokens", "admin_password", "secret_key", "alarm_urls"})
MAX_COUNT = 1_000


def add_commands(app: Flask) -> None:
    """Register the commands."""
    for command in (next_times_command, create_user, link_identity, check_config, seed_demo):
        app.cli.add_command(command)


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Report XxlJobError and database errors as one line on standard error, with exit code 1."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except XxlJobError as exc:
            raise click.ClickException(str(exc)) from exc
        except DBAPIError as exc:
            raise click.ClickException(str(not_configured(exc))) from exc

    return run


@click.command("next-times")
@click.option("--tz", default="", help="IANA time zone; default: the configured one.")
@click.option(
    "--start-ms", type=int, default=None, help="Start after this time, in epoch milliseconds; default: now."
)
@click.option("--count", type=click.IntRange(1, MAX_COUNT), default=PREVIEW_COUNT, show_default=True)
@click.argument("expression", required=False)
@with_appcontext
@one_line_errors
def next_times_command(tz: str, start_ms: int | None, count: int, expression: str | None) -> None:
    """Print the next times of a cron EXPRESSION.

    Without one, read JSON lines {"expr", "tz", "start_ms"} and print {"next_ms"} or {"error"} for each.
    """
    zone = tz or _config().time_zone
    start = now_ms() if start_ms is None else start_ms
    if expression is None:
        _answer_lines(sys.stdin, zone=zone, start_ms=start, count=count)
        return
    for time_ms in _next_ms(expression, zone, start, count):
        local = datetime.fromtimestamp(time_ms // 1000, ZoneInfo(zone))
        click.echo(f"{time_ms} {local.isoformat()}")


def _answer_lines(lines: Iterable[str], *, zone: str, start_ms: Millis, count: int) -> None:
    for line in lines:
        if line.strip():
            sys.stdout.write(
                json.dumps(_answer(line, zone=zone, start_ms=start_ms, count=count), ensure_ascii=False)
                + "\n"
            )
            sys.stdout.flush()


def _answer(line: str, *, zone: str, start_ms: Millis, count: int) -> dict[str, Any]:
    """Return the result for one line; an invalid line is an error in the result."""
    try:
        request = json.loads(line)
        expression, requested_zone, requested_start_ms = (
            request["expr"],
            request.get("tz") or zone,
            request.get("start_ms", start_ms),
        )
        if (
            not isinstance(expression, str)
            or not isinstance(requested_zone, str)
            or not isinstance(requested_start_ms, int)
        ):
            raise TypeError
        return {"next_ms": _next_ms(expression, requested_zone, requested_start_ms, count)}
    except XxlJobError as exc:
        return {"error": str(exc)}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        return {"error": 'expected a JSON object {"expr": text, "tz": text, "start_ms": number}'}
    except (ValueError, OverflowError) as exc:
        return {"error": str(exc)}


def _next_ms(expression: str, zone: str, start_ms: Millis, count: int) -> list[Millis]:
    schedule = Schedule(type=ScheduleType.CRON, conf=expression.strip(), time_zone=zone)
    check_schedule(schedule)
    return next_times(schedule, start_ms, count)


@click.command("create-user")
@click.argument("username")
@click.option("--admin", is_flag=True, help="Administrator: may do everything.")
@click.option(
    "--group",
    "group_ids",
    type=int,
    multiple=True,
    help="Id of an executor group that a normal user may access; repeatable.",
)
@click.option(
    "--reset", is_flag=True, help="Existing user: set a new password, unlock the account, end all sessions."
)
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of prompting."
)
@with_appcontext
@one_line_errors
def create_user(
    username: str, admin: bool, group_ids: tuple[int, ...], reset: bool, password_stdin: bool
) -> None:
    """Create a user, or reset the password of an existing one with --reset."""
    _check_database()
    password = (
        sys.stdin.readline().rstrip("\r\n")
        if password_stdin
        else click.prompt("Password", hide_input=True, confirmation_prompt=True)
    )
    actor = system_actor("command line")
    with session_scope() as session:
        draft = UserDraft(username=username, password=password, role=int(admin), group_ids=group_ids)
        if reset:
            users.set_password(session, draft, actor=actor, now_ms=now_ms())
        else:
            users.add_user(session, draft, actor=actor, now_ms=now_ms())
    click.echo(f"user {username}: {'password reset' if reset else 'created'}")


@click.command("link-identity")
@click.argument("username")
@click.argument("subject", required=False)
@click.option("--remove", is_flag=True, help="Undo it; then: create-user USERNAME --reset.")
@with_appcontext
@one_line_errors
def link_identity(username: str, subject: str | None, remove: bool) -> None:
    """Link a local user to the SUBJECT (claim "sub") of a user of the OpenID provider."""
    config = _config().oidc
    if not config.issuer and not remove:
        raise click.ClickException("XXL_JOB_OIDC_ISSUER is not set")
    if bool(subject) is remove:
        raise click.UsageError("expected a SUBJECT, or --remove")
    _check_database()
    actor = system_actor("command line")
    with session_scope() as session:
        sign_on.link(session, config, username, subject or "", actor=actor, now_ms=now_ms())
    click.echo(f"user {username}: {'unlinked' if remove else 'linked'}")


@click.command("check-config")
@with_appcontext
@one_line_errors
def check_config() -> None:
    """Print the settings without secrets, check database and schema, and warn of common passwords."""
    config = _config()
    for field in fields(config):
        if field.name not in SECRET_FIELDS and field.repr:
            click.echo(f"{field.name}: {_shown(getattr(config, field.name))}")
    _check_database()
    click.echo("database and schema: ok")
    common_passwords()
    with read_scope() as session:
        weak = weak_passwords.count(session)
    if weak:
        click.echo(f"warning: users with a common password: {weak}; see the list of users in the console")


@click.command("seed-demo")
@with_appcontext
@one_line_errors
def seed_demo() -> None:
    """Create a demo executor group and jobs, unless there are jobs already."""
    _check_database()
    with session_scope() as session:
        created = demo.seed(session, actor=system_actor("demo"), clock=now_ms)
    click.echo(f"demo jobs created: {created}" if created else "there are jobs already: nothing created")


def _config() -> Config:
    config = current_app.config["XXL_JOB"]
    assert isinstance(config, Config)
    return config


def _check_database() -> None:
    config = _config()
    check_database(config)
    startup.check_schema(bind_engine(config))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
