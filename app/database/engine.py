"""Engine and sessions of a process.

Transactions are short, and commit or roll back. Reads use ``read_scope``, writes ``session_scope`` or
``transact``. On SQLite a writing transaction starts as IMMEDIATE, so that it waits for the lock at the start
instead of failing in the middle.
"""

import logging
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import CursorResult, Engine, Executable, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from app.clock import SECOND_MS, Millis
from app.database import statement_times
from app.database.connections.answer_deadline import is_deadline
from app.database.connections.sqlite import BUSY_TIMEOUT_MS
from app.database.connections.sqlite_write_lock import QueuedConnection
from app.database.dialects.choice import dialect_of, dialect_of_url
from app.database.moves import follow
from app.database.promotion_mark import MOVED_MESSAGE, PAUSE_S
from app.database.urls import open_error, sqlite_file
from app.errors import NoDatabase
from app.models.base import use_zone
from app.runtime.wake_up import BACKFILLS, send_wake_up
from app.settings.config import Config
from app.settings.home import secret_key, stored_key
from app.settings.log_archive import use_mode
from app.settings.sealing import use_key

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: connections of an engine that stay open; further ones, up to XXL_JOB_THREADS, only while they are needed
ENGINE_POOL = 8
#: attempts at a transaction that lost a deadlock
ATTEMPTS = 5
#: longest pause before the second attempt, in seconds; it doubles with each. Nodes on several servers of
#: Galera, which finds their conflicts at the commit, would meet again and again without
REPEAT_S = 0.01
#: MySQL error codes and PostgreSQL SQLSTATEs of lost deadlocks, lock timeouts and NOWAIT; and of SQLite the
#: move to a server, to which this process has changed by then
_TRANSIENT = frozenset({1205, 1213, 1020, 3572, MOVED_MESSAGE})
_TRANSIENT_POSTGRESQL = frozenset({"40001", "40P01", "55P03"})
#: execution options of a transaction that writes
WRITING = {"sqlite_begin": "IMMEDIATE"}
#: marks a session whose transaction contains due fires
_DUE_FIRES = "due fires"
#: functions to call once the transaction is committed
_AT_COMMIT = "at_commit"
#: never set: waits for some seconds
pause = threading.Event().wait


class _Binding:
    """Engine of this process, and the factories of its sessions."""

    def __init__(self) -> None:
        #: settings of the engine; None: those of ``bind_for_reading``, or none
        self.config: Config | None = None
        self.engine: Engine | None = None
        self.home = Path()
        self.following = threading.Lock()
        self.writing: sessionmaker[Session] = sessionmaker(expire_on_commit=False, autoflush=False)
        self.reading: sessionmaker[Session] = sessionmaker(expire_on_commit=False, autoflush=False)


_binding = _Binding()


def engine_options(config: Config) -> dict[str, Any]:
    """Return the options of ``create_engine`` for Flask-SQLAlchemy and the workers."""
    # Texts of errors get into the log, and parameters are hashes of passwords, code, and input of users.
    options: dict[str, Any] = {"pool_size": ENGINE_POOL, "max_overflow": config.threads}
    options["hide_parameters"] = True
    return options | dialect_of_url(config.database_url).engine_options(config)


def make_engine(
    config: Config,
    connect_args: Mapping[str, Any] | None = None,
    *,
    execution_options: Mapping[str, Any] | None = None,
) -> Engine:
    """Return a new engine for the configured URL; opens nothing. ``connect_args`` are for the driver.

    SQLite is set up when it is bound, since that creates its file.
    """
    options = engine_options(config)
    options["connect_args"] |= connect_args or {}
    engine = create_engine(config.database_url, execution_options=execution_options or {}, **options)
    if not config.is_sqlite:
        dialect_of(engine).watch(engine, config)
    return engine


def bind_engine(config: Config, engine: Engine | None = None) -> Engine:
    """Set the engines of this process; return the bound one if it is of the same settings.

    A second engine would have a pool and a write queue of its own, and no listeners of the first.
    ``engine``: one that Flask-SQLAlchemy made with ``engine_options``; it replaces the bound one.
    """
    if engine is None and _binding.engine is not None and _binding.config == config:
        return _binding.engine
    engine = engine or make_engine(config)
    dialect_of(engine).watch(engine, config)
    use_zone(config.time_zone)
    use_mode(config.archive.mode)
    use_key(partial(secret_key, config))
    statement_times.watch(engine)
    if not event.contains(Session, "after_commit", _wake_dispatchers):
        event.listen(Session, "after_commit", _wake_dispatchers)
        event.listen(Session, "after_soft_rollback", _forget_due_fires)
        event.listen(Session, "after_commit", _call_committed)
        event.listen(Session, "after_soft_rollback", _forget_calls)
    _replace_engine(engine)
    _binding.config = config
    _binding.home = config.home
    statement_times.limit.slow_s = config.slow_statement_ms / 1000 or float("inf")
    _binding.writing.configure(bind=engine.execution_options(**WRITING))
    _binding.reading.configure(bind=engine)
    return engine


