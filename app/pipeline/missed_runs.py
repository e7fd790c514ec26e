"""Missed runs of jobs with the misfire strategy RUN_ALL go one at a time, the earliest first.

docs/missed-runs.md. Such a fire is GATED until the missed run before it has ended; then it is PENDING, and
limits and blackouts apply to it as to any other. A retry does not hold the next one.
"""

from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.database.engine import announce_due_fires, transact
from app.database.rows import bulk
from app.domain.enums import FireState
from app.models.fire import Fire
from app.store.fires import missed_runs

#: fires of one transaction
PAGE = 500


def release_next() -> bool:
    """Let the next missed run of each job go on of which none is on its way; return whether any waits.

    Opens its own transactions.
    """
    if not missed_runs.has_held():
        return False
    fire_ids = missed_runs.find_heads()
    for first in range(0, len(fire_ids), PAGE):
        transact(partial(_release, fire_ids=fire_ids[first : first + PAGE]))
    return True


def _release(session: Session, fire_ids: Sequence[int]) -> None:
    columns = {"state": FireState.PENDING.value, "owner": "", "waits_for": ""}
    rows = [{"id": fire_id, **columns} for fire_id in missed_runs.lock_heads(session, fire_ids)]
    bulk.update_many(session, Fire, rows)
    if rows:
        announce_due_fires(session)
