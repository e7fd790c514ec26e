"""Blackouts in words: their scope, when they are, and the lines of those that are on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.console.ui.filters import absolute, absolute_in
from app.console.ui.promise_words import length_text
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.console.web.languages import language_of_request
from app.domain.access.permissions import Actor
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.schedules.cron_words import describe
from app.domain.schedules.schedule import zone
from app.services.calendars import blackouts
from app.services.calendars.blackouts import BlackoutState, BlackoutView
from app.services.calendars.paused_runs import WaitedBlackout
from app.store.calendars import current_book

#: options of the select, in their order
AFTERWARDS: Mapping[Afterwards, str] = {
    Afterwards.SKIP: _l("What was due does not run"),
    Afterwards.RUN_ONCE: _l("Each schedule that was due runs once"),
}
#: lines that are shown in full
LINES_MAX = 3


@dataclass(frozen=True, slots=True)
class BlackoutLines:
    """Blackouts that are on, a sentence each, and how many more there are."""

    lines: Sequence[str]
    more: int


def scope_text(view: BlackoutView) -> str:
    """Return which jobs a blackout concerns."""
    blackout = view.blackout
    if blackout.tag:
        return _("jobs with the tag %(tag)s", tag=blackout.tag)
    if blackout.job_id is not None:
        return _("job %(id)s %(name)s", id=blackout.job_id, name=view.name or "").strip()
    if blackout.group_id is not None:
        return _("executor %(name)s", name=view.name or blackout.group_id)
    return _("all jobs")


def when_text(blackout: Blackout) -> str:
    """Return when a blackout is: "Sundays at 02:00, for 2 hours (Asia/Shanghai)", or from when until when."""
    if not blackout.cron:
        return _span_text(blackout.from_ms, blackout.until_ms)
    values = {
        "when": describe(blackout.cron, language_of_request()),
        "length": length_text(blackout.duration_s * SECOND_MS),
        "zone": blackout.zone,
    }
    if blackout.until_ms is None:
        return _("%(when)s, for %(length)s (%(zone)s)", **values)
    until = absolute(blackout.until_ms)
    return _("%(when)s, for %(length)s (%(zone)s), until %(until)s", until=until, **values)


def window_text(view: BlackoutView) -> str:
    """Return the window of a recurring blackout that is on or comes next, in its own zone."""
    if view.window is None:
        return ""
    from_ms, until_ms = view.window
    local = zone(view.blackout.zone)
    until = _("no end") if until_ms is None else absolute_in(until_ms, local)[:16]
    return f"{absolute_in(from_ms, local)[:16]} – {until}"


def _span_text(from_ms: Millis, until_ms: Millis | None) -> str:
    if until_ms is None:
        return _("from %(from_)s, no end", from_=absolute(from_ms)[:16])
    return f"{absolute(from_ms)[:16]} – {absolute(until_ms)[:16]}"


def on_text(view: BlackoutView, *, with_scope: bool = True) -> str:
    """Return that a blackout is on, until when, for which jobs, and why."""
    reason, until_ms = view.blackout.reason, view.window[1] if view.window is not None else None
    values = {"reason": reason, "scope": scope_text(view)}
    if until_ms is None:
        endless = _("A blackout is on, without an end, for %(scope)s: %(reason)s", **values)
        return endless if with_scope else _("A blackout is on, without an end: %(reason)s", reason=reason)
    until = absolute(until_ms)
    if with_scope:
        return _("A blackout is on until %(until)s for %(scope)s: %(reason)s", until=until, **values)
    return _("A blackout is on until %(until)s: %(reason)s", until=until, reason=reason)


def pause_text(wait: WaitedBlackout) -> str:
    """Return why a run waits for the end of a blackout."""
    if wait.until_ms is None:
        return _("a blackout is on, without an end: %(reason)s", reason=wait.reason)
    return _(
        "a blackout is on until %(until)s: %(reason)s", until=absolute(wait.until_ms), reason=wait.reason
    )


def lines_of_all(session: Session, *, actor: Actor, now_ms: Millis) -> BlackoutLines:
    """Return the blackouts that are on and that the actor may see."""
    return _lines(_on(session, actor, now_ms), with_scope=True)


def lines_of_group(session: Session, group_id: int, *, actor: Actor, now_ms: Millis) -> BlackoutLines:
    """Return the blackouts that are on for all jobs of a group."""
    views = (
        view
        for view in _on(session, actor, now_ms)
        if not view.blackout.tag and view.blackout.job_id is None
        if view.blackout.group_id in (None, group_id)
    )
    return _lines(views, with_scope=False)


def lines_of_job(
    session: Session, job_id: int, group_id: int, *, actor: Actor, now_ms: Millis
) -> BlackoutLines:
    """Return the blackouts that are on for a job."""
    if not current_book.current().blackouts:
        return BlackoutLines((), 0)
    views = blackouts.list_of_job(session, job_id, group_id, actor=actor, now_ms=now_ms)
    return _lines((view for view in views if view.state is BlackoutState.ON), with_scope=False)


def _on(session: Session, actor: Actor, now_ms: Millis) -> list[BlackoutView]:
    if not current_book.current().blackouts:
        return []
    views = blackouts.list_lasting(session, actor=actor, now_ms=now_ms)
    return [view for view in views if view.state is BlackoutState.ON]


def _lines(views: Iterable[BlackoutView], *, with_scope: bool) -> BlackoutLines:
    texts = [on_text(view, with_scope=with_scope) for view in views]
    return BlackoutLines(texts[:LINES_MAX], max(0, len(texts) - LINES_MAX))
