"""Gate of a claim: which of its fires may be claimed. Open, but for jobs with limits."""

from typing import Protocol

from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.pipeline.group_candidates import GroupCandidates
from app.pipeline.route import NO_COLUMNS
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun


def needs_slots(fire: PendingFire, job: JobToRun, candidates: GroupCandidates) -> bool:
    """Whether a fire has to be admitted: its job or group has a limit, and it has no slots yet.

    One that was claimed before its job had limits and given back goes on: it has a log row.
    """
    is_limited = job.max_running or job.limits or candidates.max_running
    return bool(is_limited) and asks(fire) and fire.log_id is None


def asks(fire: PendingFire) -> bool:
    """Whether a fire has no slots: none were taken by a claim, nor given by a user."""
    return not fire.admitted_ms and not fire.attempt


class Gate(Protocol):
    """What a claim asks about each of its fires, in their order."""

    def admits(self, fire: PendingFire, job: JobToRun, candidates: GroupCandidates) -> bool:
        """Return whether a fire may be claimed now; one that may but has no address takes no slot."""

    def take(self, fire: PendingFire) -> bulk.Row:
        """Count a fire that is claimed; return its further columns."""

    def columns(self, fire: PendingFire) -> bulk.Row:
        """Return the further columns of a fire that is claimed; all of a claim have the same."""

    def trace(self, fire: PendingFire) -> tuple[str, ...]:
        """Return the lines about it in the trace of its run."""

    def write(self, session: Session) -> int:
        """Write what becomes of the others; return how many have begun to wait."""


class _OpenGate:
    """Gate that admits all."""

    def admits(self, fire: PendingFire, job: JobToRun, candidates: GroupCandidates) -> bool:
        return True

    def take(self, fire: PendingFire) -> bulk.Row:
        return NO_COLUMNS

    def columns(self, fire: PendingFire) -> bulk.Row:
        return NO_COLUMNS

    def trace(self, fire: PendingFire) -> tuple[str, ...]:
        return ()

    def write(self, session: Session) -> int:
        return 0


OPEN_GATE: Gate = _OpenGate()
