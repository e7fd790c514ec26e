"""Test databases: each test gets an empty one, whatever the previous test committed."""

import pytest
from sqlalchemy import create_engine, inspect, select, text

from app.database.engine import read_scope, session_scope
from app.models.skip import Skip
from tests.support.databases import Server, migrate, missing, start_postgresql, temporary_directory


@pytest.mark.parametrize("turn", [1, 2])
def test_commits_of_a_test_are_gone_in_the_next(database: str, turn: int) -> None:
    with session_scope() as session:
        session.execute(text("INSERT INTO xxl_job_lock (lock_name) VALUES ('left behind')"))
        session.add(Skip(job_id=turn, from_ms=1, to_ms=2, skipped=1, reason="edited", recorded_ms=3))
    with read_scope() as session:
        names = session.execute(text("SELECT lock_name FROM xxl_job_lock ORDER BY lock_name")).scalars().all()
        assert session.scalars(select(Skip.id)).all() == [1], "ids also start over"
    assert names == ["left behind", "schedule_lock"], f"in turn {turn}"


def test_an_empty_database_accepts_the_migrations(empty_database: str) -> None:
    engine = create_engine(empty_database)
    assert inspect(engine).get_table_names() == []
    migrate(empty_database)
    migrate(empty_database)
    assert "xxl_job_info" in inspect(engine).get_table_names()
    engine.dispose()


def test_a_durable_server_starts_and_stops() -> None:
    if missing("postgresql"):
        pytest.skip("postgresql is missing")
    with temporary_directory() as directory, start_postgresql(directory / "server", durable=True) as server:
        url = server.create_database("one")
        engine = create_engine(url)
        with engine.connect() as connection:
            assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
        engine.dispose()
        server.drop_database("one")
    assert server.process is not None
    assert server.process.poll() is not None


def test_a_missing_server_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.databases.PROGRAMS", {"mariadb": ("no-such-program",)})
    assert missing("mariadb") == "no-such-program is not installed (Debian: apt install mariadb-server)"


def test_a_server_started_elsewhere_is_not_stopped_here() -> None:
    Server("postgresql+psycopg://xxl_job@127.0.0.1:1/{}").stop()
