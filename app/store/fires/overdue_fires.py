"""Due fires without a claim, and the runs being sent that may hold them up. Reads only."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import FireState
from app.models.fire import Fire
from app.models.job import Job


class UnclaimedFire(NamedTuple):
    """A fire that is due and not claimed."""

    job_group: int
    due_ms: Millis


class Sending(NamedTuple):
    """A run that is being sent, or whose address is being chosen (None)."""

    job_group: int
    address: str | None


def find_unclaimed(session: Session, *, due_before_ms: Millis, limit: int) -> list[UnclaimedFire]:
    """Return the fires that were due before an instant and that no scheduler has claimed."""
    rows = select(Job.job_group, Fire.due_time).join(Job, Job.id == Fire.job_id)
    rows = rows.where(Fire.state == FireState.PENDING, Fire.due_time < due_before_ms)
    return [UnclaimedFire(*row) for row in session.execute(rows.limit(limit))]


def find_sending(session: Session, *, limit: int) -> Collection[Sending]:
    """Return the runs that are being sent."""
    rows = select(Job.job_group, Fire.address).join(Job, Job.id == Fire.job_id)
    rows = rows.where(Fire.state.in_([FireState.SENDING, FireState.ROUTING]))
    return [Sending(*row) for row in session.execute(rows.limit(limit))]
