"""Command ``promote``: its settings, what it prints, and how it ends."""

import os
from pathlib import Path

import pytest

from tests.support.commands import env_file, run

KEY = "promotion-key-0123456789-0123456789"
SERVERS = pytest.mark.databases("mariadb", "postgresql")


@SERVERS
def test_the_file_of_settings_names_the_new_database_afterwards(tmp_path: Path, empty_database: str) -> None:
    path = env_file(tmp_path, TIMEZONE="Asia/Shanghai", SECRET_KEY=KEY)
    path.chmod(0o640)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run("--env-file", path, "promote", "--save", "-", text=empty_database + "\n")
    assert ended.exit_code == 0, ended.output
    assert "nothing written" in ended.output
    assert f"XXL_JOB_DATABASE_URL is set in {path}\n" in ended.output
    lines = path.read_text().splitlines()
    assert lines[1] == "XXL_JOB_TIMEZONE=Asia/Shanghai"
    assert "XXL_JOB_DATABASE_URL=" in lines[3]
    assert path.stat().st_mode & 0o777 == 0o640
    assert run("--env-file", path, "check-config").exit_code == 0
    ended = run("--env-file", path, "promote", empty_database)
    assert (ended.exit_code, ended.output) == (
        1,
        "Error: the settings name a database server already: there is nothing to promote\n",
    )


@SERVERS
def test_a_second_call_ends_what_the_first_has_begun(tmp_path: Path, empty_database: str) -> None:
    path = env_file(tmp_path, SECRET_KEY=KEY)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    assert run("--env-file", path, "promote", empty_database).exit_code == 0
    ended = run("--env-file", path, "promote", "--save", empty_database)
    assert ended.exit_code == 0
    assert "the database has moved there already" in ended.output
    assert "DATABASE_URL=" in path.read_text()


def test_problems_are_one_line(tmp_path: Path) -> None:
    path = env_file(tmp_path, SECRET_KEY=KEY)
    absent = run("--env-file", path, "promote", "mysql+pymysql://u:secret@127.0.0.1:1/x")
    assert absent.exit_code == 2
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    refused = {
        "sqlite:///x.db": "expected the URL of MySQL, MariaDB or PostgreSQL",
        "mysql://u:secret@host/x": "expected sqlite:///FILE, mysql+pymysql://",
        "mysql+pymysql://u:secret@127.0.0.1:1/x": "Can't connect to MySQL server",
        "postgresql+psycopg://u:secret@127.0.0.1:1/x": "onnection refused",
        "mysql+pymysql://u:secret@127.0.0.1:1/x?useSSL=false": "useSSL is a parameter of JDBC",
        "mysql+pymysql://u:secret@127.0.0.1:1/x?use_ssl=0": "the driver refuses a parameter: ",
    }
    for url, reason in refused.items():
        ended = run("--env-file", path, "promote", url)
        assert ended.exit_code == 2
        assert reason in ended.output
        assert "secret" not in ended.output
        assert ended.output.splitlines()[-1].startswith("Error: ")


def test_settings_that_cannot_be_saved_are_reported_before_anything_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = env_file(tmp_path, SECRET_KEY=KEY)
    monkeypatch.setattr("os.access", lambda _path, mode: not mode & os.W_OK)
    ended = run("--env-file", path, "promote", "--save", "mysql+pymysql://u:secret@127.0.0.1:1/x")
    assert (ended.exit_code, ended.output) == (
        2,
        f"Error: --save: {tmp_path} is not writable; run this as root, or without --save\n",
    )


def test_a_url_that_would_not_count_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = f"sqlite:///{tmp_path}/home/xxl_job.db", "mysql+pymysql://u:secret@127.0.0.1:1/x"
    secret = tmp_path / "url"
    secret.write_text(old)
    path = env_file(tmp_path, SECRET_KEY=KEY, DATABASE_URL_FILE=str(secret))
    ended = run("--env-file", path, "promote", "--save", new)
    reason = f"XXL_JOB_DATABASE_URL_FILE is set; run this without --save, then write the URL to {secret}"
    assert (ended.exit_code, ended.output) == (2, f"Error: --save: {reason}\n")
    path = env_file(tmp_path, SECRET_KEY=KEY)
    monkeypatch.setenv("XXL_JOB_DATABASE_URL", old)
    ended = run("--env-file", path, "promote", "--save", new)
    reason = f"XXL_JOB_DATABASE_URL is set in the environment, which overrides {path}"
    assert (ended.exit_code, ended.output) == (2, f"Error: --save: {reason}\n")
