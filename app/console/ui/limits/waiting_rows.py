"""Waiting runs as rows of pages: what they wait for in words, and what else is known of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from sqlalchemy.orm import Session

from app.console.ui.calendars.blackout_words import pause_text
from app.console.ui.filters import absolute
from app.console.ui.labels import TRIGGER_TYPES
from app.console.ui.limits.words import limit_phrase, wait_words
from app.console.ui.rounds.rows import gate_words
from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.enums import LimitKind, TriggerType
from app.domain.runs.logical_times import SHOWN_FROM_MS
from app.services.rounds import listing
from app.services.rounds.listing import RoundView
from app.services.runs import waiting
from app.services.runs.waiting import WaitFilter, WaitingRun
from app.store.base.paging import to_id
from app.store.executors import groups as group_store

#: rows of a page
ROWS_MAX = 50


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A waiting run; ``why`` has links."""

    run: WaitingRun
    why: Markup
    may_operate: bool
    #: what else is known of it: what it stands for, why it exists, its key
    about: Sequence[str]


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """The first runs that wait."""

    rows: list[WaitingRow]
    is_cut: bool


def waiting_rows(
    session: Session,
    *,
    actor: Actor,
    group_id: int = 0,
    criteria: WaitFilter = waiting.ALL,
    limit: int = ROWS_MAX,
) -> WaitingRows:
    """Return the first runs that wait, of an executor or of all that the actor may see."""
    runs, following = waiting.list_waiting(
        session, actor=actor, group_id=group_id, criteria=criteria, limit=limit
    )
    return WaitingRows(rows_of(session, runs, actor=actor), following is not None)


def rows_of(session: Session, runs: Sequence[WaitingRun], *, actor: Actor) -> list[WaitingRow]:
    """Return waiting runs as rows."""
    limits = [run.waits_for for run in runs if run.waits_for is not None]
    group_ids = {to_id(limit.name) or 0 for limit in limits if limit.kind is LimitKind.GROUP}
    groups = group_store.find_groups(session, group_ids) if group_ids else {}
    titles = {group.id: group.title for group in groups.values()}
    gates = {run.round_id for run in runs if run.is_gated and run.round_id is not None}
    rounds = listing.find_views(session, gates, actor=actor)
    return [
        WaitingRow(run, _why(run, titles, rounds), actor.may(run.group_id, Right.OPERATE), list(_about(run)))
        for run in runs
    ]


def _why(run: WaitingRun, titles: dict[int, str], rounds: Mapping[int, RoundView]) -> Markup:
    if run.blackout is not None:
        return escape(pause_text(run.blackout))
    if run.is_gated:
        return gate_words(rounds.get(run.round_id or 0))
    if run.is_missed:
        return escape(_("waits for the missed run before it"))
    limit = run.waits_for
    if limit is None:
        return wait_words(None, Markup())
    of_id = limit.id if limit.kind is LimitKind.NAMED else to_id(limit.name) or 0
    name = titles.get(of_id, limit.name) if limit.kind is LimitKind.GROUP else limit.name
    return wait_words(limit, limit_phrase(limit.kind, of_id, name))


def _about(run: WaitingRun) -> Iterable[str]:
    if abs(run.logical_ms - run.due_ms) >= SHOWN_FROM_MS:
        yield _("for %(time)s", time=absolute(run.logical_ms))
    if run.trigger_type != TriggerType.CRON:
        yield str(TRIGGER_TYPES.get(TriggerType(run.trigger_type), run.trigger_type))
    if run.limit_key:
        yield run.limit_key
    if run.end_ms is not None:
        yield _("skipped at %(time)s", time=absolute(run.end_ms))
