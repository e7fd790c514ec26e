"""Backfills as users see them: lists, progress, and what became of each instant."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.backfills.kinds import InstantState, Which
from app.domain.backfills.sentences import sentence_of
from app.domain.packed_text import unpack
from app.domain.text.texts import Text
from app.models.backfill import Backfill, BackfillInstant
from app.services.backfills.backfills import get_backfill
from app.services.backfills.steps import find_running
from app.store.backfills import records
from app.store.jobs import scheduling as jobs


@dataclass(frozen=True, slots=True)
class BackfillView:
    """A backfill, and how far it is."""

    row: Backfill
    #: of the job as it is now; of a job that was deleted, as it was
    group_id: int
    job_name: str
    has_job: bool
    #: state of an instant -> number of those that have it
    counts: Mapping[str, int]

    @property
    def summary(self) -> dict[str, int]:
        """What its list said: standing -> number of instants."""
        summary: dict[str, int] = json.loads(self.row.summary)
        return summary

    @property
    def sentence(self) -> Text:
        """The same as a sentence."""
        return sentence_of(self.summary, Which(self.row.which))

    @property
    def reason(self) -> str:
        """Why it has ended or been paused by itself; a ``Text``, or empty."""
        return "" if self.row.reason is None else _text(self.row.reason)

    @property
    def ended(self) -> int:
        """Number of instants whose runs have ended; those that were withdrawn had none."""
        return sum(self.counts.get(state, 0) for state in (InstantState.SUCCEEDED, InstantState.FAILED))


@dataclass(frozen=True, slots=True)
class InstantView:
    """An instant of a backfill."""

    #: its place in the order, from 0
    number: int
    logical_ms: Millis
    state: str
    #: how often it has been run, with resumptions after a failure; 0: not yet
    attempt: int
    #: its last run; None: it has none yet
    log_id: int | None
    #: 0: not yet
    begun_ms: Millis
    ended_ms: Millis


def list_page(
    session: Session,
    *,
    actor: Actor,
    job_id: int = 0,
    states: Collection[str] = (),
    before_id: int = 0,
    limit: int,
) -> list[BackfillView]:
    """Return the newest backfills that the actor may see, with ids below ``before_id`` (0: all)."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    group_ids = actor.group_ids(Right.VIEW)
    rows = records.find_page(
        session, group_ids, job_id=job_id, states=states, before_id=before_id, limit=limit
    )
    return views_of(session, rows)


def show_backfill(
    session: Session, backfill_id: int, *, actor: Actor, right: Right = Right.VIEW
) -> BackfillView:
    """Return a backfill that the actor may see; raises NotFound."""
    [view] = views_of(session, [get_backfill(session, backfill_id, actor=actor, right=right)])
    return view


def views_of(session: Session, rows: Sequence[Backfill]) -> list[BackfillView]:
    """Return backfills with their progress; the number of statements does not depend on theirs."""
    counts = records.count_instants(session, [row.id for row in rows])
    names = jobs.find_names(session, {row.job_id for row in rows})
    return [
        BackfillView(
            row,
            names[row.job_id].job_group if row.job_id in names else row.job_group,
            names[row.job_id].job_desc if row.job_id in names else row.job_name,
            row.job_id in names,
            counts.get(row.id, {}),
        )
        for row in rows
    ]


def list_instants(
    session: Session,
    backfill_id: int,
    *,
    actor: Actor,
    states: Collection[str] = (),
    after: int = -1,
    limit: int,
) -> list[InstantView]:
    """Return instants of a backfill in its order, after a place in it; raises NotFound."""
    get_backfill(session, backfill_id, actor=actor)
    rows = records.find_instants(session, backfill_id, states=states, after=after, limit=limit)
    return instant_views(session, backfill_id, rows)


def instant_views(session: Session, backfill_id: int, rows: Sequence[BackfillInstant]) -> list[InstantView]:
    """Return instants with their runs, those in progress as well."""
    runs: dict[Millis, int | None] = {}
    if any(row.state == InstantState.RUNNING for row in rows):
        runs = {instant.logical_ms: instant.log_id for instant in find_running(session, backfill_id)}
    return [
        InstantView(
            row.number,
            row.logical_ms,
            row.state,
            row.attempt,
            runs.get(row.logical_ms) if row.state == InstantState.RUNNING else row.log_id,
            row.begun_ms,
            row.ended_ms,
        )
        for row in rows
    ]


def _text(value: str) -> str:
    text = unpack(json.loads(value))
    return text if isinstance(text, str) else ""
