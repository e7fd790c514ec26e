"""Application performance monitoring: the console runs under Sentry and OpenTelemetry, which trace it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: of the start, a trigger and a loop
STATEMENTS = ("FROM xxl_job_user", "INSERT INTO xxl_job_fire", "FROM xxl_job_alarm")
#: and of a callback, which a thread of its own stores: Sentry has no transaction there
EXPECTED = {"sentry": STATEMENTS, "opentelemetry": (*STATEMENTS, "FROM xxl_job_log")}


@pytest.mark.databases("sqlite")
@pytest.mark.timeout(120)
def test_the_console_is_traced(database_url: str, tmp_path: Path) -> None:
    check_traces(database_url, tmp_path)


@pytest.mark.extensive
@pytest.mark.databases("postgresql")
@pytest.mark.timeout(120)
def test_the_console_is_traced_on_a_server_too(database_url: str, tmp_path: Path) -> None:
    check_traces(database_url, tmp_path)


def check_traces(database_url: str, tmp_path: Path) -> None:
    settings = {
        "XXL_JOB_HOME": str(tmp_path),
        "XXL_JOB_DATABASE_URL": database_url,
        "XXL_JOB_ACCESS_TOKEN": "token-of-executors-0123",
        "XXL_JOB_ADMIN_PASSWORD": "correct-horse-7",
        "XXL_JOB_TIMEZONE": "UTC",
    }
    clean = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
    command = [sys.executable, "-m", "tests.support.traced_console"]
    ended = subprocess.run(
        command, cwd=ROOT, env=clean | settings, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    traced = json.loads(ended.stdout)
    lacking = [
        (name, text)
        for name, texts in EXPECTED.items()
        for text in texts
        if not any(text in statement for statement in traced[name])
    ]
    assert lacking == []
