"""Promotion of an installation at rest: everything arrives, and the old database is closed."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.clock import now_ms
from app.container import scan
from app.database import promotion_mark, single_statement
from app.database.engine import (
    bind_engine,
    claims_paused,
    follow_move,
    read_scope,
    session_scope,
    transact,
    unbind_engine,
)
from app.database.moves import find_move, follow
from app.errors import Conflict, NotConfigured
from app.models.user import User
from app.services.installation.preconditions import check_schema
from app.services.installation.promotion_leftovers import clear_leftovers, database_file, only_one
from app.services.promotion import promoting
from app.services.promotion.promoting import has_moved, promote
from app.settings.config import Config
from app.settings.sealing import sealer
from app.store.copies import promotion_source as source
from tests.support.databases import ROOT
from tests.support.eventually import eventually
from tests.support.promotion import content, fill, on_servers

pytestmark = on_servers
#: the same on every kind of server
on_one = pytest.mark.databases("mariadb")

EARLIER_STEPS = ("prepare", "copy", "follow", "switch", "fence")


def quiet(_table: str, _done: int, _total: int) -> None:
    """Show no progress."""


def execute(engine: Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def add_user(config: Config, name: str) -> None:
    """Insert a row with the product's own transaction."""
    bind_engine(config)
    try:
        with session_scope() as session:
            session.add(User(username=name, password="x", role=0))
    finally:
        unbind_engine()


