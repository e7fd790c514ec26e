"""The image's process 1 and its health check, with small programs in place of console and workers."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.clock import now_ms
from app.container.health import find_problems, running_parts
from app.container.process import ROLES
from app.database.engine import session_scope
from app.database.moves import PROMOTION_TABLE
from app.database.promotion_mark import MOVED
from app.domain.enums import NodeKind
from app.services.installation.nodes import node_name
from app.settings.config import Config
from app.settings.sealing import Sealer
from app.store.nodes import nodes
from tests.support.databases import ROOT

#: names of the parts, then their programs
RUN = """
import sys
from app.container import process
process.PARTS = dict(zip(("first", "second"), (("-c", code) for code in sys.argv[1:])))
sys.exit(process.Container(list(process.PARTS)).run())
"""
#: writes a line for each signal, and ends a while after the first one
COUNTS = """
import os, signal, threading
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"asked\\n"), asked.set()))
os.write(1, b"ready\\n")
asked.wait()
threading.Event().wait(0.5)
"""
KILLED = "import os; os.kill(os.getpid(), 9)"


def start(*parts: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *parts], cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}
    )


def test_a_signal_reaches_every_part_once() -> None:
    process = start(COUNTS, COUNTS)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=30)
    assert (rest, process.returncode) == ("asked\n" * 2, 0)


@pytest.mark.parametrize(
    ("end", "code"),
    [("raise SystemExit(3)", 3), ("raise SystemExit", 1), (KILLED, 1)],
)
def test_a_part_that_ends_ends_the_container(end: str, code: int) -> None:
    # the signal may come before the other part counts signals
    process = start(end, "import signal; signal.pause()")
    process.communicate(timeout=30)
    assert process.returncode == code


def test_help_lists_the_roles() -> None:
    command = [sys.executable, "-m", "app.container", "--help"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(f"\n  {role} " in ended.stdout for role in ROLES)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["console", "workers"]])
def test_another_role_is_refused_in_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "app.container", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    expected = f"container: expected the role console, workers, all; found {' '.join(arguments)!r}\n"
    assert (ended.returncode, ended.stderr) == (2, expected)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("python -m app.container all", ["console", "workers"]),
        ("/sbin/docker-init -- python -m app.container workers", ["workers"]),
        ("python -m app.container console", ["console"]),
        ("sleep 3", []),
    ],
)
def test_a_container_has_the_parts_of_its_role(tmp_path: Path, command: str, parts: list[str]) -> None:
    for number, words in (("1", command), ("77", "python -m app.container.health")):
        (tmp_path / number).mkdir()
        (tmp_path / number / "cmdline").write_bytes("\0".join(words.split()).encode() + b"\0")
    assert running_parts(tmp_path) == parts


def start_and_scan(name: str) -> None:
    with session_scope() as session:
        nodes.start_node(session, name, NodeKind.WORKERS, version="1", token_fingerprint="", now_ms=now_ms())
    nodes.mark_scanned(name, now_ms=now_ms())


@pytest.mark.databases("sqlite")
@pytest.mark.usefixtures("database")
def test_workers_are_healthy_while_their_own_node_scans(config: Config) -> None:
    start_and_scan("another")
    idle = "workers: the scheduler of this node has not completed a scan within 10 s"
    assert find_problems(config, ["workers"]) == [idle]
    start_and_scan(node_name(config))
    assert find_problems(config, ["workers"]) == []


@pytest.mark.databases("sqlite")
@pytest.mark.usefixtures("database")
def test_the_health_check_follows_a_database_that_has_moved(config: Config, tmp_path: Path) -> None:
    start_and_scan(node_name(config))
    file, key = tmp_path / "moved.db", "k" * 32
    row = ("1", Sealer(lambda: key).seal(config.database_url), "")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {PROMOTION_TABLE} (promotion_id, sealed_url, revision)")
        connection.execute(f"INSERT INTO {PROMOTION_TABLE} VALUES (?, ?, ?)", row)
        connection.execute(f"PRAGMA user_version = {MOVED}")
        connection.commit()
    settings = replace(config, database_url=f"sqlite:///{file}", secret_key=key)
    assert find_problems(settings, ["workers"]) == []


def test_the_health_check_creates_no_database(tmp_path: Path) -> None:
    (problem,) = find_problems(Config(database_url=f"sqlite:///{tmp_path}/none.db"), ["workers"])
    assert str(tmp_path) in problem
    assert list(tmp_path.iterdir()) == []


def test_a_container_without_a_role_is_unhealthy() -> None:
    assert find_problems(Config(), []) == ["no role runs in this container"]


def test_a_console_that_does_not_answer_is_named() -> None:
    (problem,) = find_problems(Config(port=1), ["console"])
    assert problem.startswith("console: http://127.0.0.1:1/xxl-job-admin/health: ")
