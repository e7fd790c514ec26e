"""Scripts: arguments, result, output, versions, surroundings, and how they end."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor_client.processes import identity_of, kill_leftover
from tests.eventually import eventually
from tests.executor_client.conftest import Caller, MakeExecutor
from tests.executor_client.test_runs import sleepers

Result = Callable[[int], tuple[int, str | None]]
ALL = frozenset({"python", "shell", "php", "nodejs", "powershell"})


@pytest.fixture
def glue(start: MakeExecutor, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setenv("XXL_JOB_ACCESS_TOKEN", "secret-in-the-environment")
    monkeypatch.setenv("LC_TEST", "C")
    return start(allow_glue=ALL)


def script(language: str, source: str, **changes: Any) -> dict[str, Any]:
    return {"glueType": f"GLUE_{language}", "glueSource": source, **changes}


SCRIPTS = {
    "SHELL": ("bash", 'echo "got $1|$2|$3"'),
    "PYTHON": ("python3", "import sys\nprint('got ' + '|'.join(sys.argv[1:]))"),
    "NODEJS": ("node", "console.log('got ' + process.argv.slice(2).join('|'))"),
    "PHP": ("php", "<?php echo 'got ' . implode('|', array_slice($argv, 1)) . \"\\n\";"),
    "POWERSHELL": ("pwsh", "Write-Output \"got $($args -join '|')\""),
}


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_script_gets_parameter_and_shard(glue: Caller, result: Result, language: str) -> None:
    program, source = SCRIPTS[language]
    glue.accepted(1, **script(language, source, executorParams="a b", broadcastIndex=1, broadcastTotal=3))
    if shutil.which(program) is None:
        code, msg = result(1)
        assert (code, f"{program} is not installed" in (msg or "")) == (500, True)
    else:
        assert result(1) == (200, None)
        assert "\ngot a b|1|3\n" in glue.log(1)["logContent"]


def test_the_exit_code_is_the_result(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("SHELL", "echo out; echo err >&2; exit 7"))
    assert result(1) == (500, "script exit value(7) is failed")
    text = glue.log(1)["logContent"]
    assert "out\n" in text
    assert "err\n" in text


def test_output_arrives_line_by_line_while_it_runs(glue: Caller, result: Result, tmp_path: Path) -> None:
    flag = tmp_path / "go"
    glue.accepted(1, **script("SHELL", f"echo first; until [ -e {flag} ]; do sleep 0.02; done; printf 'a\\r\\nlast'"))
    eventually(lambda: "first\n" in glue.log(1)["logContent"])
    flag.touch()
    assert result(1) == (200, None)
    assert "\na\nlast\n" in glue.log(1)["logContent"]


def test_a_script_sees_no_secret_and_works_in_its_own_folder(glue: Caller, result: Result) -> None:
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
    assert result(1) == (500, "change job source or glue type, and terminate the old job thread. [job running, killed]")
    assert result(2) == (200, None)
    assert [path.name for path in (tmp_path / "executor-logs" / "gluesource").iterdir()] == ["1_2000.sh"]


def test_a_script_that_was_tampered_with_is_written_anew(glue: Caller, result: Result, tmp_path: Path) -> None:
    fields = script("SHELL", "echo mine", glueUpdatetime=5)
    glue.accepted(1, **fields)
    result(1)
    (tmp_path / "executor-logs" / "gluesource" / "1_5.sh").write_text("echo foreign")
    glue.accepted(2, **fields)
    result(2)
    assert "mine\n" in glue.log(2)["logContent"]


@pytest.mark.parametrize(
    "source", ["sleep 60 & echo ready; sleep 60", "trap '' TERM; sleep 60 & echo ready; while true; do sleep 60; done"]
)
@pytest.mark.parametrize("timeout", [0, 1])
def test_a_script_dies_with_its_descendants(glue: Caller, result: Result, source: str, timeout: int) -> None:
    glue.accepted(1, **script("SHELL", source, executorTimeout=timeout))
    eventually(lambda: "ready" in glue.log(1)["logContent"])
    mine = eventually(sleepers)
    if timeout:
        assert result(1) == (502, "job execute timeout ")
    else:
        glue.post("/kill", {"jobId": 1})
        assert result(1) == (500, "scheduling center kill job. [job running, killed]")
    eventually(lambda: not set(mine) & set(sleepers()), message="a descendant survives")
    eventually(lambda: not any(thread.name == "job-1" and glue.is_busy() for thread in threading.enumerate()))


def test_a_script_may_leave_something_behind_without_blocking(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("SHELL", "sleep 3 & echo done"))
    assert result(1) == (200, None)
    assert "done\n" in glue.log(1)["logContent"]


def test_much_output_is_kept_whole(glue: Caller, result: Result) -> None:
    glue.accepted(1, **script("PYTHON", "for i in range(20000): print(i)\nprint('x' * 200000)"))
    assert result(1) == (200, None)
    lines, line = [], 1
    while True:
        piece = glue.post("/log", {"logId": 1, "logDateTim": 1_714_532_645_123, "logDateTime": 1_714_532_645_123, "fromLineNum": line})[
            "content"
        ]
        if piece["toLineNum"] < line:
            break
        lines += piece["logContent"].splitlines()
        line = piece["toLineNum"] + 1
    assert [text for text in lines if text.isdigit()] == [str(number) for number in range(20000)]
    assert sum(text.count("x") for text in lines if text.startswith("xx")) == 200000


def test_only_named_languages_run(start: MakeExecutor) -> None:
    caller = start(allow_glue=frozenset({"python"}))
    assert caller.run(1, **script("SHELL", "echo"))["code"] == 500
    assert caller.run(2, jobId=2, **script("PYTHON", "pass"))["code"] == 200


def test_a_leftover_is_ended_only_if_it_is_the_same_process() -> None:
    import subprocess

    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        identity = identity_of(process.pid)
        assert not kill_leftover(f"{process.pid}:1")
        assert process.poll() is None
        assert kill_leftover(identity)
        assert process.wait(10) == -9
    assert not kill_leftover(identity)
    assert not kill_leftover("")
