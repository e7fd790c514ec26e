"""Poolers in front of PostgreSQL: what is refused at the start, and that the rest works through them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app.database.connections import postgresql
from app.database.connections.poolers import Pooling, find_pooling
from app.database.dialects.choice import plain_engine
from app.database.engine import bind_engine, make_engine, session_scope, unbind_engine
from app.database.opening import check_database
from app.errors import NotConfigured
from app.services.doctor.examination import examine
from app.services.installation.upgrade import upgrade
from app.settings.config import Config
from app.store.copies.upgrade_lock import upgrade_lock
from tests.support.pooler import can_follow_statements, pooler

pytestmark = [pytest.mark.databases("postgresql"), pytest.mark.pgbouncer]

SETTINGS = "SELECT current_setting('lock_timeout'), current_setting('random_page_cost')"


@pytest.fixture
def transaction_mode(database_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of the migrated database through a pooler in transaction mode that follows no statements."""
    with pooler(database_url, tmp_path, mode="transaction") as url:
        yield url


@pytest.fixture
def session_mode(database_url: str, tmp_path: Path) -> Iterator[str]:
    with pooler(database_url, tmp_path, mode="session") as url:
        yield url


@contextmanager
def traffic(engine: Engine) -> Iterator[None]:
    """Keep transactions of other connections going, which take and leave server processes at any time."""
    ended = threading.Event()

    def work() -> None:
        with engine.connect() as connection:
            while not ended.is_set():
                connection.execute(text("SELECT count(*) FROM pg_class"))
                connection.rollback()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_prepared_statements_that_are_mixed_up_are_refused_at_the_start(
    config: Config, transaction_mode: str
) -> None:
    with pytest.raises(NotConfigured) as refusal:
        check_database(replace(config, database_url=transaction_mode))
    assert "set XXL_JOB_DATABASE_PREPARE=false, or use its session mode, or PgBouncer 1.21" in str(
        refusal.value
    )
    assert "\n" not in str(refusal.value)
    check_database(replace(config, database_url=transaction_mode, database_prepare=False))
    check_database(replace(config, database_url=f"{transaction_mode}?prepare_threshold=None"))


def test_a_session_of_a_pooler_is_as_good_as_the_server_itself(
    config: Config, database_url: str, session_mode: str
) -> None:
    for url in (database_url, session_mode):
        check_database(replace(config, database_url=url))
        assert find_pooling(plain_engine(url)) is Pooling.NONE
        upgrade(url)


@pytest.mark.parametrize("settings", [{}, {"server_round_robin": 1}, {"default_pool_size": 1}], ids=str)
def test_an_idle_pooler_is_recognised_at_the_first_attempt(
    database_url: str, tmp_path: Path, settings: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.connections.poolers.ROUNDS", 1)
    with pooler(database_url, tmp_path, mode="transaction", **settings) as url:
        assert find_pooling(plain_engine(url)) is Pooling.MIXED


def test_a_pooler_that_follows_statements_may_be_used_with_them(
    config: Config, database_url: str, tmp_path: Path
) -> None:
    if not can_follow_statements():
        return
    with pooler(database_url, tmp_path, mode="transaction", follows_statements=True) as url:
        assert find_pooling(plain_engine(url)) is Pooling.SHARED
        check_database(replace(config, database_url=url))


def test_a_busy_pooler_is_recognised_each_time(transaction_mode: str) -> None:
    engine = plain_engine(transaction_mode)
    with traffic(engine):
        assert {find_pooling(engine) for _ in range(30)} == {Pooling.MIXED}


def test_settings_hold_in_each_transaction_and_end_with_it(config: Config, transaction_mode: str) -> None:
    bind_engine(replace(config, database_url=transaction_mode, database_prepare=False))
    for _ in range(2):
        with session_scope() as session:
            assert session.execute(text(SETTINGS)).one() == ("24s", "1.1")
    with plain_engine(transaction_mode).connect() as other:
        assert other.execute(text(SETTINGS)).one() == ("0", "4")
    unbind_engine()


def test_an_error_of_the_settings_ends_the_connection_and_is_one_of_sqlalchemy(
    config: Config, transaction_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(replace(config, database_url=transaction_mode, database_prepare=False))
    monkeypatch.setattr(postgresql, "_PAGE_COSTS", ("4", "cheap"))
    with engine.connect() as connection, pytest.raises(Exception, match="invalid value for parameter"):
        connection.execute(text("SELECT 1"))
    engine.dispose()


def test_what_needs_a_session_is_refused_in_transaction_mode(transaction_mode: str) -> None:
    with (
        plain_engine(transaction_mode).connect() as connection,
        pytest.raises(NotConfigured, match="a pooler in transaction mode .* the address of the server"),
        upgrade_lock(connection),
    ):
        pytest.fail("it has the lock")
    upgrade(transaction_mode)  # finds the newest schema, and needs no lock


def test_the_doctor_reads_through_a_pooler(config: Config, session_mode: str, transaction_mode: str) -> None:
    by_session = replace(config, database_url=session_mode)
    assert examine(by_session).is_complete
    by_transaction = replace(config, database_url=transaction_mode)
    assert examine(replace(by_transaction, database_prepare=False)).is_complete
    refused = examine(by_transaction)
    assert not refused.is_complete
    assert "XXL_JOB_DATABASE_PREPARE=false" in refused.findings[-1].text


def test_the_doctor_reads_a_primary_that_the_url_demands(config: Config, database_url: str) -> None:
    assert examine(
        replace(config, database_url=f"{database_url}?target_session_attrs=read-write")
    ).is_complete
