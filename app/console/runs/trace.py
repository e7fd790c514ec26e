"""Dispatch trace and result of a run in the reader's language and zone.

They are stored in English, as scripts read them; texts of executors and other programs are shown unchanged.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flask import Flask

from app.console.runs.progress import progress_text
from app.console.ui.filters import absolute
from app.console.ui.labels import BLOCK_STRATEGIES, ROUTE_STRATEGIES, TRIGGER_TYPES
from app.console.web.current import translate
from app.console.web.language import lazy_gettext as _l
from app.domain.runs.evidence import Fate, ResolveAction, Sign
from app.domain.runs.log_levels import split_levels
from app.domain.runs.reason import NOT_SENT, OWN_REASONS, Messages, find_reason
from app.domain.runs.result_tables import table_of
from app.domain.runs.trace_templates import (
    CHILDREN,
    CHILDREN_HEAD,
    LINES,
    NOT_FILLED,
    REASONS,
    RESULTS,
    WHYS,
    find_template,
)
from app.domain.runs.trigger_report import parse_instant
from app.domain.text.texts import Text, plain_text
from app.models.log import JobLog
from executor_client.wire.run_reports import Progress

FATES = {Fate.ACCEPTED: _l("accepted"), Fate.REFUSED: _l("refused"), Fate.UNKNOWN: _l("unknown")}
OUTCOMES = {
    ResolveAction.WAIT: _l("wait"),
    ResolveAction.STARTED: _l("started"),
    ResolveAction.SEND_AGAIN: _l("send again"),
    ResolveAction.SEND_ELSEWHERE: _l("send elsewhere"),
    ResolveAction.UNRESOLVED: _l("unresolved"),
}
SIGNS: dict[str, Any] = {
    Sign.BUSY: _l("busy"),
    Sign.ENDED: _l("ended"),
    Sign.NO_TRACE: _l("no trace"),
    Sign.INCONCLUSIVE: _l("inconclusive"),
    Sign.SILENT: _l("silent"),
    # as stored by earlier versions
    "over": _l("ended"),
    "mute": _l("inconclusive"),
}


#: templates of runs that could not be sent; what their translations begin with is not part of the reason
UNSENT = [line for line in LINES if line.msgid.startswith(NOT_SENT) and line is not NOT_FILLED]
NOT_SENT_HEAD = re.compile(r"^[^,\uff0c]*[,\uff0c]\s*")


def trace_line(line: str) -> str:
    """Translate a line of `trigger_msg`."""
    return _translate(line, LINES)


def run_result(text: str) -> str:
    """Translate our texts in `handle_msg`, about kills and child jobs.

    The executor's own text is unchanged.
    """
    message, head, children = plain_text(text).rpartition(CHILDREN_HEAD)
    if not head:
        return _translate(children, RESULTS)
    return message + "\n".join(_translate(line, CHILDREN) for line in (head + children).split("\n"))


def run_reason(run: JobLog | str) -> str:
    """Return the reason of a run in the reader's language: of a run read with its messages, or as found."""
    text = run if isinstance(run, str) else _reason_of(run)
    if not text:
        return ""
    not_sent = _translate(NOT_SENT + text, UNSENT)
    if not_sent != NOT_SENT + text:
        return NOT_SENT_HEAD.sub("", not_sent)
    return _translate(text, [*OWN_REASONS, *RESULTS, *LINES, *REASONS])


def _reason_of(run: JobLog) -> str:
    result = run.handle_msg or ""
    return find_reason(run.trigger_code, run.handle_code, Messages(run.trigger_msg or "", result, result))


def _translate(text: str, templates: Sequence[Text]) -> str:
    match = find_template(text, templates)
    if match is None:
        return text
    return translate(
        Text(match.msgid, {name: FORMATS.get(name, str)(value) for name, value in match.values.items()})
    )


def _instant(text: str) -> str:
    at_ms = parse_instant(text)
    return text if at_ms is None else f"{absolute(at_ms)}.{at_ms % 1000:03d}"


def _label_of(labels: Mapping[Any, str]) -> Callable[[str], str]:
    return lambda value: str(labels.get(value, value))


#: parameter of a template -> its translation; others are shown unchanged
FORMATS: dict[str, Callable[[str], str]] = {
    "instant": _instant,
    "trigger": _label_of(TRIGGER_TYPES),
    "route": _label_of(ROUTE_STRATEGIES),
    "block": _label_of(BLOCK_STRATEGIES),
    "fate": _label_of(FATES),
    "outcome": _label_of(OUTCOMES),
    "sign": _label_of(SIGNS),
    "reason": lambda text: _translate(text, REASONS),
    "why": lambda text: _translate(text, WHYS),
}


def init_app(app: Flask) -> None:
    """Register the filters with the templates."""
    app.add_template_filter(run_result)
    app.add_template_filter(table_of, "result_table")
    app.add_template_filter(Progress.parse, "progress")
    app.add_template_filter(progress_text)
    app.add_template_filter(split_levels)
    app.add_template_filter(run_reason, "reason")