def bind_for_reading(config: Config) -> Engine:
    """Set an engine of this process whose transactions are read-only; creates neither database nor key."""
    unbind_engine()
    use_zone(config.time_zone)
    use_key(partial(stored_key, config))
    file = sqlite_file(config.database_url)
    if file is not None:
        try:
            file.stat()
        except FileNotFoundError as exc:
            raise NoDatabase(f"XXL_JOB_DATABASE_URL: there is no database {file}") from exc
        except OSError as exc:
            raise open_error(config.database_url, str(exc.strerror)) from exc
        wait_s = BUSY_TIMEOUT_MS / 1000
        connect = partial(sqlite3.connect, f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=wait_s)
        engine = create_engine(config.database_url, creator=connect, poolclass=NullPool, hide_parameters=True)
    else:
        engine = make_engine(config, **dialect_of_url(config.database_url).read_only_options)
    _binding.engine = engine
    _binding.reading.configure(bind=engine)
    return engine


def follow_move(config: Config) -> None:
    """Bind the engine of this process to the database its own has moved to; work in progress is retried.

    The rows are the same there, so what this process has in memory stays valid. Raises NotConfigured.
    """
    with _binding.following:
        if _binding.config is not None and not _binding.config.is_sqlite:
            return
        bind_engine(follow(config))


def bound_engine() -> Engine:
    """Return the engine of this process."""
    assert _binding.engine is not None
    return _binding.engine


def unbind_engine() -> None:
    """Close all connections of this process."""
    _replace_engine(None)


def _replace_engine(engine: Engine | None) -> None:
    """Set the engine, then close the connections of the one before."""
    former = _binding.engine
    _binding.config, _binding.engine = None, engine
    if former is not None:
        former.dispose()


@contextmanager
def session_scope() -> Iterator[Session]:
    """Open a writing transaction: commits at the end, rolls back on an error.

    It must not contain HTTP requests, mail or waiting.
    """
    with _binding.writing() as session, session.begin():
        yield session


@contextmanager
def read_scope() -> Iterator[Session]:
    """Open a read-only transaction; on SQLite it never waits for a writer."""
    with _binding.reading() as session:
        yield session


def transact(
    work: Callable[[Session], T], *, scope: Callable[[], AbstractContextManager[Session]] = session_scope
) -> T:
    """Run ``work`` in a writing transaction; retry it after a deadlock, and once if its connection was lost.

    ``work`` must not have any effects outside the transaction, which ``scope`` opens.
    """
    for attempt in range(1, ATTEMPTS + 1):
        is_committing = False
        try:
            with scope() as session:
                answer = work(session)
                is_committing = True
            return answer
        except DBAPIError as exc:
            # A commit without an answer may have happened.
            is_to_repeat = lost_connection(exc) and attempt == 1 and not is_committing
            if attempt == ATTEMPTS or not (is_to_repeat or is_transient(exc)):
                raise
            logger.warning("transaction repeated attempt=%s reason=%s", attempt, exc.orig)
            pause_before_repeating(attempt)
    raise AssertionError("not reached")


def pause_before_repeating(attempt: int) -> None:
    """Wait for a random time after a failed attempt, outside of the transaction."""
    pause(random.uniform(0, REPEAT_S * 2 ** (attempt - 1)))  # nosec B311  # no secret


def is_transient(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed if it is retried at once."""
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return code in _TRANSIENT or getattr(error.orig, "sqlstate", None) in _TRANSIENT_POSTGRESQL


def lost_connection(error: DBAPIError) -> bool:
    """Whether a connection was lost, so that another one may do the same work.

    After a wait for an answer that took too long the server may still be at it, and the next wait be as long.
    """
    return error.connection_invalidated and not is_deadline(error.orig)


def announce_due_fires(session: Session) -> None:
    """Mark the transaction as containing due fires: its commit wakes the dispatchers that share the home."""
    session.info[_DUE_FIRES] = True


def announce_backfills(session: Session) -> None:
    """Wake the monitors that share the home when the transaction is committed, so that backfills go on."""
    call_at_commit(session, partial(send_wake_up, _binding.home, BACKFILLS))


def _wake_dispatchers(session: Session) -> None:
    if session.info.pop(_DUE_FIRES, False):
        send_wake_up(_binding.home)


def _forget_due_fires(session: Session, _transaction: object) -> None:
    session.info.pop(_DUE_FIRES, None)


def call_at_commit(session: Session, function: Callable[[], None]) -> None:
    """Call a function once the transaction is committed: once if it is repeated, not if it is undone."""
    session.info.setdefault(_AT_COMMIT, []).append(function)


def _call_committed(session: Session) -> None:
    for function in session.info.pop(_AT_COMMIT, ()):
        function()


def _forget_calls(session: Session, _transaction: object) -> None:
    session.info.pop(_AT_COMMIT, None)


def claims_paused(session: Session, *, now_ms: Millis) -> bool:
    """Whether a promotion is about to move this database, so that nothing more may be sent from it."""
    raw = session.connection().connection.driver_connection
    left_ms = raw.mark * SECOND_MS - now_ms if isinstance(raw, QueuedConnection) else 0
    return 0 < left_ms <= 2 * PAUSE_S * SECOND_MS  # A longer pause is that of a killed promotion.


def affected(session: Session, statement: Executable) -> int:
    """Execute an UPDATE or DELETE; return how many rows it changed."""
    result = cast(
        "CursorResult[Any]",
        session.execute(statement, execution_options={"synchronize_session": False}),
    )
    return result.rowcount
