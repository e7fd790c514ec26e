"""Backfills on the pages of the console: pages of lists, those of a job, that of a run."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.backfills.kinds import ACTIVE
from app.domain.enums import TriggerType
from app.domain.runs.trigger_keys import backfill_key, trigger_of
from app.models.log import JobLog
from app.services.backfills.listing import BackfillView, InstantView, instant_views, views_of
from app.store.backfills import records
from app.store.base.paging import Page

#: active backfills of a job that are shown
OF_JOB_MAX = 20


def list_backfills(
    session: Session,
    *,
    actor: Actor,
    job_id: int = 0,
    states: Collection[str] = (),
    start: int,
    length: int,
) -> Page[BackfillView]:
    """Return a page of the backfills that the actor may see, the newest first."""
    groups = actor.group_ids(Right.VIEW)
    page = records.list_backfills(session, groups, job_id=job_id, states=states, start=start, length=length)
    return Page(views_of(session, page.rows), page.total, page.capped)


def list_instants(
    session: Session, backfill_id: int, *, states: Collection[str] = (), start: int, length: int
) -> Page[InstantView]:
    """Return a page of the instants of a backfill that the caller may see, in its order."""
    page = records.list_instants(session, backfill_id, states=states, start=start, length=length)
    return Page(instant_views(session, backfill_id, page.rows), page.total, page.capped)


def active_of_job(session: Session, job_id: int) -> list[BackfillView]:
    """Return the active backfills of a job that the caller may see, the newest first."""
    rows = records.find_page(session, None, job_id=job_id, states=ACTIVE, limit=OF_JOB_MAX)
    return views_of(session, rows) if rows else []


def backfill_of_run(session: Session, log: JobLog) -> int | None:
    """Return the backfill that a run belongs to; None: to none, or to one that was deleted."""
    if log.trigger_type != TriggerType.BACKFILL or log.trigger_key is None or log.logical_ms is None:
        return None
    for backfill_id, attempts in records.find_of_instant(session, log.job_id, log.logical_ms):
        for attempt in range(1, attempts + 1):
            if _number(log.job_id, backfill_id, log.logical_ms, attempt) == log.trigger_key:
                return backfill_id
    return None


def _number(job_id: int, backfill_id: int, logical_ms: Millis, attempt: int) -> int | None:
    trigger = trigger_of(job_id, backfill_key(backfill_id, logical_ms, attempt))
    return trigger.number if trigger is not None else None
