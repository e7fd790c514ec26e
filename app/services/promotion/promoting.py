"""Promotion: moves a SQLite database to a server while firing goes on. Steps and crashes: docs/promote.md."""

import logging
import os
import secrets
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, make_url
from sqlalchemy.exc import DBAPIError

from app.clock import monotonic_ms, now_ms
from app.database.dialects.choice import dialect_of
from app.database.faults import reason_of
from app.database.moves import Move, find_move, open_target, url_of
from app.database.opening import known_parameters
from app.database.promotion_mark import PAUSE_S
from app.database.urls import without_password
from app.errors import Conflict, NotConfigured
from app.services.installation.promotion_leftovers import database_file, only_one
from app.services.installation.sealed_tokens import place_of_key
from app.services.promotion import server
from app.services.promotion.copying import Copier, Progress
from app.settings.config import Config
from app.settings.home import stored_key
from app.settings.sealing import Sealer
from app.store.copies import promotion_source as source
from app.store.copies.upgrade_lock import folder_lock

logger = logging.getLogger(__name__)

#: changes copied in one round after which the rest is small enough for the fence
FEW_CHANGES = 200
#: rounds of following; more mean that the server is slower than the changes
ROUNDS_MAX = 50
#: how long sends in flight are waited for
DRAIN_S = 4.0
DRAIN_CHECK_S = 0.02
#: longest fence, in which nothing else can write; then this process ends, and the fence with it
FENCE_MAX_S = 8.0
EXIT_FENCE = 2


@dataclass(frozen=True, slots=True)
class PromotionResult:
    """What a promotion did; times in milliseconds."""

    target: str
    rows: int
    took_ms: int
    #: how long claims were paused
    paused_ms: int
    #: how long nothing was written
    fence_ms: int


def promote(
    config: Config, url: str, progress: Progress, step: Callable[[str], None] = lambda _: None
) -> PromotionResult:
    """Move the SQLite database of the settings to the server at ``url``.

    Until the last step the old one goes on. ``step`` is called with the name of each step. Raises Conflict
    (NotCopied) if a row cannot be copied or the new database is in use, NotConfigured if a database cannot be
    used.
    """
    database = database_file(config)
    sealer = Sealer(partial(stored_key, config))
    with known_parameters(url):
        engine = server.connect(replace(config, database_url=url))
    try:
        with known_parameters(url):
            server_connection = engine.connect()
        with server_connection:
            dialect_of(server_connection).require_usable(server_connection)
        with only_one(config.home), folder_lock(database), closing(source.connect(database)) as connection:
            _require_key_of_services(config, connection, sealer.key_fingerprint)
            return _Promotion(database, connection, engine, sealer).run(progress, step)
    except DBAPIError as exc:
        raise NotConfigured(f"{without_password(url)}: {reason_of(exc)}; {database} goes on") from exc
    except sqlite3.Error as exc:
        raise NotConfigured(f"{database}: {exc}; it goes on") from exc
    finally:
        engine.dispose()


def has_moved(config: Config, url: str) -> bool:
    """Whether the database of the settings has moved to ``url`` already; then services can use that.

    Raises Conflict if it has moved to another one, NotConfigured if the settings have another key.
    """
    move = find_move(database_file(config))
    if move is None:
        return False
    if make_url(url_of(move, config)) != make_url(url):
        raise Conflict(f"{database_file(config)} has moved to another database; see the services' log")
    open_target(url, move)
    return True


def _require_key_of_services(config: Config, connection: sqlite3.Connection, fingerprint: str) -> None:
    """Raise NotConfigured if the services could not read what is sealed with the key of these settings."""
    theirs = source.find_key_fingerprint(connection)
    if theirs not in ("", fingerprint):
        raise NotConfigured(
            f"{place_of_key(config)}: the services of this database use another application key;"
            " run this with their settings (--env-file)"
        )


class _Promotion:
    """One promotion, with its connections."""

    def __init__(
        self, database: Path, connection: sqlite3.Connection, engine: Engine, sealer: Sealer
    ) -> None:
        self._database = database
        self._connection = connection
        self._engine = engine
        self._url = engine.url.render_as_string(hide_password=False)
        self._move = Move(
            promotion_id=secrets.token_hex(6),
            sealed_url=sealer.seal(self._url),
            revision=source.find_revision(connection),
        )

    def run(self, progress: Progress, step: Callable[[str], None]) -> PromotionResult:
        started_ms = monotonic_ms()
        step("prepare")
        server.prepare(self._engine, self._move.promotion_id)
        tables = source.find_tables(self._connection)
        copier = Copier(self._connection, self._engine, tables)
        source.start_recording(self._connection, tables)
        try:
            step("copy")
            rows = copier.copy_all(progress)
            step("follow")
            _catch_up(copier)
            step("switch")
            paused_ms, fence_ms = self._switch(copier, step)
        finally:
            source.stop_recording(self._connection)
        total_ms = monotonic_ms() - started_ms
        return PromotionResult(without_password(self._url), rows, total_ms, paused_ms, fence_ms)

    def _switch(self, copier: Copier, step: Callable[[str], None]) -> tuple[int, int]:
        """Pause claims, let sends end, then hold the write lock for the last changes and the mark."""
        paused_at = monotonic_ms()
        try:
            source.pause_claims(self._connection, until_s=now_ms() // 1000 + PAUSE_S)
            self._drain(copier)
            fenced_at = monotonic_ms()
            with _at_most(FENCE_MAX_S, self._database), source.writing(self._connection):
                step("fence")
                copier.follow()
                with self._engine.connect() as connection:
                    copier.compare(connection)
                    copier.continue_ids(connection)
                    connection.commit()
                source.mark_moved(self._connection, self._move, now_ms=now_ms())
                step("mark")
        except BaseException:
            if find_move(self._database) is None:  # An interrupt may come just after the commit.
                source.pause_claims(self._connection, until_s=0)
                raise
        fence_ms = monotonic_ms() - fenced_at
        step("moved")
        open_target(self._url, self._move)
        return monotonic_ms() - paused_at, fence_ms

    def _drain(self, copier: Copier) -> None:
        """Wait until the outcomes of all sends are recorded, DRAIN_S at most, and copy meanwhile.

        What is still open then is settled on the new database as after a kill.
        """
        until = time.monotonic() + DRAIN_S
        while source.count_sending(self._connection) and time.monotonic() < until:
            copier.follow()
            threading.Event().wait(DRAIN_CHECK_S)
        copier.follow()


def _catch_up(copier: Copier) -> None:
    """Copy changes until few are left. Raises Conflict if they do not become few."""
    for _ in range(ROUNDS_MAX):
        if copier.follow() <= FEW_CHANGES:
            return
    raise Conflict("the new database takes changes more slowly than they are made; the old one goes on")


@contextmanager
def _at_most(seconds: float, database: Path) -> Iterator[None]:
    """End this process if the block takes longer, because a server that hangs would hold all writers back."""

    def give_up() -> None:
        try:
            sys.stderr.write(
                f"error: the last step took more than {seconds:g} s: the new database hangs, is slow,"
                f" or has too many rows to be counted in that time; {database} goes on\n"
            )
            sys.stderr.flush()
        finally:  # Standard error may be closed.
            os._exit(EXIT_FENCE)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
