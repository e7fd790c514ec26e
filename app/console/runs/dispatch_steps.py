"""Dispatch of a run as steps with a time line, made of its stored trace.

Lines that are not ours, as of a Java admin or of earlier versions, are shown as they are stored.
"""

from dataclasses import dataclass, field
from typing import Any

from app.clock import Millis
from app.console.runs.trace import FORMATS, trace_line
from app.console.ui.filters import duration
from app.console.web.language import _
from app.domain.runs import trace_templates as lines
from app.domain.runs.trace_templates import find_template
from app.domain.runs.trigger_report import parse_instant
from app.domain.text.texts import plain_text

GOOD, BAD, OPEN = "success", "danger", "none"

_CLAIMS = {
    lines.CLAIMED_AFTER.msgid: "+",
    lines.CLAIMED_BEFORE.msgid: "−",
    lines.CLAIMED_AGAIN.msgid: "",
}
_ANSWERS = (
    lines.ANSWERED_WITH.msgid,
    lines.ANSWERED.msgid,
    lines.UNANSWERED_WITH.msgid,
    lines.UNANSWERED.msgid,
)
_ROUTES = (lines.ROUTE.msgid, lines.ROUTE_SHARD.msgid, lines.PROBE_YES.msgid, lines.PROBE_NO.msgid)
#: heads of lines about addresses
_ADDRESSES = ("Addresses: ", "Drained: ")


@dataclass(slots=True)
class Step:
    """Step of a dispatch."""

    title: str
    #: "success", "danger" or "none"
    state: str = OPEN
    #: time since the step before, or of the step itself, as text
    took: str = ""
    at_ms: Millis | None = None
    #: translated lines of the trace
    notes: list[str] = field(default_factory=list)


def steps_of(trace: str | None) -> list[Step]:
    """Return the steps of a dispatch trace, in its order."""
    steps: list[Step] = []
    for line in plain_text(trace or "").split("\n"):
        if line.strip():
            _add(steps, line)
    return steps


def _add(steps: list[Step], line: str) -> None:
    """Add a line of the trace as a step, or as a note of the step it belongs to."""
    match = find_template(line, lines.LINES)
    msgid, values = (match.msgid, match.values) if match is not None else ("", {})
    if msgid in (lines.TRIGGERING.msgid, lines.CUT.msgid):
        return
    step = _step_of(msgid, values)
    text = trace_line(line)
    if step is not None:
        steps.append(step)
        step.notes += _notes(msgid, values, text)
    elif msgid in _ROUTES or line.startswith(_ADDRESSES):
        _step(steps, _("Routing")).notes.append(text)
    elif steps:
        steps[-1].notes.append(text)
    else:
        steps.append(Step(_("Dispatch trace"), notes=[text]))


def _notes(msgid: str, values: dict[str, Any], text: str) -> list[str]:
    """Return what a line says beside the title and the times of its step."""
    parts = []
    if msgid in (lines.TRIGGER.msgid, lines.TRIGGER_SEEN.msgid):
        parts.append(str(FORMATS["trigger"](values["trigger"])))
    elif msgid == lines.SENT_TO.msgid:
        return [values["address"]]
    elif msgid == lines.ANSWERED.msgid:
        return [_("Code %(code)s", code=values["code"])]
    elif msgid not in _CLAIMS:
        return [text]
    if "node" in values:
        parts.append(_("node %(node)s", node=values["node"]))
    return [" · ".join(parts)]


def _step(steps: list[Step], title: str) -> Step:
    """Return the last step if it has this title, otherwise a new one."""
    if not steps or steps[-1].title != title:
        steps.append(Step(title))
    return steps[-1]


def _step_of(msgid: str, values: dict[str, Any]) -> Step | None:
    """Return the step that begins with a line of this template, if one does."""
    if msgid in (lines.TRIGGER.msgid, lines.TRIGGER_SEEN.msgid):
        return Step(_("Due"), GOOD, at_ms=parse_instant(values["instant"]))
    if msgid in _CLAIMS:
        took = f"{_CLAIMS[msgid]}{_took(values['ms'])}" if "ms" in values else ""
        return Step(_("Claimed"), GOOD, took, parse_instant(values["instant"]))
    if msgid == lines.SENT_TO.msgid:
        return Step(_("Sent"), GOOD)
    if msgid == lines.SENT_AGAIN.msgid:
        return Step(_("Sent again"), OPEN)
    if msgid in _ANSWERS:
        titles = {"accepted": (_("Accepted"), GOOD), "refused": (_("Refused"), BAD)}
        title, state = titles.get(values["fate"], (_("No clear answer"), BAD))
        return Step(title, state, _took(values["ms"]))
    if msgid == lines.RESOLVED.msgid:
        return Step(_("Checked"), OPEN)
    if msgid.startswith("Result: "):
        return Step(_("Not sent"), BAD)
    return None


def _took(ms: str) -> str:
    return duration(int(ms)) if int(ms) else _("%(n)s ms", n=0)
