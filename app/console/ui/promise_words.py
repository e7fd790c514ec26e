"""Promises and incidents in words: what a job promises, what is broken, and the states of both."""

import json
from collections.abc import Callable, Mapping
from math import floor
from typing import Any

from flask import Flask
from flask_babel import format_decimal

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.console.ui.filters import comma_list
from app.console.web.language import _, lazy_pgettext, ngettext
from app.console.web.language import lazy_gettext as _l
from app.domain.enums import IncidentState, MessageStep, PromiseKind, PromiseState
from app.domain.promises.incidents import Subject, broken_promises, subject_of
from app.domain.promises.promise import SWITCH_OFF, Promise, promise_of, read_escalation
from app.models.promise import Incident
from app.services.promises.lists import Verdicts

#: kinds in the order of the selects
KINDS: Mapping[PromiseKind, str] = {
    PromiseKind.STARTS_WITHIN: _l("starts within"),
    PromiseKind.FINISHES_WITHIN: _l("succeeds within"),
    PromiseKind.FINISHES_BY: _l("succeeds by"),
    PromiseKind.SUCCEEDS_EVERY: _l("succeeds at least every"),
    PromiseKind.TAKES_AT_MOST: _l("takes at most"),
    PromiseKind.TAKES_AT_LEAST: _l("takes at least"),
    PromiseKind.TAKES_USUAL_TIMES: _l("takes at most, times the usual"),
    PromiseKind.FAILS_AT_MOST: _l("fails in a row at most"),
}
INCIDENT_STATES: Mapping[IncidentState, str] = {
    IncidentState.OPEN: lazy_pgettext("incident", "Open"),
    IncidentState.ACKNOWLEDGED: _l("Acknowledged"),
    IncidentState.KEPT_AGAIN: _l("Kept again"),
    IncidentState.WITHDRAWN: _l("No longer applies"),
}
#: what a message about an incident says
STEPS: Mapping[MessageStep, str] = {
    MessageStep.OPENED: lazy_pgettext("incident", "Message"),
    MessageStep.ESCALATED: _l("Escalation"),
    MessageStep.KEPT_AGAIN: _l("Message that it is kept again"),
}
#: state of a promise -> its title
PROMISE_STATES: Mapping[PromiseState, str] = {
    PromiseState.BROKEN: lazy_pgettext("promise", "Broken"),
    PromiseState.KEPT: _l("Kept"),
    PromiseState.NEW: _l("Not yet due"),
}
#: unit of a length -> its seconds, largest first
UNITS = {
    "d": DAY_MS // SECOND_MS,
    "h": HOUR_MS // SECOND_MS,
    "m": MINUTE_MS // SECOND_MS,
    "s": 1,
}
_UNITS: tuple[tuple[Millis, Callable[[int], str]], ...] = (
    (DAY_MS, lambda count: ngettext("%(num)d day", "%(num)d days", count)),
    (HOUR_MS, lambda count: ngettext("%(num)d hour", "%(num)d hours", count)),
    (MINUTE_MS, lambda count: _("%(n)s min", n=count)),
)


