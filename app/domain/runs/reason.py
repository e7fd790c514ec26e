"""Reason of a failed or waiting run, in one line, extracted from its stored messages.

Sentences of ours stay English, as they are stored; the console translates them. Texts of executors are shown
as they are. Messages of adopted rows and of a Java admin contain HTML.
"""

import re
from typing import NamedTuple

from app.domain.enums import HandleCode
from app.domain.runs.outcome import OPEN, outcome_of
from app.domain.runs.trace_templates import (
    ANSWERED_WITH,
    BAD_CODE,
    RESOLVED,
    UNANSWERED_WITH,
    fill,
    find_template,
)
from app.domain.text.texts import N_, Text, plain_text

#: longest reason, in characters
REASON_MAX = 300
#: head of the lines about runs that could not be sent
NOT_SENT = "Result: not sent, "
#: heads of the trace's lines about the outcome of a sending
_RESULTS = ("Result: ", "Resolver: ")

_ACCEPTED = "Result: accepted"

BEING_SENT = N_("being sent to an instance")
TIMED_OUT = N_("timed out after %(seconds)s s")
#: reasons that are stored nowhere
OWN_REASONS: list[Text] = [BEING_SENT, TIMED_OUT]

_FRAME = re.compile(r'^[ \t]+File "', re.MULTILINE)
#: exceptions that only wrap another one
_WRAPPER = re.compile(r"[\w.$]*(InvocationTarget|Execution|Completion|UndeclaredThrowable)Exception:?\s*")
_CAUSE = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
#: what executors report of every time-out
_PLAIN_TIMEOUT = re.compile(r"(scheduler )?job execute timeout\.?", re.IGNORECASE)
_LIMIT = re.compile(r"; timeout: ([1-9]\d{0,8}) s;")
#: ``label：value`` of a Java admin
_JAVA_MESSAGE = re.compile(r"msg\s*[:\uff1a]\s*(.*)", re.IGNORECASE)
_ABSENT = ("", "null", "none")


class Messages(NamedTuple):
    """Parts of a run's messages that are enough for its reason; short messages are in both parts."""

    trace_end: str = ""
    result_start: str = ""
    result_end: str = ""


def has_reason(trigger_code: int, handle_code: int) -> bool:
    """Whether a run with these codes failed or waits; the others need no reason."""
    return outcome_of(trigger_code, handle_code) not in ("success", "running")


def find_reason(trigger_code: int, handle_code: int, messages: Messages) -> str:
    """Return why a run failed or waits, in one line of at most REASON_MAX characters; empty: not known."""
    outcome = outcome_of(trigger_code, handle_code)
    if not has_reason(trigger_code, handle_code):
        return ""
    if handle_code == HandleCode.NONE:
        reason = _reason_in_trace(messages.trace_end) or (BEING_SENT if outcome in OPEN else "")
    elif outcome == "timeout":
        reason = _reason_of_timeout(messages)
    else:
        reason = _reason_in_result(messages) or fill(BAD_CODE, code=handle_code)
    line = " ".join(reason.split())
    return line if len(line) <= REASON_MAX else line[: REASON_MAX - 1] + "…"


def _reason_in_trace(trace: str) -> str:
    """Return the last outcome a dispatch trace names."""
    lines = [line.strip() for line in plain_text(trace).split("\n")]
    lines = [line for line in lines if line and not (line.startswith(">>>") and line.endswith("<<<"))]
    outcome_line = next((line for line in reversed(lines) if line.startswith(_RESULTS)), "")
    if outcome_line.startswith(_ACCEPTED):
        return ""
    if outcome_line:
        template_match = find_template(outcome_line, (ANSWERED_WITH, UNANSWERED_WITH, RESOLVED))
        return (
            template_match.values["reason"]
            if template_match is not None
            else outcome_line.removeprefix(NOT_SENT)
        )
    for line in reversed(lines):
        match = _JAVA_MESSAGE.fullmatch(line)
        if match is None or match[1].strip().lower() not in _ABSENT:
            return match[1] if match is not None else line
    return ""


def _reason_of_timeout(messages: Messages) -> str:
    message = _reason_in_result(messages)
    limit = _LIMIT.search(messages.trace_end)
    if limit is not None and (not message or _PLAIN_TIMEOUT.fullmatch(message)):
        return fill(TIMED_OUT, seconds=limit[1])
    return message


def _reason_in_result(messages: Messages) -> str:
    """Return the exception of a stack trace, or else the first line of an executor's message."""
    end = plain_text(messages.result_end)
    frames = list(_FRAME.finditer(end))
    if frames:  # Python: the exception follows the last frame
        below = end[frames[-1].end() :].split("\n")[1:]
        error_line = next((line for line in below if line[:1].strip()), "")
        if error_line:
            return error_line
    start = plain_text(messages.result_start)
    first = next((line.strip() for line in start.split("\n") if line.strip()), "")
    cause = _CAUSE.search(start) or _CAUSE.search(end)
    return cause[1] if cause is not None and _WRAPPER.fullmatch(first) else first
