"""Suggested promises of a job, from its successes in the last days."""

from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import DAY_MS, Millis
from app.domain.promises.promise import WITHOUT_INSTANTS
from app.domain.promises.suggestions import DAYS, Suggestion, suggest
from app.models.job import Job
from app.store.promises import promises


class Suggestions(NamedTuple):
    """Suggested promises, and the number of successes that they follow from."""

    suggestions: list[Suggestion]
    successes: int


def find_suggestions(session: Session, job: Job, *, now_ms: Millis) -> Suggestions:
    """Return what a job could promise; nothing without enough successes. Reads at most 5,000 runs."""
    since_ms = now_ms - DAYS * DAY_MS
    runs = [run for run in promises.find_successes(session, job.id) if run.began_ms >= since_ms]
    return Suggestions(suggest(runs, has_instants=job.schedule_type not in WITHOUT_INSTANTS), len(runs))
