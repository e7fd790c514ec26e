"""Limits of GLUE scripts: a script that reaches one fails with a message that names it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from executor_client import ExecutorConfig
from executor_client.config.script_limits import ScriptLimits
from executor_client.processes.tree import Command
from tests.support.executor_client import Caller, MakeExecutor
from tests.support.executor_client_execution import script
from tests.support.truth_table import truth_table

Result = Callable[[int], tuple[int, str | None]]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is enforced by Linux only")

GROW = "data = bytearray(1 << 30)"
WRITE = "open('big', 'wb').write(b'x' * (3 << 20))"
LOOP = "while True: pass"
OPEN = "import os\nfiles = [os.open('/dev/null', 0) for _ in range(100)]"


@pytest.fixture
def glue(start: MakeExecutor) -> Caller:
    return start(
        allow_glue=frozenset({"python", "shell", "php", "nodejs"}),
        script_cpu_s=1,
        script_memory_mb=512,
        script_file_mb=2,
        script_open_files=40,
    )


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        (
            "SHELL",
            "while :; do :; done",
            "CPU time limit of 1 s (XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS) reached",
        ),
        ("SHELL", f"{sys.executable} -c '{LOOP}'; exit $?", "CPU time limit of 1 s "),
        ("PYTHON", WRITE, "file size limit of 2 MiB (XXL_JOB_EXECUTOR_SCRIPT_FILE_MB) probably reached"),
        ("SHELL", "exec head -c 3145728 /dev/zero > big", "file size limit of 2 MiB "),
        pytest.param(
            "PYTHON", GROW, "memory limit of 512 MiB (XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB)", marks=linux
        ),
        ("PYTHON", OPEN, "open file limit of 40 (XXL_JOB_EXECUTOR_SCRIPT_OPEN_FILES) probably reached"),
    ],
    ids=["cpu", "cpu of a child", "file", "file by a signal", "memory", "open files"],
)
def test_a_script_beyond_a_limit_fails_with_its_name(
    glue: Caller, result: Result, language: str, source: str, expected: str
) -> None:
    glue.accepted(1, **script(language, source))
    code, msg = result(1)
    assert code == 500
    assert (msg or "").startswith("script exit value(")
    assert f") is failed: {expected}" in (msg or "")


#: prints soft limits
SHOW = """import resource
print(*(resource.getrlimit(kind)[0] for kind in (
    resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS,
    resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)))
"""


def test_the_limits_are_set_before_the_script_starts(start: MakeExecutor, result: Result) -> None:
    limits: dict[str, Any] = {"script_cpu_s": 60, "script_file_mb": 3, "script_memory_mb": 4096}
    glue = start(allow_glue=frozenset({"python"}), script_processes=200, script_open_files=99, **limits)
    glue.accepted(1, **script("PYTHON", SHOW))
    assert result(1) == (200, None)
    assert f"\n0 60 {3 << 20} {4096 << 20} 200 99\n" in glue.log(1)["logContent"]


def test_by_default_only_core_dumps_and_very_large_files_are_limited() -> None:
    assert ExecutorConfig().script_limits == ScriptLimits(0, 0, 10_240, 0, 0)
    command = Command(("/bin/sh", "x.sh"), Path("/"), {})
    settings = ScriptLimits().apply_to(command).argv[4:]
    assert settings == ("RLIMIT_CORE=0:0", "RLIMIT_FSIZE=10737418240:10737418240", "--", *command.argv)


def test_an_ended_pipe_ends_a_script_as_in_a_terminal(glue: Caller, result: Result) -> None:
    """Python ignores SIGPIPE; a launcher that passed that on would change what scripts see."""
    glue.accepted(1, **script("SHELL", "yes | head -1; echo ${PIPESTATUS[0]}"))
    assert result(1) == (200, None)
    assert "\ny\n141\n" in glue.log(1)["logContent"]


@truth_table(
    "output, expected",
    [
        ("cp: error writing 'big': File too large\ncleaning up\n", True),
        ("OSError: [Errno 27] File too large: 'big'", True),
        ("fwrite(): Write of 8192 bytes failed with errno=27 File too large in x.php", True),
        ("Error: File too large (os error 27)", True),
        ("Error: EFBIG: file too large, write", True),
        ("x.sh: line 1:  8123 File size limit exceeded(core dumped) head -c 3145728", True),
        ("File size limit exceeded", True),
        ("cp: error writing 'big': File too large\r\n", True),
        ("File too large at /work/1/2.pl line 3.", True),
        ("cannot write: File too large at x.pl line 3, <STDIN> line 7.\ncleaning up", True),
        ("write /data/out 1: file too large", True),
        ("2024/05/01 03:04:05 write out.csv: file too large\n", True),
        ("panic: write out.csv: file too large", True),
        ("413: cannot write upload: file too large", False),
        ("upload rejected: File too large at most 50 MB", False),
        ("curl: server answered 413 Request Entity: file too large", False),
        ("upload rejected: File too large (50 MB)", False),
        ("413: file size limit exceeded", False),
        ("HTTP 413 File size limit exceeded", False),
        ("exit of request 127: No such file", False),
    ],
)
def test_only_messages_of_the_system_show_the_limit_of_files(output: str, expected: bool) -> None:
    reached = ScriptLimits().find_reached(1, output)
    assert reached.startswith("file size limit of 10240 MiB") == expected
    assert bool(reached) == expected


@truth_table(
    "code, output, expected",
    [
        (1, "", ""),
        (
            1,
            "Traceback …\nMemoryError\n",
            "memory limit of 64 MiB (XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB) probably reached",
        ),
        (134, "FATAL ERROR: … JavaScript heap out of memory", "memory limit of 64 MiB"),
        (1, "fork: retry: Resource temporarily unavailable", "process limit of 9 "),
        (1, "OSError: [Errno 27] File too large", ""),
    ],
)
def test_the_output_shows_which_limit_was_reached(code: int, output: str, expected: str) -> None:
    limits = ScriptLimits(memory_mb=64, processes=9, file_mb=0)
    reached = limits.find_reached(code, output)
    assert reached.startswith(expected)
    assert bool(reached) == bool(expected)
