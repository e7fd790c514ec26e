"""``--local``: the commands over the API without a console."""

import json
from pathlib import Path

import pytest

from app.clock import now_ms
from app.database.engine import bind_engine
from app.models.node import Node
from app.settings.config import Config
from tests.support.cli import error_of, plain_run
from tests.support.commands import env_file, run
from tests.support.factories import save


def test_a_command_runs_without_console_and_token(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    for arguments in (("--local", "whoami", "-o", "json"), ("-o", "json", "whoami", "--local")):
        me = json.loads(run("--env-file", path, *arguments).stdout)
        assert (me["username"], me["is_admin"]) == ("local", True)


def test_another_time_zone_than_that_of_the_services_is_refused(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    bind_engine(Config.from_env(env_file=Path(path)))
    node = {"name": "one", "kind": "workers", "started_ms": 0, "version": "1", "time_zone": "Pacific/Apia"}
    save(Node(**node, heartbeat_ms=now_ms()))
    ended = run("--env-file", path, "--local", "whoami")
    assert ended.exit_code == 2
    assert ended.stderr.startswith(
        "Error: XXL_JOB_TIMEZONE: the node one (workers) on the same database uses"
    )


def test_the_option_is_shown_where_it_works() -> None:
    for arguments in (("--help",), ("jobs", "list", "--help")):
        assert "--local" in run(*arguments).stdout
        assert "--local" not in plain_run(*arguments).stdout
    line = error_of(plain_run("whoami", "--local"), 2)
    assert line.startswith("--local")


def test_without_a_database_the_line_says_where_it_looked(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path), "whoami", "--local")
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        f"Error: XXL_JOB_DATABASE_URL: sqlite:///{tmp_path}/home/xxl_job.db cannot be opened"
    )


def test_without_a_console_both_ways_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ended = run("whoami")
    assert (ended.exit_code, ended.stderr) == (
        2,
        "Error: no console to call: there is no profile, and XXL_JOB_URL is not set;"
        " run: duetime login URL, or add --local\n",
    )
