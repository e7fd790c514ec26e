"""URLs of databases: their files, and no password in what is shown."""

from pathlib import Path

import pytest

from app.database.urls import sqlite_file, without_password


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db?timeout=9", "/var/lib/jobs.db"),
        ("sqlite:///file:/var/lib/jobs.db?uri=true", "/var/lib/jobs.db"),
    ],
)
def test_the_file_of_a_sqlite_database(url: str, file: str) -> None:
    assert sqlite_file(url) == Path(file)


def test_a_server_has_no_file() -> None:
    assert sqlite_file("mysql+pymysql://ann@db/jobs") is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql+pymysql://ann:secret@db/x?charset=utf8mb4", "mysql+pymysql://ann:***@db/x?charset=utf8mb4"),
        ("postgresql+psycopg:///x?host=db&password=secret", "postgresql+psycopg:///x?host=db&password=***"),
        ("mysql+pymysql://ann@db/x?passwd=secret", "mysql+pymysql://ann@db/x?passwd=***"),
        ("sqlite:////var/lib/jobs.db", "sqlite:////var/lib/jobs.db"),
    ],
)
def test_passwords_are_hidden(url: str, shown: str) -> None:
    assert without_password(url) == shown
