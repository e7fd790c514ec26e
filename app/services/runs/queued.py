"""Queued runs: from the key of a fire triggered by hand to the run it became."""

import re
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.trigger_report import due_in_trace
from app.errors import NotFound
from app.services.runs.logs import MISSING
from app.store import around_runs

_KEY = re.compile(r"manual:(\d{1,15})-[0-9a-f]{32}(?:@[\w.-]{8,50})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Queued:
    """A run that was triggered by hand; ``log_id`` None: no log row, because it waits or was deleted."""

    log_id: int | None
    is_waiting: bool


def find_queued(session: Session, job_id: int, fire_key: str) -> Queued:
    """Return what a trigger of this job led to; raises NotFound for a key of another form.

    A fire is deleted when its run ends. The trace of the run names the millisecond it was triggered; a run
    that ended before its trace was written has none yet.
    """
    match = _KEY.fullmatch(fire_key)
    if match is None:
        raise NotFound(MISSING)
    due_ms = int(match[1])
    fire = around_runs.find_fire(session, fire_key)
    if fire is not None:
        return Queued(fire.log_id, fire.log_id is None)
    runs = around_runs.find_manual_since(session, job_id, due_ms)
    same = [log_id for log_id, trace in runs if due_in_trace(trace) == due_ms]
    untraced = [log_id for log_id, trace in runs if trace is None]
    return Queued(next(iter([*same, *untraced]), None), is_waiting=False)
