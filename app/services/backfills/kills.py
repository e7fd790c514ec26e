"""Kill of the runs of a backfill that are in progress: it is cancelled sooner."""

from app.clock import Millis
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.runs.outcome import state_of
from app.services.backfills.backfills import get_backfill
from app.services.backfills.steps import find_running
from app.services.executors.callers import Caller
from app.services.runs.run_actions import kill_runs
from app.store.runs import listing


def kill_running(backfill_id: int, *, actor: Actor, caller: Caller, now_ms: Millis) -> int:
    """Kill the runs of a backfill that are in progress; return how many.

    Opens its own transactions; raises what ``kill_runs`` does. Those that an executor does not have yet are
    not killed: they end by themselves, or by a second kill.
    """
    with read_scope() as session:
        get_backfill(session, backfill_id, actor=actor, right=Right.OPERATE)
        log_ids = [
            log_id for instant in find_running(session, backfill_id) for log_id in instant.open_log_ids
        ]
        logs = listing.find_listed(session, log_ids, group_ids=actor.group_ids(Right.OPERATE))
        running = [log for log in logs if state_of(log.trigger_code, log.handle_code) == "running"]
    return kill_runs(running, actor=actor, caller=caller, now_ms=now_ms) if running else 0