def length_text(ms: Millis) -> str:
    """Return a length in its largest whole unit: ``90 s``, ``2 min``, ``3 hours``, ``7 days``."""
    for unit_ms, text in _UNITS:
        if ms and ms % unit_ms == 0:
            return text(ms // unit_ms)
    return _("%(n)s s", n=ms // SECOND_MS)


def length_inputs(seconds: int) -> tuple[str, str]:
    """Return a length as number and unit: the largest in which it is whole."""
    unit = next(unit for unit, size in UNITS.items() if seconds % size == 0)
    return str(seconds // UNITS[unit]), unit


def promise_text(promise: Promise) -> str:
    """Return a promise as what the job does: ``starts within 60 s``."""
    limit = length_text(promise.limit_ms)
    match promise.kind:
        case PromiseKind.STARTS_WITHIN:
            return _("starts within %(limit)s", limit=limit)
        case PromiseKind.FINISHES_WITHIN:
            return _("succeeds within %(limit)s", limit=limit)
        case PromiseKind.FINISHES_BY:
            return _("succeeds by %(time)s", time=clock_text(promise.at))
        case PromiseKind.SUCCEEDS_EVERY:
            return _("succeeds at least every %(limit)s", limit=limit)
        case PromiseKind.TAKES_AT_MOST:
            return _("takes at most %(limit)s", limit=limit)
        case PromiseKind.TAKES_AT_LEAST:
            return _("takes at least %(limit)s", limit=limit)
        case PromiseKind.TAKES_USUAL_TIMES:
            return _("takes at most %(times)s times as long as usual", times=f"{promise.times:g}")
        case _:
            text = _failures_text(promise.n)
            return _("%(promise)s, else it is switched off", promise=text) if _switches(promise) else text


def breach_text(promise: Promise) -> str:
    """Return what is wrong when a promise is broken: ``not started within 60 s``."""
    limit = length_text(promise.limit_ms)
    match promise.kind:
        case PromiseKind.STARTS_WITHIN:
            return _("not started within %(limit)s", limit=limit)
        case PromiseKind.FINISHES_WITHIN:
            return _("not succeeded within %(limit)s", limit=limit)
        case PromiseKind.FINISHES_BY:
            return _("not succeeded by %(time)s", time=clock_text(promise.at))
        case PromiseKind.SUCCEEDS_EVERY:
            return _("no success for %(limit)s", limit=limit)
        case PromiseKind.TAKES_AT_MOST:
            return _("takes longer than %(limit)s", limit=limit)
        case PromiseKind.TAKES_AT_LEAST:
            return _("took less than %(limit)s", limit=limit)
        case PromiseKind.TAKES_USUAL_TIMES:
            return _("takes over %(times)s times as long as usual", times=f"{promise.times:g}")
        case _:
            return _("failed") if not promise.n else _failed_text(promise.n)


def _failures_text(count: int) -> str:
    if not count:
        return _("never fails")
    return ngettext("fails at most once in a row", "fails at most %(num)d times in a row", count)


def _failed_text(count: int) -> str:
    return ngettext("failed more than once in a row", "failed more than %(num)d times in a row", count)


def clock_text(at: str) -> str:
    """Return a wall-clock time in words: ``06:00``, ``06:00 of the next day``."""
    clock, _sign, days = at.partition("+")
    count = int(days[:-1]) if days else 0
    if count > 1:
        return _("%(time)s, %(days)s days later", time=clock, days=count)
    return _("%(time)s of the next day", time=clock) if count else clock


def breaches_text(incident: Incident) -> str:
    """Return what is wrong with all broken promises of an incident."""
    return comma_list(breach_text(promise) for promise in broken_of(incident))


def broken_of(incident: Incident) -> list[Promise]:
    """Return the broken promises of an incident."""
    return [*broken_promises(incident.kinds).values()]


def since_label(incident: Incident) -> str:
    """Return what the instant of an incident is."""
    labels = {
        Subject.INSTANT: _("Due"),
        Subject.WINDOW: _("Last success, or start"),
        Subject.SERIES: _("First failure due"),
    }
    return labels[subject_of(incident.incident_key)]


def kept_share(verdicts: Verdicts) -> str:
    """Return how often promises were kept, as ``99.7 %``, never rounded up; empty without a verdict."""
    if verdicts.share is None:
        return ""
    return f"{format_decimal(floor(verdicts.share * 1000) / 10)} %"


def promises_value(value: Any) -> str:
    """Return stored promises, as JSON text or list, in words; a dash for none."""
    members = json.loads(value) if isinstance(value, str) else value
    return comma_list(promise_text(promise_of(member)) for member in members or ()) or "–"


def escalation_value(value: Any) -> str:
    """Return a stored escalation, as JSON text or object, in words; a dash for none."""
    escalation = read_escalation(value if isinstance(value, str) else json.dumps(value))
    if escalation is None:
        return "–"
    return escalation_text(escalation.channel, escalation.after_minutes)


def escalation_text(channel: str, after_minutes: int) -> str:
    """Return where an incident goes that is not acknowledged, and when."""
    return _("to %(channel)s after %(time)s", channel=channel, time=length_text(after_minutes * MINUTE_MS))


def _switches(promise: Promise) -> bool:
    return promise.then == SWITCH_OFF


def init_app(app: Flask) -> None:
    """Make the words available to the templates."""
    app.add_template_filter(
        lambda escalation: escalation_text(escalation.channel, escalation.after_minutes), "escalation_words"
    )
    for filter_ in (
        promise_text,
        breach_text,
        breaches_text,
        kept_share,
        length_inputs,
        length_text,
        since_label,
    ):
        app.add_template_filter(filter_)
