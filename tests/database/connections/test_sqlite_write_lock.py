"""Write queue: first come, first served; a turn is passed on however a transaction ends."""

import gc
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from app.database.connections import sqlite
from app.database.connections.sqlite_write_lock import WriteQueue
from app.database.engine import bind_engine, session_scope
from app.settings.config import Config
from tests.support.eventually import eventually

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def short_wait(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)


def test_threads_get_their_turns_in_order() -> None:
    queue, served = WriteQueue(), list[int]()

    def wait(number: int) -> None:
        assert queue.acquire(30)
        served.append(number)
        queue.release()

    assert queue.acquire(0)
    threads = []
    for number in range(20):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        eventually(lambda: len(queue._waiting) == len(threads))
    queue.release()
    for thread in threads:
        thread.join()
    assert served == list(range(20))


def test_a_timed_out_wait_leaves_the_queue_to_the_others() -> None:
    queue = WriteQueue()
    assert queue.acquire(0)
    assert not queue.acquire(0.001)
    queue.release()
    assert queue.acquire(0)


def test_a_nested_writing_transaction_fails_as_locked_and_spares_the_outer_one(
    short_wait: None,
) -> None:
    with session_scope() as outer:
        outer.execute(text("UPDATE xxl_job_lock SET lock_name = 'outer'"))
        with pytest.raises(OperationalError, match="database is locked"), session_scope() as inner:
            inner.connection()
    with session_scope() as session:
        assert session.execute(text("SELECT lock_name FROM xxl_job_lock")).scalars().all() == ["outer"]


def fail_to_commit(connection: Connection) -> None:
    for statement in (
        "CREATE TABLE a (id INTEGER PRIMARY KEY)",
        "CREATE TABLE b (a_id REFERENCES a DEFERRABLE INITIALLY DEFERRED)",
    ):
        connection.execute(text(statement))
    connection.execute(text("INSERT INTO b VALUES (7)"))
    with pytest.raises(Exception, match="FOREIGN KEY"):
        connection.commit()
    connection.rollback()


def forget(connection: Connection) -> None:
    """Do nothing; the caller drops the connection."""


@pytest.mark.filterwarnings("ignore:The garbage collector")
@pytest.mark.parametrize(
    "end",
    [Connection.commit, Connection.rollback, Connection.close, Connection.invalidate, fail_to_commit, forget],
    ids=["commit", "rollback", "close", "invalidate", "failed commit", "forgotten"],
)
def test_a_turn_is_passed_on_however_the_transaction_ends(
    short_wait: None, config: Config, end: Callable[[Connection], None]
) -> None:
    engine = bind_engine(config)
    connection = engine.execution_options(sqlite_begin="IMMEDIATE").connect()
    connection.execute(text("UPDATE xxl_job_lock SET lock_name = lock_name"))
    end(connection)
    del connection
    gc.collect()
    with session_scope() as session:
        session.execute(text("UPDATE xxl_job_lock SET lock_name = lock_name"))
