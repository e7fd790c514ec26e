"""Metrics of runs that end: how many by group and outcome, and how long they took. Part of the completion."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import call_at_commit
from app.runtime.metrics import RUN_DURATION, RUNS_ENDED


class MeasuredEnd(NamedTuple):
    """What is counted of an end."""

    group_id: int
    #: ``success``, ``failed`` or ``unresolved``
    outcome: str
    #: None: unknown
    duration_ms: Millis | None


def count_ends(session: Session, ends: Iterable[MeasuredEnd]) -> None:
    """Count ends when the transaction is committed."""
    all_ends = [*ends]
    for (group_id, outcome), count in Counter((end.group_id, end.outcome) for end in all_ends).items():
        call_at_commit(session, partial(RUNS_ENDED.add, str(group_id), outcome, count=count))
    seconds = [end.duration_ms / SECOND_MS for end in all_ends if end.duration_ms is not None]
    call_at_commit(session, partial(RUN_DURATION.observe, *seconds))
