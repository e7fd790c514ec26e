"""Rounds as rows of pages: their state, and in words what is missing or why their job was not run."""

from collections.abc import Iterable
from dataclasses import dataclass

from flask import url_for
from markupsafe import Markup, escape

from app.clock import Millis, now_ms
from app.console.ui.filters import absolute, comma_list
from app.console.ui.rounds.words import ROUND_REASONS, ROUND_STATES, foreign_name
from app.console.web.language import _
from app.domain.rounds.kinds import ArrivalOutcome, RoundReason, RoundState
from app.services.rounds.listing import PredecessorView, RoundView

#: outcomes with which a predecessor is not waited for
DONE = frozenset({ArrivalOutcome.SUCCEEDED, ArrivalOutcome.EXCUSED})
#: predecessors named in a row
NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round; ``why`` has links: what it waits for, or why it was not run."""

    round: RoundView
    title: str
    state: str
    tone: str
    glyph: str
    why: Markup
    #: end of the wait of an open round; empty without one
    until: str


def rows_of(rounds: Iterable[RoundView]) -> list[RoundRow]:
    """Return rounds as rows."""
    return [row_of(view) for view in rounds]


def row_of(view: RoundView) -> RoundRow:
    """Return a round as a row."""
    match view.state:
        case RoundState.STARTED if view.incomplete:
            looks = _("Started, incomplete"), "warning", "exclamation-triangle-fill"
        case RoundState.STARTED:
            looks = str(ROUND_STATES[RoundState.STARTED]), "success", "check-circle-fill"
        case RoundState.NOT_RUN if view.reason in (RoundReason.PREDECESSOR, RoundReason.DEADLINE):
            looks = str(ROUND_STATES[RoundState.NOT_RUN]), "danger", "slash-circle-fill"
        case RoundState.NOT_RUN:
            looks = str(ROUND_STATES[RoundState.NOT_RUN]), "none", "slash-circle"
        case _:
            looks = str(ROUND_STATES[RoundState.OPEN]), "warning", "hourglass-split"
    until = clock(view.deadline_ms) if view.state == RoundState.OPEN and view.deadline_ms else ""
    return RoundRow(view, title_of(view), *looks, why_of(view), until)


def title_of(view: RoundView) -> str:
    """Return what a round stands for: its day, or its logical time."""
    kind, _colon, name = view.key.partition(":")
    return name if kind == "d" else absolute(view.logical_ms)


def why_of(view: RoundView) -> Markup:
    """Return the jobs that an open round waits for, or why one was not run; of others what it ran without."""
    if view.state == RoundState.NOT_RUN:
        return _cause(view)
    if view.state == RoundState.STARTED:
        names = missing_of(view) if view.incomplete else Markup()
        return escape(_("without %(jobs)s")) % {"jobs": names} if names else names
    return missing_of(view)


def missing_of(view: RoundView) -> Markup:
    """Return the predecessors that have not succeeded, each with what is known of it; of many the first."""
    missing = [predecessor for predecessor in view.predecessors if predecessor.outcome not in DONE]
    is_open = view.state == RoundState.OPEN
    parts = [
        escape(_("%(job)s (%(state)s)"))
        % {"job": job_link(predecessor), "state": progress_of(predecessor, is_open=is_open)}
        for predecessor in missing[:NAMED_MAX]
    ]
    if len(missing) > NAMED_MAX:
        parts.append(escape(_("%(n)s more", n=len(missing) - NAMED_MAX)))
    return escape(_(", ")).join(parts)


def gate_words(view: RoundView | None) -> Markup:
    """Return why a run waits whose round is not complete; None: the round is gone."""
    names = missing_of(view) if view is not None else Markup()
    if view is None or not names:
        return escape(_("it waits for its predecessors"))
    link = Markup('<a href="{}">{}</a>').format(url_for("rounds.show", round_id=view.id), _("its round"))
    return escape(_("%(round)s is not complete: %(jobs)s")) % {"round": link, "jobs": names}


def progress_of(predecessor: PredecessorView, *, is_open: bool) -> str:
    """Return what is known of a predecessor that has not succeeded: ``failed 03:10, retry at 03:15``.

    ``is_open``: its runs in progress may still belong to the round.
    """
    at = clock(predecessor.at_ms) if predecessor.at_ms else ""
    match predecessor.outcome:
        case ArrivalOutcome.FAILED | ArrivalOutcome.RETRYING:
            text = _("failed %(time)s", time=at)
        case ArrivalOutcome.UNRESOLVED:
            text = _("unresolved since %(time)s", time=at)
        case ArrivalOutcome.NOT_RUN:
            text = _("not run")
        case _ if predecessor.total_shards > 1:
            text = _("%(n)s of %(all)s shards", n=predecessor.succeeded_shards, all=predecessor.total_shards)
        case _:
            text = (
                _("running")
                if predecessor.is_running and is_open
                else _("no run")
                if not is_open
                else _("no run yet")
            )
    if is_open and predecessor.retry_ms and predecessor.outcome is not None:
        return comma_list((text, _("retry at %(time)s", time=clock(predecessor.retry_ms))))
    if is_open and predecessor.is_running and predecessor.outcome is not None:
        return comma_list((text, _("running again")))
    return text


def clock(at_ms: Millis) -> str:
    """Return the time of an instant, with its day unless it is today."""
    text, today = absolute(at_ms), absolute(now_ms())[:10]
    return text[11:16] if text[:10] == today else text[:16]


def job_link(predecessor: PredecessorView) -> Markup:
    """Return the name of a predecessor, with a link to its page if the reader may view it."""
    if predecessor.is_foreign:
        return escape(foreign_name())
    if predecessor.name is None:
        return escape(_("%(id)s (deleted)", id=predecessor.job_id))
    return Markup('<a href="{}">{} {}</a>').format(
        url_for("jobs.show", job_id=predecessor.job_id), predecessor.job_id, predecessor.name
    )


def _cause(view: RoundView) -> Markup:
    if view.reason != RoundReason.PREDECESSOR:
        return escape(ROUND_REASONS.get(RoundReason(view.reason), view.reason) if view.reason else "")
    bad = [
        predecessor
        for predecessor in view.predecessors
        if predecessor.outcome not in DONE and predecessor.outcome is not None
    ]
    cause = next(
        (predecessor for predecessor in bad if predecessor.log_id == view.cause_log_id),
        bad[0] if bad else None,
    )
    if cause is None:
        return escape(ROUND_REASONS[RoundReason.PREDECESSOR])
    texts = {
        ArrivalOutcome.NOT_RUN: _("its predecessor %(job)s was not run"),
        ArrivalOutcome.UNRESOLVED: _("its predecessor %(job)s is unresolved"),
    }
    text = texts.get(cause.outcome or ArrivalOutcome.FAILED, _("its predecessor %(job)s failed"))
    sentence = escape(text) % {"job": job_link(cause)}
    if view.cause_log_id is None or cause.name is None:
        return sentence
    link = Markup('<a href="{}">{}</a>').format(
        url_for("logs.show", log_id=view.cause_log_id), view.cause_log_id
    )
    run = (
        _("%(cause)s, because of run %(id)s")
        if cause.outcome is ArrivalOutcome.NOT_RUN
        else _("%(cause)s, run %(id)s")
    )
    return escape(run) % {"cause": sentence, "id": link}
