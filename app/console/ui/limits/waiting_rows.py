"""Runs that wait for a limit, as rows of pages: their job, and what they wait for in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.services.limits import waiting
from app.services.limits.waiting import WaitingRun

#: rows of a page
SHOWN = 50


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
    job_id: int = 0,
    limit_id: int = 0,
    limit: int = SHOWN,
) -> WaitingRows:
    """Return the runs that wait for a limit, or all of a job, of an executor, or that the actor may see."""
    runs, following = waiting.list_waiting(
        session, actor=actor, group_id=group_id, job_id=job_id, limit_id=limit_id, limit=limit
    )
    return WaitingRows([_row(run, actor) for run in runs], following is not None)


def _row(run: WaitingRun, actor: Actor) -> WaitingRow:
    return WaitingRow(run, why_of(run), actor.may(run.group_id, Right.OPERATE), [])


def why_of(run: WaitingRun) -> Markup:
    return Markup("")
