"""Backfills on the pages of the console: pages of lists, those of a job."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.backfills.kinds import ACTIVE, ACTIVE_MAX
from app.services.backfills.listing import BackfillView, InstantView, instant_views, views_of
from app.store.backfills import records
from app.store.base.paging import Page


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
    return Page(views_of(session, page.rows), page.total, page.is_capped)


def list_instants(
    session: Session, backfill_id: int, *, states: Collection[str] = (), start: int, length: int
) -> Page[InstantView]:
    """Return a page of the instants of a backfill that the caller may see, in its order."""
    page = records.list_instants(session, backfill_id, states=states, start=start, length=length)
    return Page(instant_views(session, backfill_id, page.rows), page.total, page.is_capped)


def active_of_job(session: Session, job_id: int) -> list[BackfillView]:
    """Return the active backfills of a job that the caller may see, the newest first."""
    rows = records.find_page(session, None, job_id=job_id, states=ACTIVE, limit=ACTIVE_MAX)
    return views_of(session, rows) if rows else []
