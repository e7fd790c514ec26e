"""``duetime up`` and ``init``: one-line errors, an orderly stop, nothing left behind, a file of settings."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.commands import invocation, up
from app.commands import parts as parts_module
from app.commands.parts import PartFailed, Parts
from app.settings.config import Config
from tests.acceptance.programs import ROOT, free_port
from tests.support.commands import run

#: a part that prints when it gets SIGTERM, and ignores it if it is stubborn
PART = """
import signal, sys, time
def stop(*_):
    print("got SIGTERM", flush=True)
    if "stubborn" not in sys.argv:
        sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    made = Parts(tmp_path, ROOT)
    yield made
    made.stops = 2
    made.stop()
    for number, handler in before.items():
        signal.signal(number, handler)


def start(parts: Parts, name: str, *arguments: str) -> None:
    parts.start(name, [sys.executable, "-c", PART, *arguments])
    parts.wait(name, lambda: "ready" in log(parts, name))


def log(parts: Parts, name: str) -> str:
    return parts.log_path(name).read_text()


def test_a_port_in_use_is_reported_with_its_variable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PartFailed, match=f"port {port} on 127.0.0.1 cannot be used .*XXL_JOB_PORT="):
            up.require_free("XXL_JOB_PORT", "127.0.0.1", port)
    up.require_free("XXL_JOB_PORT", "127.0.0.1", port)


