"""GLUE scripts: arguments, result, output, versions, environment, termination."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executor_client.execution.glue import LANGUAGES, GlueScript
from executor_client.processes import sessions
from executor_client.processes.sessions import (
    identity_from_ps,
    identity_of,
    kill_leftover,
    members_from_ps,
    members_of,
    signal_session,
)
from executor_client.processes.tree import LEFT_RUNNING, python_program
from executor_client.wire.errors import RunFailed
from tests.support.eventually import eventually
from tests.support.executor_client import FAST, Caller, MakeExecutor
from tests.support.executor_client_execution import PRINTS_LATER, ROLLS_BACK, script
from tests.support.executor_runs import sleepers
from tests.support.truth_table import truth_table

Result = Callable[[int], tuple[int, str | None]]
ALL = frozenset({"python", "shell", "php", "nodejs", "powershell"})


@pytest.fixture
def glue(start: MakeExecutor, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setenv("XXL_JOB_ACCESS_TOKEN", "secret-in-the-environment")
    monkeypatch.setenv("LC_TEST", "C")
    return start(allow_glue=ALL)


def needing(program: str, language: str, *values: str) -> Any:
    """Return test parameters that are skipped if the program is not installed."""
    return pytest.param(language, *values, id=language, marks=pytest.mark.program(program))


@pytest.mark.parametrize(
    ("language", "source"),
    [
        needing("bash", "SHELL", 'echo "got $1|$2|$3"; exit 4'),
        needing("python3", "PYTHON", "import sys\nprint('got ' + '|'.join(sys.argv[1:]))\nsys.exit(4)"),
        needing(
            "node", "NODEJS", "console.log('got ' + process.argv.slice(2).join('|')); process.exitCode = 4"
        ),
        needing("php", "PHP", "<?php echo 'got ' . implode('|', array_slice($argv, 1)) . \"\\n\"; exit(4);"),
        needing("pwsh", "POWERSHELL", "Write-Output \"got $($args -join '|')\"\nexit 4"),
    ],
)
def test_a_script_gets_parameter_and_shard(glue: Caller, result: Result, language: str, source: str) -> None:
    fields = {"executorParams": "a b", "broadcastIndex": 1, "broadcastTotal": 3}
    glue.accepted(1, **script(language, source, **fields))
    assert result(1) == (500, "script exit value(4) is failed")
    assert "\ngot a b|1|3\n" in glue.log(1)["logContent"]
    glue.accepted(2, **script(language, source.replace("4", "0"), glueUpdatetime=2, executorParams=""))
    assert result(2) == (200, None)
    assert "\ngot |0|1\n" in glue.log(2)["logContent"]


@pytest.mark.parametrize(("language", "source"), [("SHELL", "echo got $1"), ("PYTHON", "print('got')")])
def test_a_script_starts_though_python_is_embedded_in_a_server(
    glue: Caller, result: Result, monkeypatch: pytest.MonkeyPatch, language: str, source: str
) -> None:
    monkeypatch.setattr("sys.executable", "/usr/bin/uwsgi")
    glue.accepted(1, **script(language, source))
    assert result(1) == (200, None)


@pytest.mark.parametrize(
    ("executable", "expected"),
    [
        ("/opt/bin/python3.11", "/opt/bin/python3.11"),
        ("/opt/bin/pypy3", "/opt/bin/pypy3"),
        ("/Library/Frameworks/Python", "/Library/Frameworks/Python"),
        ("/usr/bin/uwsgi", "{prefix}/bin/python3"),
        ("", "{prefix}/bin/python3"),
        (None, "{prefix}/bin/python3"),
    ],
)
def test_the_python_of_scripts_and_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None, expected: str
) -> None:
    monkeypatch.setattr("sys.executable", executable)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").touch(0o700)
    assert python_program() == expected.format(prefix=tmp_path)


def test_a_program_without_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/srv/frozen")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(RunFailed, match=f"^/srv/frozen is not Python, and .*{tmp_path}/bin/python3 is not"):
        python_program()


def test_an_overlong_line_is_split_between_characters(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("PYTHON", "print('x' + '中' * 100_000)"))
    assert result(1) == (200, None)
    log = glue.log(1)["logContent"]
    assert log.count("中") == 100_000
    assert "\ufffd" not in log


#: interpreter stub: prints its arguments and its script
STAND_IN = """#!/bin/sh
printf '<%s>\\n' "$@"
cat "$1"
exit 5
"""


@pytest.mark.parametrize(
    ("language", "program", "suffix"),
    [
        ("SHELL", "bash", ".sh"),
        ("SHELL", "sh", ".sh"),
        ("NODEJS", "node", ".js"),
        ("NODEJS", "nodejs", ".js"),
        ("PHP", "php", ".php"),
        ("POWERSHELL", "pwsh", ".ps1"),
        ("POWERSHELL", "powershell", ".ps1"),
    ],
)
def test_an_interpreter_gets_file_parameter_index_and_total(
    glue: Caller,
    result: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    language: str,
    program: str,
    suffix: str,
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cat").symlink_to("/bin/cat")
    (tmp_path / "bin" / program).write_text(STAND_IN)
    (tmp_path / "bin" / program).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    glue.accepted(
        1,
        **script(language, "the source", executorParams="-x 'a b' $(c)", broadcastIndex=1, broadcastTotal=3),
    )
    assert result(1) == (500, "script exit value(5) is failed")
    file = tmp_path / "executor-logs" / "gluesource" / f"1_1541254891000{suffix}"
    assert f"\n<{file}>\n<-x 'a b' $(c)>\n<1>\n<3>\nthe source\n" in glue.log(1)["logContent"]


@pytest.mark.parametrize(
    ("language", "program"), [("SHELL", "bash"), ("NODEJS", "node"), ("PHP", "php"), ("POWERSHELL", "pwsh")]
)
def test_a_missing_interpreter_is_reported(
    glue: Caller, result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str, program: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    glue.accepted(1, **script(language, "x"))
    code, msg = result(1)
    assert (code, (msg or "").partition(": ")[2]) == (500, f"{program} is not installed on this host")


def test_the_exit_code_is_the_result(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("SHELL", "echo out; echo err >&2; exit 7"))
    assert result(1) == (500, "script exit value(7) is failed")
    text = glue.log(1)["logContent"]
    assert LEFT_RUNNING not in text
    assert "out\n" in text
    assert "err\n" in text


def test_output_arrives_by_line_while_the_script_runs(glue: Caller, result: Result, tmp_path: Path) -> None:
    flag = tmp_path / "go"
    glue.accepted(
        1, **script("SHELL", f"echo first; until [ -e {flag} ]; do sleep 0.02; done; printf 'a\\r\\nlast'")
    )
    eventually(lambda: "first\n" in glue.log(1)["logContent"])
    flag.touch()
    assert result(1) == (200, None)
    assert "\na\nlast\n" in glue.log(1)["logContent"]


def test_a_script_sees_no_secret_and_has_its_own_folder(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("SHELL", "env; pwd; stat -c '%a' . $0"))
    result(1)
    text = glue.log(1)["logContent"]
    assert "secret-in-the-environment" not in text
    assert "LC_TEST=C\n" in text
    assert "/gluework/1\n700\n600\n" in text


def test_a_new_version_replaces_script_and_thread(glue: Caller, result: Result, tmp_path: Path) -> None:
    glue.accepted(1, **script("SHELL", "echo started; sleep 60"))
    eventually(lambda: "started" in glue.log(1)["logContent"])
    glue.accepted(2, **script("SHELL", "echo new", glueUpdatetime=2000))
    assert result(1) == (
        500,
        "change job source or glue type, and terminate the old job thread. [job running, killed]",
    )
    assert result(2) == (200, None)
    assert [path.name for path in (tmp_path / "executor-logs" / "gluesource").iterdir()] == ["1_2000.sh"]


def test_a_modified_script_file_is_rewritten(glue: Caller, result: Result, tmp_path: Path) -> None:
    fields = script("SHELL", "echo mine", glueUpdatetime=5)
    glue.accepted(1, **fields)
    result(1)
    (tmp_path / "executor-logs" / "gluesource" / "1_5.sh").write_text("echo foreign")
    glue.accepted(2, **fields)
    result(2)
    assert "mine\n" in glue.log(2)["logContent"]


@pytest.mark.parametrize("glue_type", LANGUAGES)
def test_a_script_has_no_byte_order_mark_and_unix_line_ends(tmp_path: Path, glue_type: str) -> None:
    path = GlueScript(1, glue_type, 5, "\ufeffset -e\r\nfalse\r\n").prepare(tmp_path)
    assert path.read_bytes() == b"set -e\nfalse\n"


@pytest.mark.parametrize(
    ("source", "timeout"),
    [
        ("sleep 60 & echo ready; sleep 60", 0),
        ("trap '' TERM; sleep 60 & echo ready; while true; do sleep 60; done", 0),
        ("trap '' TERM; sleep 60 & echo ready; while true; do sleep 60; done", 1),
        ("echo ready; timeout 60 sleep 60", 0),
        ("set -m; sleep 60 & echo ready; wait", 0),
    ],
)
def test_a_script_is_killed_with_its_descendants(
    glue: Caller, result: Result, source: str, timeout: int
) -> None:
    glue.accepted(1, **script("SHELL", source, executorTimeout=timeout))
    eventually(lambda: "ready" in glue.log(1)["logContent"])
    own_processes = eventually(sleepers)
    if timeout:
        assert result(1) == (502, "job execute timeout ")
    else:
        glue.post("/kill", {"jobId": 1})
        assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    eventually(lambda: not set(own_processes) & set(sleepers()), message="a descendant survives")
    eventually(lambda: not any(thread.name == "job-1" and glue.is_busy() for thread in threading.enumerate()))


@pytest.mark.parametrize("output", ["", "> output"], ids=["copied", "redirected"])
def test_a_program_below_the_shell_of_a_script_has_time_to_end(
    start: MakeExecutor, result: Result, tmp_path: Path, output: str
) -> None:
    glue = start(allow_glue=ALL, timing=replace(FAST, terminate_s=30))
    glue.accepted(1, **script("SHELL", f"sh -c '{ROLLS_BACK}' {output}; true"))
    path = tmp_path / "executor-logs" / "gluework" / "1" / "output"

    def text() -> str:
        return str(glue.log(1)["logContent"]) + (path.read_text() if path.exists() else "")

    eventually(lambda: "ready\n" in text())
    glue.post("/kill", {"jobId": 1})
    assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    assert "rolled back\n" in text()


def test_a_background_process_does_not_block_the_run(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("SHELL", "sleep 3 & echo done"))
    assert result(1) == (200, None)
    assert "done\n" in glue.log(1)["logContent"]


def test_a_background_process_goes_on_and_prints_into_nothing(
    glue: Caller, result: Result, tmp_path: Path
) -> None:
    glue.accepted(1, **script("SHELL", PRINTS_LATER.format(folder=tmp_path)))
    assert result(1) == (200, None)
    (tmp_path / "gate").touch()
    eventually((tmp_path / "ended").exists)
    log = glue.log(1)["logContent"]
    assert f"] {LEFT_RUNNING}\n" in log
    assert "late" not in log


def test_large_output_is_complete(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("PYTHON", "for i in range(20000): print(i)\nprint('x' * 200000)"))
    assert result(1) == (200, None)
    lines, line = [], 1
    while True:
        piece = glue.post(
            "/log",
            {
                "logId": 1,
                "logDateTim": 1_714_532_645_123,
                "logDateTime": 1_714_532_645_123,
                "fromLineNum": line,
            },
        )["content"]
        if piece["toLineNum"] < line:
            break
        lines += piece["logContent"].splitlines()
        line = piece["toLineNum"] + 1
    assert [text for text in lines if text.isdigit()] == [str(number) for number in range(20000)]
    assert sum(text.count("x") for text in lines if text.startswith("xx")) == 200000


def test_only_allowed_languages_run(start: MakeExecutor) -> None:
    caller = start(allow_glue=frozenset({"python"}))
    assert caller.run(1, **script("SHELL", "echo"))["code"] == 500
    assert caller.run(2, jobId=2, **script("PYTHON", "pass"))["code"] == 200


@truth_table("members", [members_of, members_from_ps])
def test_the_members_of_a_session_are_those_that_have_not_ended(members: Callable[[int], list[int]]) -> None:
    with subprocess.Popen(["sh", "-c", "timeout 60 sleep 60; true"], start_new_session=True) as process:
        eventually(lambda: len(members(process.pid)) == 3)
        assert process.pid in members(process.pid)
        signal_session(process.pid, signal.SIGKILL)
        eventually(lambda: members(process.pid) == [], message="the shell is not waited for yet")
        assert process.wait(10) == -9


def test_the_shell_of_a_script_is_signalled_before_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {1007: 1007, 1008: 1008, 1009: 1008, 1016: 1016, 1024: 1016}
    signalled: list[int] = []
    monkeypatch.setattr(sessions, "members_of", lambda _leader: [*reversed(groups)])
    monkeypatch.setattr(os, "getpgid", groups.__getitem__)
    monkeypatch.setattr(os, "killpg", lambda group, _number: signalled.append(group))
    signal_session(1007, signal.SIGKILL)
    assert signalled == [1007, 1008, 1016]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("source", ["timeout 60 sleep 60", "set -m; timeout 60 sleep 60"])
@pytest.mark.program("bash")
def test_a_killed_script_does_not_run_its_next_command(
    tmp_path: Path, source: str, number: signal.Signals
) -> None:
    for _ in range(25):
        command = ["bash", "-c", f"{source}; touch {tmp_path}/next"]
        with subprocess.Popen(command, start_new_session=True) as process:
            eventually(lambda leader=process.pid: len(members_of(leader)) == 3)
            signal_session(process.pid, number)
            assert process.wait(10) == -number
            eventually(lambda leader=process.pid: members_of(leader) == [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("identify", [identity_of, identity_from_ps])
def test_a_leftover_process_is_killed_only_if_it_is_the_same(
    identify: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor_client.processes.sessions.identity_of", identify)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        identity = identify(process.pid)
        assert not kill_leftover(f"{process.pid}:1")
        assert process.poll() is None
        assert kill_leftover(identity)
        assert process.wait(10) == -9
    assert not kill_leftover(identity)
    assert not kill_leftover("")
