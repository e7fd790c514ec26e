"""Transactions of views: the session of the request, on the engine of the process."""

from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import select, text

from app.database import flask_db
from app.database.engine import bind_engine, bound_engine
from app.models.job import Job
from app.settings.config import Config
from tests.support.factories import all_rows, make_job, only_row


def test_scopes_share_the_session_of_the_request_and_end_their_transaction(app: Flask) -> None:
    make_job()
    with app.app_context():
        with flask_db.read_scope() as session:
            assert session is flask_db.db.session()
            job = session.scalars(select(Job)).one()
        assert not session.in_transaction()
        with flask_db.session_scope() as writing:
            assert writing is session
            writing.merge(job).job_desc = "after"
        assert not session.in_transaction()
        assert flask_db.transact(lambda other: other is session)
    assert only_row(Job).job_desc == "after"


def test_a_view_that_fails_changes_nothing(app: Flask) -> None:
    job = make_job(job_desc="before")

    def fail() -> None:
        with flask_db.session_scope() as session:
            session.merge(job).job_desc = "never"
            session.flush()
            raise ZeroDivisionError

    with app.app_context(), pytest.raises(ZeroDivisionError):
        fail()
    assert [row.job_desc for row in all_rows(Job)] == ["before"]


@pytest.mark.databases("sqlite")
def test_a_writer_holds_the_lock_from_the_start(app: Flask) -> None:
    with app.app_context(), flask_db.session_scope(), bound_engine().connect() as other:
        assert other.connection.driver_connection is not None
        other.exec_driver_sql("PRAGMA busy_timeout = 0")
        with pytest.raises(Exception, match="locked"):
            other.connection.driver_connection.execute("BEGIN IMMEDIATE")


@pytest.mark.databases("sqlite")
def test_views_follow_the_engine_of_the_process(app: Flask, config: Config, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'moved.db'}"
    with app.app_context():
        bind_engine(replace(config, database_url=other))
        with flask_db.read_scope() as session:
            assert session.scalar(text("SELECT file FROM pragma_database_list")) == str(tmp_path / "moved.db")