@pytest.mark.parametrize("text", ["0", "65536", "http", "-1"])
def test_an_invalid_port_is_reported(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("XXL_JOB_EXECUTOR_PORT", text)
    with pytest.raises(PartFailed, match="XXL_JOB_EXECUTOR_PORT=.* a whole number from 1 to 65535 is needed"):
        up.read_port("XXL_JOB_EXECUTOR_PORT", 9999)


def test_an_invalid_setting_is_reported_in_one_line(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "XXL_JOB_HOME": str(tmp_path), "XXL_JOB_PORT": "many"}
    ended = subprocess.run(
        [sys.executable, "-m", "app", "up"], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("Error: XXL_JOB_PORT='many': ")
    assert ended.stderr.count("\n") == 1


def test_parts_stop_in_reverse_order(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    start(parts, "console")
    start(parts, "workers")
    ended: list[str] = []
    monkeypatch.setattr(
        parts_module,
        "kill_group",
        lambda process: ended.append(next(n for n, p in parts.processes.items() if p is process)),
    )
    os.kill(os.getpid(), signal.SIGINT)
    parts.watch()
    parts.stop()
    assert ended == ["workers", "console"]
    assert [process.returncode for process in parts.processes.values()] == [0, 0]


def test_a_second_ctrl_c_kills(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    start(parts, "workers", "stubborn")
    parts.request_stop(signal.SIGINT, None)
    # the second one arrives while the runner waits for the part
    monkeypatch.setattr(
        "app.commands.parts.time.sleep",
        lambda _seconds: (
            parts.request_stop(signal.SIGINT, None) if "SIGTERM" in log(parts, "workers") else None
        ),
    )
    parts.stop()
    assert parts.processes["workers"].returncode == -signal.SIGKILL


def test_a_part_that_ends_is_reported_with_its_last_lines(parts: Parts) -> None:
    start(parts, "console")
    parts.start(
        "workers", [sys.executable, "-c", "print('first\\nthe database is gone'); raise SystemExit(3)"]
    )
    with pytest.raises(
        PartFailed,
        match=r"^workers ended with exit code 3; the end of .*\.log:\n  first\n  the database is gone$",
    ):
        parts.watch()
    parts.stop()
    assert parts.processes["console"].returncode == 0


def test_a_part_that_never_answers_is_reported(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "START_S", 0)
    parts.start("console", [sys.executable, "-c", PART])
    with pytest.raises(PartFailed, match="^console did not answer within 0 s"):
        parts.wait("console", lambda: False)


@pytest.mark.parametrize(
    ("then", "missing"),
    [
        ("print('INFO registered admin=http://x', flush=True); time.sleep(60)", ""),
        (
            "raise SystemExit('no such module')",
            "executor ended with exit code 1; the end of .*no such module",
        ),
    ],
)
def test_the_demo_executor_is_registered_or_reported_missing(
    parts: Parts, capsys: pytest.CaptureFixture[str], then: str, missing: str
) -> None:
    command = [sys.executable, "-c", f"import time; {then}"]
    assert up.start_demo(parts, command, free_port(), "a-token") is not bool(missing)
    assert list(parts.processes) == ([] if missing else ["executor"])
    assert re.search(
        missing and f"There is no demo executor, .*{missing}", capsys.readouterr().out, re.DOTALL
    )


def test_without_a_port_there_is_no_demo_executor(parts: Parts, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not up.start_demo(parts, [], port, "a-token")
    assert f"port {port} on 127.0.0.1 cannot be used" in capsys.readouterr().out
    assert parts.processes == {}


def test_the_demo_executor_runs_code_only_for_a_console_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XXL_JOB_EXECUTOR_ALLOW_GLUE", raising=False)
    command = up.demo_command(replace(Config(), host="127.0.0.1"), "http://127.0.0.1:1/x", 9999)
    assert command[-2:] == ["--allow-glue", "python"]
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert "--allow-glue" not in up.demo_command(replace(Config(), host="0.0.0.0"), "http://x:1/x", 9999)
    monkeypatch.setenv("XXL_JOB_EXECUTOR_ALLOW_GLUE", "shell")
    assert "--allow-glue" not in up.demo_command(Config(), "http://127.0.0.1:1/x", 9999)


def test_a_step_that_fails_is_reported(parts: Parts) -> None:
    parts.once("schema", [sys.executable, "-c", "print('fine')"])
    with pytest.raises(PartFailed, match=r"^schema failed; the end of .*schema\.log:\n  \(empty\)$"):
        parts.once("schema", [sys.executable, "-c", "raise SystemExit(1)"])
    assert parts.processes == {}


def test_the_first_password_is_shown_until_it_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed_welcome(*, configured: bool) -> str:
        up.welcome("http://127.0.0.1:8080/xxl-job-admin", tmp_path, password_given=configured, has_demo=True)
        return capsys.readouterr().out

    changed = printed_welcome(configured=False)
    assert "(was changed" in changed
    assert "choose your own" not in changed
    (tmp_path / "admin_password").write_text("first-one\n")
    first = printed_welcome(configured=False)
    assert "admin password: first-one\n" in first
    assert "log in, choose your own password, run a demo job" in first
    assert "first-one" not in printed_welcome(configured=True)


def test_a_new_home_has_settings_that_pass_the_check(tmp_path: Path) -> None:
    folder = tmp_path / "in production"
    ended = run("init", folder)
    assert ended.exit_code == 0, ended.output
    assert f"settings  {folder}/.env\n" in ended.output
    assert (folder.stat().st_mode & 0o777, (folder / ".env").stat().st_mode & 0o777) == (0o700, 0o600)
    settings = Config.from_env({}, dotenv=folder / ".env")
    assert settings.home == folder
    assert "XXL_JOB_TIMEZONE" in settings.sources


def test_every_setting_of_a_new_home_is_known_and_valid(tmp_path: Path) -> None:
    run("init", tmp_path)
    lines = (tmp_path / ".env").read_text().splitlines()
    offered = [line.removeprefix("#") for line in lines if re.match("#?XXL_JOB_[A-Z_]+=.", line)]
    for line in offered:
        name, _, value = line.partition("=")
        environ = {"XXL_JOB_MAIL_HOST": "smtp", "XXL_JOB_MAIL_FROM": "a@example.com", name: value}
        assert Config.from_env(environ, dotenv=None).sources[name]
    assert len(offered) > 10


def test_an_existing_file_of_settings_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("XXL_JOB_PORT=9\n")
    ended = run("init", tmp_path)
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"Error: {tmp_path}/.env exists; edit it, or remove it first\n",
    )
    assert (tmp_path / ".env").read_text() == "XXL_JOB_PORT=9\n"


def test_beside_the_settings_of_services_their_home_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file = tmp_path / "xxl-job.env"
    settings_file.write_text("XXL_JOB_PORT=8081\n")
    monkeypatch.setattr(invocation, "ENV_FILE", settings_file)
    monkeypatch.setenv("XXL_JOB_HOME", "")
    configs: list[Config] = []
    monkeypatch.setattr(up, "start", lambda config, *_arguments, **_options: configs.append(config))
    assert run("up").exit_code == 0
    assert [(config.home, config.port) for config in configs] == [(invocation.SERVICE_HOME, 8081)]
