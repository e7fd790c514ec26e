"""The first thing a newcomer runs: each thing that can be wrong with a machine is one clear line, and nothing stays behind."""

import ast
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import manage

ROOT = Path(__file__).resolve().parent.parent
#: a part that says when it is asked to stop, and whether it obeys
PART = """
import signal, sys, time
def stop(*_):
    print("asked to stop", flush=True)
    if "stubborn" not in sys.argv:
        sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[manage.Parts]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    made = manage.Parts(str(tmp_path))
    yield made
    made.stops = 2
    made.stop()
    for number, handler in before.items():
        signal.signal(number, handler)


def start(parts: manage.Parts, name: str, *arguments: str) -> None:
    parts.start(name, [sys.executable, "-c", PART, *arguments])
    parts.wait(name, lambda: "ready" in log(parts, name))


def log(parts: manage.Parts, name: str) -> str:
    return Path(parts.log_path(name)).read_text()


def test_an_old_python_can_read_the_file() -> None:
    ast.parse((ROOT / "manage.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_an_old_python_is_told_in_one_line(tmp_path: Path) -> None:
    ended = run_under_an_old_python(tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Python 3.11 or newer is needed, this is 3.9")
    assert ended.stderr.count("\n") == 1


def test_an_old_python_goes_on_under_a_newer_one(tmp_path: Path) -> None:
    newer = tmp_path / "python3.12"
    newer.write_text('#!/bin/sh\necho "newer: $2 $3"\n')
    newer.chmod(0o755)
    ended = run_under_an_old_python(tmp_path)
    assert ended.stdout == "newer: bench x\n"


def run_under_an_old_python(path: Path) -> subprocess.CompletedProcess[str]:
    """Run ``manage.py bench x`` as Python 3.9 would, with the interpreters of one folder on PATH."""
    old = "import runpy, sys; sys.version_info = (3, 9, 2); sys.argv = ['manage.py', 'bench', 'x']"
    code = f"{old}; runpy.run_path({str(ROOT / 'manage.py')!r}, run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(path)}, capture_output=True, text=True
    )


def test_without_a_word_all_words_are_listed() -> None:
    ended = subprocess.run([sys.executable, str(ROOT / "manage.py")], capture_output=True, text=True)
    assert ended.returncode == 0
    assert all(f"\n{word} " in ended.stdout for word in ("setup", "run", "test", "check", "bench", "faults"))
    ended = subprocess.run([sys.executable, str(ROOT / "manage.py"), "rnu"], capture_output=True, text=True)
    assert ended.returncode == 2


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage.os, "access", lambda _path, _mode: False)
    with pytest.raises(manage.Failed, match="cannot be written"):
        manage.setup()


def test_a_missing_venv_module_is_told_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(manage, "PYTHON", str(tmp_path / "none"))
    monkeypatch.setattr(manage.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(manage.Failed, match="apt install python3-venv"):
        manage.make_venv()


def test_a_port_in_use_is_told_with_its_variable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(manage.Failed, match=f"port {port} on 127.0.0.1 cannot be used .*XXL_JOB_PORT="):
            manage.require_free("XXL_JOB_PORT", "127.0.0.1", port)
        assert manage.listens("127.0.0.1", port)
    manage.require_free("XXL_JOB_PORT", "127.0.0.1", port)
    assert not manage.listens("127.0.0.1", port)


@pytest.mark.parametrize("text", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("XXL_JOB_EXECUTOR_PORT", text)
    with pytest.raises(
        manage.Failed, match="XXL_JOB_EXECUTOR_PORT=.* a whole number from 1 to 65535 is needed"
    ):
        manage.whole_number("XXL_JOB_EXECUTOR_PORT", 9999)


def test_a_wrong_setting_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(manage, "PYTHON", sys.executable)
    monkeypatch.setenv("XXL_JOB_HOME", str(tmp_path))
    assert manage.ask_config()["home"] == str(tmp_path)
    monkeypatch.setenv("XXL_JOB_PORT", "many")
    with pytest.raises(manage.Failed, match=r"^XXL_JOB_PORT='many': [^\n]*$"):
        manage.ask_config()


def test_parts_stop_in_order_last_started_first(parts: manage.Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    start(parts, "console")
    start(parts, "workers")
    ended: list[str] = []
    monkeypatch.setattr(
        manage,
        "kill_group",
        lambda process: ended.append(next(n for n, p in parts.processes.items() if p is process)),
    )
    os.kill(os.getpid(), signal.SIGINT)
    parts.watch()
    parts.stop()
    assert ended == ["workers", "console"]
    assert [process.returncode for process in parts.processes.values()] == [0, 0]


def test_a_second_ctrl_c_kills(parts: manage.Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    start(parts, "workers", "stubborn")
    parts.ask_stop(signal.SIGINT, None)
    # the second one comes while the part is being waited for
    monkeypatch.setattr(
        manage.time,
        "sleep",
        lambda _seconds: parts.ask_stop(signal.SIGINT, None) if "asked" in log(parts, "workers") else None,
    )
    parts.stop()
    assert parts.processes["workers"].returncode == -signal.SIGKILL


def test_a_part_that_ends_is_named_with_its_last_lines(parts: manage.Parts) -> None:
    start(parts, "console")
    parts.start(
        "workers", [sys.executable, "-c", "print('first\\nthe database is gone'); raise SystemExit(3)"]
    )
    with pytest.raises(
        manage.Failed,
        match=r"^workers ended with exit code 3; the end of .*workers\.log:\n  first\n  the database is gone$",
    ):
        parts.watch()
    parts.stop()
    assert parts.processes["console"].returncode == 0


def test_a_part_that_never_answers_is_named(parts: manage.Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "START_S", 0)
    parts.start("console", [sys.executable, "-c", PART])
    with pytest.raises(manage.Failed, match="^console did not answer within 0 s"):
        parts.wait("console", lambda: False)


def test_a_step_that_fails_is_named(parts: manage.Parts) -> None:
    parts.once("schema", [sys.executable, "-c", "print('fine')"])
    with pytest.raises(
        manage.Failed, match=r"^schema failed; the end of .*schema\.log:\n  \(it wrote nothing\)$"
    ):
        parts.once("schema", [sys.executable, "-c", "raise SystemExit(1)"])
    assert parts.processes == {}


def test_the_first_password_is_shown_only_while_it_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def welcomed(*, given: bool) -> str:
        manage.welcome("http://127.0.0.1:8080/xxl-job-admin", {"home": str(tmp_path), "given": given})
        return capsys.readouterr().out

    assert "(was changed" in welcomed(given=False)
    (tmp_path / "admin_password").write_text("first-one\n")
    assert "admin password: first-one\n" in welcomed(given=False)
    assert "first-one" not in welcomed(given=True)
