"""The story of a run in the reader's language and zone.

It is stored in English, as scripts read it; notes of others stay as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from flask import Flask

from app.console.ui.filters import absolute, plain_text
from app.console.ui.labels import BLOCK_STRATEGIES, ROUTE_STRATEGIES, TRIGGER_TYPES
from app.console.web.current import translate
from app.console.web.language import lazy_gettext as _l
from app.domain.evidence import Fate, ResolveAction, Sign
from app.domain.texts import Text
from app.domain.trace_templates import CHILDREN, CHILDREN_HEAD, LINES, REASONS, RESULTS, WHYS, find_template

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


def run_story(text: str) -> str:
    """Return what `trigger_msg` tells, line by line."""
    return "\n".join(_said(line, LINES) for line in plain_text(text).split("\n"))


def run_result(text: str) -> str:
    """Return what `handle_msg` tells: the executor's words as they are, ours about a kill and about children in the reader's language."""
    own, head, children = plain_text(text).rpartition(CHILDREN_HEAD)
    if not head:
        return _said(children, RESULTS)
    return own + "\n".join(_said(line, CHILDREN) for line in (head + children).split("\n"))


def _said(text: str, templates: Sequence[Text]) -> str:
    found = find_template(text, templates)
    if found is None:
        return text
    return translate(
        Text(found.msgid, {name: SPOKEN.get(name, str)(value) for name, value in found.values.items()})
    )


def _instant(text: str) -> str:
    try:
        at = datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f %z")
        return f"{absolute(int(at.timestamp()) * 1000)}.{at.microsecond // 1000:03d}"
    except (ValueError, OverflowError):
        return text


def _word_of(words: Mapping[Any, str]) -> Callable[[str], str]:
    return lambda value: str(words.get(value, value))


#: what a parameter is said by; any other is said as it stands
SPOKEN: dict[str, Callable[[str], str]] = {
    "instant": _instant,
    "trigger": _word_of(TRIGGER_TYPES),
    "route": _word_of(ROUTE_STRATEGIES),
    "block": _word_of(BLOCK_STRATEGIES),
    "fate": _word_of(FATES),
    "outcome": _word_of(OUTCOMES),
    "sign": _word_of(SIGNS),
    "reason": lambda text: _said(text, REASONS),
    "why": lambda text: _said(text, WHYS),
}


def init_app(app: Flask) -> None:
    """Register the filters with the templates."""
    app.add_template_filter(run_story)
    app.add_template_filter(run_result)
