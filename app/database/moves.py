"""Moved databases: the server that has the content of a SQLite file, and the switch of a process to it.

``promote`` writes the URL of the server, sealed, beside the mark of ``app.database.promotion_mark``.
"""

import logging
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.database.dialects.choice import plain_engine
from app.database.promotion_mark import MOVED
from app.database.urls import sqlite_file, without_password
from app.errors import NotConfigured
from app.settings.config import Config
from app.settings.home import stored_key
from app.settings.sealing import CannotUnseal, Sealer

logger = logging.getLogger(__name__)

#: table with the one row of a promotion, in the SQLite database only
PROMOTION_TABLE = "xxl_job_promotion"
#: schema revision of a SQLite database that has moved; no version of this program starts on it
MOVED_REVISION = "moved"
#: schema revision of a server's database while it is filled, followed by the id of the promotion
FILLING_REVISION = "promoting-"


@dataclass(frozen=True, slots=True)
class Move:
    """Move of the content of a SQLite database to a server."""

    promotion_id: str
    #: URL of the new database, sealed with the application key
    sealed_url: str
    #: schema revision at the move
    revision: str


def restart_program() -> NoReturn:
    """Replace this process by a new start of the same program, with the same process id."""
    logger.warning("database moved, restarting on the new one")
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed
        stream.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def find_move(database: Path) -> Move | None:
    """Return where the content of a SQLite file has moved; None: it has not, or there is no such file."""
    try:
        if not database.is_file():
            return None
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != MOVED:
                return None
            statement = f"SELECT promotion_id, sealed_url, revision FROM {PROMOTION_TABLE}"  # nosec B608
            return Move(*connection.execute(statement).fetchone())
    except (sqlite3.Error, OSError):  # The check of the database reports it.
        return None


def follow(config: Config) -> Config:
    """Return the settings with the new database if the configured SQLite file has moved; else unchanged.

    So services whose settings still name the file go on. Raises NotConfigured if the URL cannot be unsealed.
    """
    file = sqlite_file(config.database_url)
    move = find_move(file) if file is not None else None
    if move is None:
        return config
    url = url_of(move, config)
    open_target(url, move)
    display_url = without_password(url)
    logger.warning(
        "database moved from=%s to=%s hint=set XXL_JOB_DATABASE_URL to the new one", file, display_url
    )
    sources = {**config.sources, "XXL_JOB_DATABASE_URL": f"{file}, which has moved"}
    return replace(config, database_url=url, sources=sources)


def url_of(move: Move, config: Config) -> str:
    """Return the URL of the new database. Raises NotConfigured without the right key, and makes none."""
    try:
        return Sealer(partial(stored_key, config)).unseal(move.sealed_url)
    except CannotUnseal as exc:
        raise NotConfigured(
            f"XXL_JOB_DATABASE_URL: {sqlite_file(config.database_url)} has moved to another database, whose"
            " URL was encrypted with another application key; set the URL of the new database"
        ) from exc


def open_target(url: str, move: Move) -> None:
    """Give the new database its schema revision, unless that is done; until then no service starts on it.

    Does nothing while the server is away: the check of the database reports that.
    """
    engine = plain_engine(url)
    statement = text("UPDATE alembic_version SET version_num = :revision WHERE version_num = :filling")
    values = {"revision": move.revision, "filling": FILLING_REVISION + move.promotion_id}
    try:
        with engine.begin() as connection:
            connection.execute(statement, values)
    except SQLAlchemyError as exc:
        logger.warning("new database not opened error=%s", " ".join(str(exc).split())[:200])
