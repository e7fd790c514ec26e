"""Command ``settle``: what it prints, and a time that is none."""

import re
from pathlib import Path

from tests.support.commands import env_file, run


def test_it_reports_what_was_settled(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "settle").exit_code == 2, "without a database"
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run("--env-file", path, "settle", "--since", "2026-01-01 00:00")
    assert ended.exit_code == 0, ended.output
    number = re.search(r"next id of a run: (\d+)\n", ended.output)
    assert number is not None
    assert int(number[1]) > 2_000_000
    assert "skipped: the times up to now of 0 jobs, and 0 queued runs\n" in ended.output
    assert "ended as unresolved: 0 runs" in ended.output


def test_a_database_without_a_loss_is_left_alone_unless_confirmed(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    refused = run("--env-file", path, "settle")
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
    assert "--since TIME or --yes ends 0 runs and skips 0 queued ones" in refused.output
    assert run("--env-file", path, "settle", "--yes").exit_code == 0


def test_a_time_to_come_is_refused(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    ended = run("--env-file", path, "settle", "--since", "9999-01-01 00:00")
    assert ended.exit_code == 2
    assert "--since: a time that has passed is expected" in ended.output
