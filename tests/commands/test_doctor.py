"""Command ``doctor``: its exit codes and what it prints."""

import json
from pathlib import Path

from app.settings.config import Config
from app.settings.home import access_tokens, secret_key
from tests.support.commands import env_file, run


def test_without_a_database_it_ends_with_2_and_creates_nothing(tmp_path: Path) -> None:
    ended = run("--env-file", env_file(tmp_path), "doctor")
    assert ended.exit_code == 2
    assert ended.output.endswith("findings; the database could not be examined.\n")
    assert "\x1b" not in ended.output
    assert [path.name for path in tmp_path.iterdir()] == ["xxl-job.env"]


def test_findings_are_exit_code_1_with_what_to_do(tmp_path: Path) -> None:
    path = env_file(tmp_path)
    assert run("--env-file", path, "db", "upgrade").exit_code == 0
    config = Config(home=tmp_path / "home")
    access_tokens(config)
    secret_key(config)
    path.chmod(0o600)
    ended = run("--env-file", path, "doctor")
    assert ended.exit_code == 1
    assert "\n X  nodes       no workers process is alive: nothing is scheduled\n" in ended.output
    assert "\n                -> systemctl start xxl-job-workers; if it" in ended.output
    answer = json.loads(run("--env-file", path, "doctor", "-o", "json").output)
    assert (answer["fine"], answer["complete"]) == (False, True)
    levels = {finding["check"]: finding["level"] for finding in answer["findings"]}
    assert levels["nodes"] == "problem"
    assert {check for check, level in levels.items() if level == "ok"} >= {
        "database",
        "files",
        "disk",
        "token",
    }
