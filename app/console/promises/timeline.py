"""Timeline of an incident: when it was opened, its messages, who acknowledged it, and its end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.clock import Millis
from app.console.ui.filters import duration
from app.console.ui.labels import ALARM_STATES, answer_text, target_title
from app.console.ui.promise_words import STEPS, breaches_text
from app.console.web.language import _, lazy_pgettext
from app.domain.enums import AlarmState, IncidentState, MessageStep
from app.models.promise import Incident, IncidentMessage
from app.services.alarms.targets import displayed
from app.services.promises.incidents import REPORTED_AS_FAILURE

#: title of the first entry
START = lazy_pgettext("incident", "Opened")
_UNDERWAY = frozenset({AlarmState.PENDING, AlarmState.SENDING})
_SEND_STATES = frozenset({AlarmState.SENT, AlarmState.PARTLY, AlarmState.FAILED})


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What became of a message at one target; ``problem`` empty: it was accepted."""

    name: str
    problem: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the timeline; ``at_ms`` is to come if ``is_planned``."""

    at_ms: Millis
    title: str
    #: icon and the class of its colour
    glyph: str
    tone: str
    text: str = ""
    results: Sequence[TargetResult] = ()
    is_planned: bool = False


def timeline_of(incident: Incident, messages: Sequence[IncidentMessage], *, now_ms: Millis) -> list[Entry]:
    """Return what has happened to an incident, and what is planned, oldest first."""
    entries = [
        Entry(incident.opened_ms, str(START), "exclamation-octagon-fill", "danger", breaches_text(incident)),
        *(entry for message in messages if (entry := _of_message(message, incident)) is not None),
    ]
    if incident.acknowledged_ms:
        text = _("by %(name)s", name=incident.acknowledged_by)
        entries.append(Entry(incident.acknowledged_ms, _("Acknowledged"), "person-check", "info", text))
    if incident.state == IncidentState.KEPT_AGAIN:
        length = duration(incident.ended_ms - incident.opened_ms)
        text = _("after %(time)s", time=length)
        entries.append(Entry(incident.ended_ms, _("Kept again"), "check-circle-fill", "success", text))
    elif incident.state == IncidentState.WITHDRAWN:
        text = _("The job or the promise was removed.")
        entries.append(Entry(incident.ended_ms, _("No longer applies"), "slash-circle", "none", text))
    return sorted(entries, key=lambda entry: (entry.is_planned, entry.at_ms))


def _of_message(message: IncidentMessage, incident: Incident) -> Entry | None:
    """Return the entry of a message; None for one after the first that was not needed."""
    step, state = MessageStep(message.step), AlarmState(message.state)
    is_escalation = step is MessageStep.ESCALATED
    if step is MessageStep.KEPT_AGAIN and _is_dropped(state, message.outcome):
        return None
    if (
        is_escalation
        and state not in _SEND_STATES
        and (state is AlarmState.SILENT or incident.state != IncidentState.OPEN)
    ):
        return None
    results = _results(message.outcome)
    is_planned = is_escalation and state in _UNDERWAY and not results
    text = (
        _("planned, unless it is acknowledged before") if is_planned else _state_text(state, message.outcome)
    )
    glyph = "megaphone" if is_escalation else "envelope"
    tone = "danger" if state in (AlarmState.FAILED, AlarmState.PARTLY) else "none"
    return Entry(message.next_ms, str(STEPS[step]), glyph, tone, text, results, is_planned)


def _is_dropped(state: AlarmState, outcome: str | None) -> bool:
    """Whether a message was not needed any more; one without a channel has an empty result."""
    return state is AlarmState.SILENT and outcome is None


def _state_text(state: AlarmState, outcome: str | None) -> str:
    if REPORTED_AS_FAILURE in (outcome or ""):
        return _("not sent: the failed run has been reported already")
    if _is_dropped(state, outcome):
        return _("not sent: kept again before the end of a mute")
    return str(ALARM_STATES[state])


def _results(outcome: str | None) -> list[TargetResult]:
    """Return the targets of a message with what each answered."""
    try:
        answers = json.loads(outcome or "{}")
    except ValueError:
        return []
    if not isinstance(answers, dict):
        return []
    return [
        TargetResult(target_title(displayed(str(name))), "" if answer == "ok" else answer_text(str(answer)))
        for name, answer in answers.items()
        if name
    ]
