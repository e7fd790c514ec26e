"""Examination of an installation: all checks in order. Writes nothing, and works with the services down."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.dialects.choice import dialect_of
from app.database.engine import bind_for_reading, read_scope, unbind_engine
from app.database.faults import reason_of
from app.database.urls import without_password
from app.errors import NotConfigured
from app.executors.calls import Peer
from app.services.doctor import (
    archive,
    backfills,
    blackouts,
    calendars,
    database,
    executors,
    host,
    limits,
    misfires,
    promises,
    rounds,
)
from app.services.doctor.findings import Finding, Findings, Level, check, fine, problem
from app.services.installation import sealed_tokens
from app.services.installation.preconditions import check_schema
from app.settings.config import Config

DATABASE_ADVICE = "start the database, correct XXL_JOB_DATABASE_URL, or run: duetime db upgrade"


@dataclass(frozen=True, slots=True)
class Examination:
    """Findings of all checks; ``is_complete`` is False if the database could not be examined."""

    findings: tuple[Finding, ...]
    is_complete: bool

    @property
    def is_fine(self) -> bool:
        """Whether every finding is fine."""
        return self.is_complete and all(finding.level is Level.OK for finding in self.findings)


def examine(config: Config, *, env_file: Path | None = None, probe: bool = False) -> Examination:
    """Check everything; ``probe``: call the executors too."""
    findings = [
        *host.check_settings(config),
        *host.check_tokens(config),
        *host.check_files(config, env_file),
        *host.check_disk(config),
        *host.check_backup(config, now_ms=now_ms()),
    ]
    safe_url = without_password(config.database_url)
    peers: list[Peer] = []
    try:
        engine = bind_for_reading(config)
        with engine.connect() as connection:
            dialect_of(connection).require_usable(connection)
        check_schema(engine)
        for check_database in _checks(config, safe_url):
            with read_scope() as session:
                findings += check_database(session)
        findings += _key(config)
        if probe:
            with read_scope() as session:
                peers = executors.find_peers(session, host.stored_tokens(config))
    except NotConfigured as exc:
        findings.append(Finding("database", Level.PROBLEM, str(exc), DATABASE_ADVICE))
        return Examination(tuple(findings), is_complete=False)
    except DBAPIError as exc:
        text = f"{safe_url}: {reason_of(exc)}"
        findings.append(Finding("database", Level.PROBLEM, text, DATABASE_ADVICE))
        return Examination(tuple(findings), is_complete=False)
    finally:
        unbind_engine()
    if probe:
        findings += executors.probe(peers, config)
    return Examination(tuple(findings), is_complete=True)


def _checks(config: Config, safe_url: str) -> tuple[Callable[[Session], Iterator[Finding]], ...]:
    return (
        partial(database.check_server, config=config, safe_url=safe_url),
        database.check_widths,
        database.check_clock,
        partial(database.check_nodes, config=config),
        partial(executors.check_executors, config=config),
        executors.check_jobs,
        executors.check_schedules,
        partial(executors.check_parameters, config=config),
        partial(executors.check_alarms, config=config),
        promises.check_promises,
        partial(limits.check_limits, config=config),
        partial(misfires.check_misfires, config=config),
        partial(rounds.check_rounds, config=config),
        partial(blackouts.check_blackouts, config=config),
        partial(calendars.check_calendars, config=config),
        partial(archive.check_archive, config=config),
        partial(backfills.check_backfills, config=config),
        database.check_runs,
        partial(database.check_commits, config=config),
        partial(database.check_token_of_nodes, config=config),
        partial(database.check_first_password, config=config),
        database.check_passwords,
    )


@check("key")
def _key(config: Config) -> Findings:
    """Check that the stored tokens, channels and secrets can be read with the application key."""
    try:
        sealed_tokens.check(config)
    except NotConfigured as exc:
        yield problem(str(exc), "the services do not start with another key")
    else:
        yield fine("the stored tokens, channels and secrets can be read")
