"""Reason of a run, from the messages that executors, our pipeline and Java admins store."""

from app.domain.runs.reason import REASON_MAX, Messages, find_reason
from tests.support.truth_table import truth_table

HEAD = "Route: FIRST; block strategy: SERIAL_EXECUTION; timeout: 30 s; retries left: 0\n>>> trigger <<<\n"
REFUSED = HEAD + "Sent to: http://a/\nResult: refused, answered after 4 ms, code 500"
JAVA = (
    "任务触发类型：Cron触发<br>执行器-地址列表：null<br><br>"
    '<span style="color:#00c0ef;" > >>>>>>>>>>>触发调度<<<<<<<<<<< </span><br>'
)
PYTHON = (
    'Traceback (most recent call last):\n  File "/srv/jobs.py", line 3, in load\n    row["id"]\n'
    "KeyError: 'id'\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    'Traceback (most recent call last):\n  File "/srv/jobs.py", line 9, in run\n    load()\n    ~~~~^^\n'
    "app.errors.BadRow: row 7\n  has no id\n"
)
STACK = "java.lang.IllegalStateException: no ledger\n\tat com.shop.Close.run(Close.java:7)\nCaused by: a.B: c"
WRAPPED = (
    "java.lang.reflect.InvocationTargetException\n\tat java.base/X.y(Z.java:1)\n" + "Caused by: a.B: c\n"
)


@truth_table(
    "trace, reason",
    [
        (REFUSED + ": glue type not supported", "glue type not supported"),
        (REFUSED, "Result: refused, answered after 4 ms, code 500"),
        (
            HEAD + "Result: refused, no answer after 3 ms, code 500: connection refused",
            "connection refused",
        ),
        (HEAD + "Result: not sent, no executor of a is registered", "no executor of a is registered"),
        (REFUSED + ": a\n>>> again <<<\nResult: not sent, the lease expired", "the lease expired"),
        ("cut in a line: x\nResult: refused, answered after 4 ms, code 500: late", "late"),
        (JAVA + "调度失败：执行器地址为空<br>", "调度失败：执行器地址为空"),
        (
            JAVA + "触发调度：<br>address：http://a/<br>code：500<br>msg：error(Connection refused)<br><br>"
            '<span style="color:#F39C12;" > >>>>>>>>>>>失败重试触发<<<<<<<<<<< </span><br>',
            "error(Connection refused)",
        ),
        (JAVA + "触发调度：<br>code：500<br>msg：null", "code：500"),
        (HEAD + "Result: accepted, answered after 4 ms, code 200", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_a_run_that_was_not_started_has_the_reason_of_its_trace(trace: str, reason: str) -> None:
    assert find_reason(500, 0, Messages(trace)) == reason


@truth_table(
    "result, reason",
    [
        (PYTHON, "app.errors.BadRow: row 7"),
        ("job 3 failed\n" + PYTHON, "app.errors.BadRow: row 7"),
        ('Traceback (most recent:\n  File "/srv/jobs.py", line 3\n', "Traceback (most recent:"),
        (STACK, "java.lang.IllegalStateException: no ledger"),
        (WRAPPED, "a.B: c"),
        ("\n  412 of 500 orders\tfailed\nsecond line", "412 of 500 orders failed"),
        ("first<br>second", "first"),
        ("killed by admin: ended", "killed by admin: ended"),
        ("", "handle code 500 reported"),
        ("x" * 400, "x" * (REASON_MAX - 1) + "…"),
    ],
)  # fmt: skip
def test_a_failed_run_has_the_exception_or_first_line_of_its_message(result: str, reason: str) -> None:
    assert find_reason(200, 500, Messages(REFUSED, result, result)) == reason


def test_the_exception_is_found_in_the_end_of_a_long_message() -> None:
    assert find_reason(200, 500, Messages("", PYTHON[:30], PYTHON[-120:])) == "app.errors.BadRow: row 7"


@truth_table(
    "trace, result, reason",
    [
        (HEAD, "", "timed out after 30 s"),
        (HEAD, "job execute timeout ", "timed out after 30 s"),
        (HEAD, "stopped at page 7", "stopped at page 7"),
        ("", "scheduler job execute timeout", "scheduler job execute timeout"),
        (HEAD.replace("30 s", "0 s"), "", ""),
    ],
)
def test_a_timed_out_run_has_its_limit_or_its_own_message(trace: str, result: str, reason: str) -> None:
    assert find_reason(200, 502, Messages(trace, result, result)) == reason


@truth_table(
    "trigger_code, handle_code, trace, reason",
    [
        (200, 200, REFUSED, ""),
        (200, 0, REFUSED, ""),
        (0, 0, "", "being sent to an instance"),
        (0, 0, HEAD + "Result: unknown, no answer after 9 ms, code 500: no answer", "no answer"),
        (504, 0, REFUSED + "\nResolver: unresolved, no evidence within 300 s; the executor is silent",
         "no evidence within 300 s; the executor is silent"),
    ],
)  # fmt: skip
def test_other_runs_have_a_reason_only_if_they_wait_or_are_unresolved(
    trigger_code: int, handle_code: int, trace: str, reason: str
) -> None:
    assert find_reason(trigger_code, handle_code, Messages(trace, "done", "done")) == reason