def test_every_table_arrives_as_it_was(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    fill(old_engine)
    before = content(old_engine)
    assert all(len(rows) == 3 for rows in before.values())
    done = promote(old, empty_database, quiet)
    assert content(new_engine) == before
    assert done.rows == 3 * len(before)
    assert not source.is_recording(source.connect(database_file(old)))


def test_afterwards_only_the_new_database_is_used(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    execute(old_engine, "INSERT INTO xxl_job_user VALUES (7, 'ann', 'x', 0, NULL, 0, '', '', 0, NULL)")
    execute(old_engine, "DELETE FROM xxl_job_user")
    bind_engine(old)
    sealed = sealer().seal("a secret")
    promote(old, empty_database, quiet)

    with pytest.raises(DBAPIError, match="moved to another one"):
        add_user(old, "bob")
    with old_engine.connect() as connection, pytest.raises(IntegrityError, match="has moved"):
        connection.execute(text("UPDATE xxl_job_lock SET lock_name = lock_name"))  # by any other program
    new = follow(old)
    assert new.database_url == empty_database
    add_user(new, "bob")
    assert sealer().unseal(sealed) == "a secret"
    with new_engine.connect() as connection:
        # an id is never given twice, not even that of a row that was deleted before
        assert connection.execute(text("SELECT id, username FROM xxl_job_user")).all() == [(8, "bob")]
    assert "has not completed a scan" in scan.find_problem(old)
    check_schema(new_engine)
    with pytest.raises(NotConfigured, match="has moved to another one"):
        check_schema(old_engine)
    assert has_moved(old, empty_database)
    with pytest.raises(Conflict, match="moved to another database"):
        has_moved(old, empty_database + "_other")
    with pytest.raises(NotConfigured, match="another application key; set the URL"):
        follow(Config(home=old.home, database_url=old.database_url, secret_key="another" * 8))


@on_one
def test_a_running_program_goes_on_with_the_new_database(
    old: Config, new_engine: Engine, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind_engine(old)
    monkeypatch.setattr(promotion_mark._process, "action", lambda: None)
    promotion_mark.when_moved(partial(follow_move, old))
    promote(old, empty_database, quiet)
    try:
        # one that only reads, such as a scheduler without a due job, notices too
        with pytest.raises(DBAPIError, match="moved to another one"), read_scope() as session:
            session.execute(text("SELECT 1"))
        transact(lambda session: session.add(User(username="ann", password="x", role=0)))
        with read_scope() as session:
            assert session.scalars(text("SELECT username FROM xxl_job_user")).all() == ["ann"]
    finally:
        unbind_engine()
    with new_engine.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM xxl_job_user")).scalar() == 1


@on_one
def test_a_single_statement_is_read_from_the_new_database(
    old: Config, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind_engine(old)
    monkeypatch.setattr(promotion_mark._process, "action", lambda: None)
    promotion_mark.when_moved(partial(follow_move, old))
    transact(lambda session: session.add(User(username="ann", password="x", role=0)))
    promote(old, empty_database, quiet)
    try:
        assert [row[0] for row in single_statement.read(select(User.username), {})] == ["ann"]
    finally:
        unbind_engine()


@on_one
def test_settings_of_another_installation_are_refused(
    old: Config, old_engine: Engine, empty_database: str
) -> None:
    with pytest.raises(NotConfigured, match="application key cannot be read"):
        promote(replace(old, secret_key=""), empty_database, quiet)
    columns = "(name, kind, started_ms, heartbeat_ms, version, key_fingerprint)"
    execute(old_engine, f"INSERT INTO xxl_job_node {columns} VALUES ('n', 'workers', 1, 1, '1', 'another')")
    with pytest.raises(NotConfigured, match="use another application key; run this with their settings"):
        promote(old, empty_database, quiet)


def test_no_run_is_claimed_during_the_pause(old: Config) -> None:
    bind_engine(old)
    try:
        with closing(source.connect(database_file(old))) as connection:
            source.pause_claims(connection, until_s=2_000)
        with session_scope() as session:
            assert claims_paused(session, now_ms=1_999_999)
            assert not claims_paused(session, now_ms=2_000_000)
            assert not claims_paused(session, now_ms=1_900_000)  # the clock was set back
    finally:
        unbind_engine()


@on_one
def test_what_changes_during_the_copy_arrives_too(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    fill(old_engine)

    def change(table: str, _done: int, _total: int) -> None:
        """Change rows of the table that has been copied, and of others."""
        if table == "xxl_job_lock":
            execute(old_engine, "UPDATE xxl_job_lock SET lock_name = 'renamed' WHERE lock_name LIKE '%ünï%'")
        if table == "xxl_job_tag":
            execute(old_engine, "DELETE FROM xxl_job_tag WHERE id = (SELECT MIN(id) FROM xxl_job_tag)")
            execute(old_engine, "UPDATE xxl_job_log SET handle_code = 200")
            execute(
                old_engine,
                "UPDATE xxl_job_user SET id = id + 1000 WHERE id = (SELECT MAX(id) FROM xxl_job_user)",
            )

    execute(old_engine, "DELETE FROM xxl_job_lock WHERE rowid > 1")
    promote(old, empty_database, change)
    after = content(new_engine)
    assert after == content(old_engine)
    assert after["xxl_job_lock"] == [("renamed",)]


@on_one
def test_a_unique_value_that_passes_to_another_row_during_the_copy(
    old: Config,
    old_engine: Engine,
    new_engine: Engine,
    empty_database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.services.promotion.copying.CHUNK", 1)
    fill(old_engine)

    def swap(table: str, done: int, _total: int) -> None:
        if (table, done) == ("xxl_job_user", 1):
            execute(old_engine, "DELETE FROM xxl_job_user WHERE id = (SELECT MIN(id) FROM xxl_job_user)")
            execute(old_engine, "UPDATE xxl_job_user SET username = :name", name="taken")

    with old_engine.begin() as connection:
        connection.execute(text("DELETE FROM xxl_job_user WHERE id > (SELECT MIN(id) FROM xxl_job_user)"))
        connection.execute(text("UPDATE xxl_job_user SET username = 'taken'"))
        connection.execute(
            text("INSERT INTO xxl_job_user (id, username, password, role) VALUES (900000, 'free', 'x', 0)")
        )
    promote(old, empty_database, swap)
    assert content(new_engine) == content(old_engine)


@on_one
def test_a_row_that_does_not_fit_is_named(old: Config, old_engine: Engine, empty_database: str) -> None:
    fill(old_engine, 1)
    execute(old_engine, "UPDATE xxl_job_log SET handle_msg = CAST(x'ff41' AS TEXT)")
    with pytest.raises(Conflict, match=r"^xxl_job_log, id \d+: handle_msg is not valid UTF-8"):
        promote(old, empty_database, quiet)
    assert_goes_on(old)


@pytest.mark.databases("mariadb")
def test_failed_logins_of_strangers_refuse_nothing(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    fill(old_engine, 1)
    counted = ", ".join(f"('account:{name}', 1, 1, 1)" for name in ("jose", "josé", "Jose"))
    execute(
        old_engine, f"INSERT INTO xxl_job_throttle (subject, failures, first_ms, last_ms) VALUES {counted}"
    )
    promote(old, empty_database, quiet)
    with new_engine.connect() as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM xxl_job_throttle")) == 0


def test_limits_of_one_kind_of_server(old: Config, old_engine: Engine, empty_database: str) -> None:
    if empty_database.startswith("postgresql"):
        statement, table, problem = "UPDATE xxl_job_log SET handle_msg = CAST(x'6100' AS TEXT)", "log", "NUL"
    else:
        statement = (
            "INSERT INTO xxl_job_user (id, username, password, role) VALUES (1,'ann','x',0),(2,'Ann','x',0)"
        )
        table, problem = "user", "Duplicate entry 'Ann'"
    fill(old_engine, 1)
    execute(old_engine, statement)
    with pytest.raises(Conflict, match=rf"^xxl_job_{table}, id \d+: .*{problem}"):
        promote(old, empty_database, quiet)
    assert_goes_on(old)


def test_a_database_in_use_is_refused(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    execute(new_engine, "CREATE TABLE xxl_job_info (id INT)")
    execute(new_engine, "INSERT INTO xxl_job_info VALUES (1)")
    with pytest.raises(Conflict, match="is in use: xxl_job_info has 1 rows"):
        promote(old, empty_database, quiet)
    assert_goes_on(old)


def test_a_table_of_others_on_the_server_stays(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    execute(new_engine, "CREATE TABLE xxl_job_costs (id INT)")
    execute(new_engine, "INSERT INTO xxl_job_costs VALUES (7)")
    promote(old, empty_database, quiet)
    with new_engine.connect() as connection:
        assert connection.scalar(text("SELECT id FROM xxl_job_costs")) == 7


def assert_goes_on(old: Config) -> None:
    """The old database can be written, and nothing of the promotion is left in it."""
    assert find_move(database_file(old)) is None
    add_user(old, f"after {now_ms()}")
    with closing(source.connect(database_file(old))) as connection:
        assert not source.is_recording(connection)
        assert connection.execute("SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (
            0,
        )
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def _promote_until(old: Config, url: str, last_step: str) -> None:
    """Promote and die at a step as by kill -9: nothing is cleaned up."""

    def step(name: str) -> None:
        if name == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    promote(old, url, quiet, step)


@pytest.mark.parametrize(
    "last_step",
    ["mark", *(pytest.param(name, marks=pytest.mark.extensive) for name in EARLIER_STEPS)],
)
def test_killed_before_the_move_the_old_database_goes_on(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str, last_step: str
) -> None:
    fill(old_engine)
    run_and_kill(old, empty_database, last_step)
    assert find_move(database_file(old)) is None
    assert follow(old) == old
    with sqlite3.connect(database_file(old)) as connection:
        paused_until_s = connection.execute("PRAGMA user_version").fetchone()[0]
        assert paused_until_s <= now_ms() // 1000 + promotion_mark.PAUSE_S
    add_user(old, "after the kill")
    with pytest.raises(NotConfigured, match="duetime promote is filling|no tables of this program"):
        check_schema(new_engine)
    clear_leftovers(old)
    with closing(source.connect(database_file(old))) as connection:
        assert not source.is_recording(connection)
    # the next attempt starts from the beginning
    promote(old, empty_database, quiet)
    assert content(new_engine) == content(old_engine)


def run_and_kill(old: Config, url: str, last_step: str) -> None:
    process = multiprocessing.get_context("fork").Process(
        target=_promote_until, args=(old, url, last_step), daemon=True
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@on_one
def test_killed_after_the_move_the_new_database_goes_on(
    old: Config, old_engine: Engine, new_engine: Engine, empty_database: str
) -> None:
    fill(old_engine)
    run_and_kill(old, empty_database, "moved")
    with pytest.raises(NotConfigured, match="duetime promote is filling"):
        check_schema(new_engine)
    new = follow(old)  # as each start does
    check_schema(new_engine)
    add_user(new, "on the new one")
    assert has_moved(old, empty_database)


@on_one
def test_a_record_of_changes_stays_while_its_promotion_runs(old: Config, empty_database: str) -> None:
    with closing(source.connect(database_file(old))) as connection:
        source.start_recording(connection, source.find_tables(connection))
        with only_one(old.home):
            clear_leftovers(old)
            assert source.is_recording(connection)
            with pytest.raises(Conflict, match="another promotion is running"):
                promote(old, empty_database, quiet)
        clear_leftovers(old)
        assert not source.is_recording(connection)


@on_one
def test_a_fence_that_takes_too_long_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, database_kind: str
) -> None:
    ended = threading.Event()
    codes = list[int]()
    monkeypatch.setattr(promoting.os, "_exit", lambda code: (codes.append(code), ended.set()))
    with promoting._at_most(0.01, tmp_path / "old.db"):
        eventually(ended.is_set)
    assert codes == [promoting.EXIT_FENCE]
    assert "old.db goes on" in capsys.readouterr().err


@on_one
def test_it_ends_with_standard_error_closed_too(database_kind: str) -> None:
    code = (
        "import threading; from pathlib import Path; from app.services.promotion.promoting import _at_most\n"
        "with _at_most(0.01, Path('old.db')): threading.Event().wait(30)"
    )
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == promoting.EXIT_FENCE
