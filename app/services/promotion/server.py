"""Target database of a promotion: checks, tables, and a lock against services until the move."""

from dataclasses import replace

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.dialects.choice import dialect_of_url
from app.database.engine import make_engine
from app.database.moves import FILLING_REVISION
from app.database.urls import sqlite_file
from app.errors import Conflict, NotConfigured
from app.models.node import SKEW_MAX_MS
from app.services.installation.upgrade import upgrade
from app.settings.config import ANSWER_MAX_S, SETTINGS, Config
from app.store.copies import promotion_target as target
from app.store.copies import schema, whole_tables
from app.store.nodes import nodes

#: tables in which a used installation has rows
USED = ("xxl_job_info", "xxl_job_log", "xxl_job_user", "xxl_job_group", "xxl_job_fire", "xxl_job_audit")


def read_url(text: str) -> str:
    """Return the URL of a server's database as the setting takes it. Raises NotConfigured."""
    try:
        url: str = SETTINGS["XXL_JOB_DATABASE_URL"][1](text.strip())
    except ValueError as exc:
        raise NotConfigured(f"new database: {exc}") from exc
    if sqlite_file(url) is not None:
        raise NotConfigured("new database: expected the URL of MySQL, MariaDB or PostgreSQL, not of SQLite")
    return url


def connect(config: Config) -> Engine:
    """Return an engine for the server, which may take long to check all rows; nothing is opened yet."""
    patient = replace(config, database_answer_s=ANSWER_MAX_S)
    return make_engine(patient, dialect_of_url(config.database_url).exact_arguments())


def prepare(engine: Engine, promotion_id: str) -> None:
    """Create the tables in an empty database, without any row, and close it to services.

    What a promotion that was broken off has left is removed. Raises Conflict if the database is in use,
    NotConfigured if its clock is off.
    """
    with engine.begin() as connection:
        _check_clock(connection)
        revision = schema.find_revision(connection)
        if revision is not None and revision.startswith(FILLING_REVISION):
            target.drop_own_tables(connection)
        else:
            _require_unused(connection)
    upgrade(engine.url.render_as_string(hide_password=False))
    with engine.begin() as connection:
        target.empty_tables(connection, whole_tables.own_tables(connection))
        schema.change_revision(connection, FILLING_REVISION + promotion_id)


def _check_clock(connection: Connection) -> None:
    before_ms = now_ms()
    with Session(connection) as session:
        database_ms = nodes.database_now_ms(session) or before_ms
    if not before_ms - SKEW_MAX_MS <= database_ms <= now_ms() + SKEW_MAX_MS:
        raise NotConfigured(
            f"the clock of the new database differs by {database_ms - now_ms()} ms from that of this host;"
            " set both clocks, or nothing would fire"
        )


def _require_unused(connection: Connection) -> None:
    tables = whole_tables.own_tables(connection)
    for name, rows in whole_tables.count_rows(connection, [name for name in USED if name in tables]).items():
        if rows:
            raise Conflict(f"the new database is in use: {name} has {rows} rows; create an empty database")
