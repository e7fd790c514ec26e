"""Levels of log lines, as the browser finds them: errors and stack frames in the languages of GLUE."""

import json
import subprocess
from pathlib import Path

import pytest

from app.domain.runs.log_levels import ErrorCount, level_of, split_levels

MODULE = Path(__file__).parents[3] / "app/static/js/log-levels.js"
LEVELS = {
    "error": [
        "2026-11-20 08:00:00 [demo.py:12] ERROR begin",
        "2026-11-20 08:00:00 [com.xxl.Job#run]-[198]-[Thread-3] java.lang.RuntimeException: boom",
        "Traceback (most recent call last):",
        "ValueError: bad amount",
        "ValueError: see the INFO file",
        "requests.exceptions.ConnectionError: refused",
        "java.lang.NullPointerException: x",
        "java.lang.Error",
        "IOException",
        'Exception in thread "main" java.lang.IllegalStateException',
        "Caused by: java.io.IOException: closed",
        "Script1.groovy: 3: unable to resolve class Foo",
        "Error: Cannot find module 'x'",
        "TypeError [ERR_INVALID_ARG]: x",
        "npm ERR! code 1",
        "PHP Fatal error:  Uncaught Exception: no in /app/x.php:3",
        "/tmp/x.sh: line 3: foo: command not found",
        "sh: 1: foo: not found",
        "cat: a.txt: No such file or directory",
        "Get-Foo : The term 'Get-Foo' is not recognized as the name of a cmdlet",
        "    + CategoryInfo          : ObjectNotFound: (x:String) [], CommandNotFoundException",
        "panic: runtime error: index out of range",
    ],
    "frame": [
        '  File "/app/job.py", line 3, in run',
        "\tat com.acme.Job.run(Job.java:12)",
        "    at Object.<anonymous> (/app/x.js:1:7)",
        "\t... 12 more",
        "#0 {main}",
        "#1 /app/x.php(12): foo()",
        "  thrown in /app/x.php on line 3",
        "2026-11-20 08:00:00 \tat com.acme.Job.run(Job.java:12)",
        "At line:1 char:1",
    ],
    "warn": [
        "2026-11-20 08:00:00 WARNING low disk",
        "PHP Warning:  Undefined variable",
        "DeprecationWarning: x",
    ],
    "": [
        "2026-11-20 08:00:00 [demo.py:12] INFO begin",
        "0 errors, 3 warnings",
        "no Error found",
        "handled 3 Exceptions",
        "ExceptionMapper started",
        "ERROR_COUNT=0",
        "the terror of it",
        "look at this",
        "page not found: 404",
        "# 1 a heading",
        "#12 orders closed",
        "INFO ErrorHandler registered for NotFoundException",
        "10:00:00.123 [main] INFO c.a.Job - saw IOException",
        "2026-11-20 08:00:00   INFO saw IOException",
    ],
}


@pytest.mark.node
def test_errors_and_stack_frames_are_recognised_in_all_languages() -> None:
    lines = [line for of_level in LEVELS.values() for line in of_level]
    code = f"import {{ levelOf }} from {json.dumps(MODULE.as_uri())};"
    code += f"console.log(JSON.stringify({json.dumps(lines)}.map((line) => levelOf(line))));"
    code += "console.log(levelOf('    run()', 'frame'), levelOf('x = 1', 'frame') === '');"
    found = subprocess.run(
        ["node", "--input-type=module", "-e", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    wanted = [(line, level) for level, of_level in LEVELS.items() for line in of_level]
    assert list(zip(lines, json.loads(found[0]), strict=True)) == wanted
    assert found[1] == "frame true"


def test_the_server_recognises_the_same_ones() -> None:
    lines = [(line, level) for level, of_level in LEVELS.items() for line in of_level]
    assert [(line, level_of(line)) for line, _ in lines] == lines
    assert level_of("    run()", "frame") == "frame"
    assert level_of("x = 1", "frame") == ""


def test_an_error_with_its_stack_counts_once() -> None:
    errors = ErrorCount()
    errors.add(["Traceback (most recent call last):", '  File "a.py", line 2, in f'])
    errors.add(["    g()", "ValueError: no", "fine", "\x1b[31mERROR\x1b[0m again"])
    assert errors.count == 2


def test_lines_have_their_level_and_no_colours() -> None:
    lines = ['  File "a.py", line 2, in f', "    g()", "\x1b[31mERROR\x1b[0m again", "fine"]
    assert split_levels(lines) == [
        ("frame", lines[0]),
        ("frame", lines[1]),
        ("error", "ERROR again"),
        ("", "fine"),
    ]
