"""Clearing long logs in pieces: the rows are fixed when it begins, each request deletes some, and it can be taken up again."""

import time
from collections.abc import Callable
from dataclasses import replace

from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import read_scope, transact
from app.domain.permissions import Actor
from app.services import audit
from app.services.runs.logs import ClearType, clearing_of
from app.store import log_lists
from app.store.log_lists import Clearing

#: how long one request deletes
PIECE_S = 1.5


def begin(
    session: Session, group_id: int, job_id: int, kind: int, *, actor: Actor, now_ms: Millis
) -> Clearing:
    """Return the rows that are to go, as they are now: later ones stay whatever happens. Checks the rights; raises InvalidInput."""
    return log_lists.fixed(session, clearing_of(session, group_id, job_id, kind, actor=actor, now_ms=now_ms))


def count(session: Session, clearing: Clearing) -> int:
    """Return how many rows are to go."""
    return log_lists.count_to_clear(session, clearing)


def record(
    session: Session, clearing: Clearing, kind: int, rows: int, *, actor: Actor, now_ms: Millis
) -> None:
    """Write into the trail that a clearing begins, before its first row goes."""
    told = {
        "job_group": clearing.group_id,
        "job_id": clearing.job_id,
        "kind": ClearType(kind).name,
        "rows": rows,
    }
    audit.record(
        session, "log.clear", actor=actor, now_ms=now_ms, target=("job", clearing.job_id), changes=told
    )


def clear_piece(clearing: Clearing, *, monotonic: Callable[[], float] = time.monotonic) -> tuple[int, bool]:
    """Delete rows for PIECE_S, in transactions of their own; return how many, and whether none is left."""
    until, deleted = monotonic() + PIECE_S, 0
    while True:
        batch = transact(lambda session: log_lists.clear_batch(session, clearing))
        deleted += batch
        if batch < log_lists.DELETE_BATCH:
            return deleted, True
        if monotonic() >= until:
            return deleted, False


def go_on(clearing: Clearing, kind: int, *, actor: Actor, now_ms: Millis) -> Clearing:
    """Return the clearing a request wants to go on with, kept to what the actor may clear now; raises like ``begin``."""
    with read_scope() as session:
        allowed = clearing_of(session, clearing.group_id, clearing.job_id, kind, actor=actor, now_ms=now_ms)
    return replace(clearing, group_id=allowed.group_id)
