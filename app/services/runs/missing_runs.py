"""Missing runs of a round: those that failed, so that the round is not complete, are run again."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.rounds.evaluation import BAD
from app.domain.rounds.kinds import RoundState
from app.domain.text.texts import N_
from app.errors import Conflict, NotFound, PermissionDenied
from app.pipeline.rounds.decisions import may_reopen
from app.services.auditing import audit
from app.services.jobs.jobs import QueuedRun
from app.services.runs.run_actions import retry_run
from app.store.jobs.listing import find_groups_of
from app.store.rounds import listing, missing, rounds
from app.store.rounds.missing import MissingRun
from app.store.rounds.rounds import RoundRow

MISSING = N_("There is no such round; it may have been deleted")
OVER = N_("The round is over: runs of it cannot change it any more")
NOTHING = N_("The round misses no run that could be run again")


def run_missing(session: Session, round_id: int, *, actor: Actor, now_ms: Millis) -> list[QueuedRun]:
    """Run again all runs because of which a round is not complete; their round and chain stay.

    Needs the right to operate the jobs of all of them. Those that are being run again already are left out.
    Raises NotFound, PermissionDenied, and Conflict if there is nothing to run.
    """
    row = rounds.lock_rounds(session, [round_id]).get(round_id)
    runs = _missing(session, row, actor)
    queued = [retry_run(session, str(run.id), actor=actor, now_ms=now_ms) for run in runs]
    changes = {"round": round_id, "runs": [run.id for run in runs]}
    target = ("job", row.job_id if row is not None else 0)
    audit.record(session, "round.run_missing", actor=actor, now_ms=now_ms, target=target, changes=changes)
    return queued


def find_missing(session: Session, round_id: int, *, actor: Actor) -> list[MissingRun]:
    """Return what ``run_missing`` would run again; raises what that raises."""
    return _missing(session, next(iter(listing.find_rounds(session, [round_id])), None), actor)


def _missing(session: Session, row: RoundRow | None, actor: Actor) -> list[MissingRun]:
    group_id = find_groups_of(session, [row.job_id]).get(row.job_id) if row is not None else None
    if row is None or group_id is None:
        raise NotFound(MISSING)
    require_right(actor, group_id, Right.VIEW, missing=MISSING)
    if row.state != RoundState.OPEN and not may_reopen(row.state, row.reason):
        raise Conflict(OVER)
    log_ids = {
        each.log_id
        for each in rounds.find_arrivals(session, [row.id])[row.id]
        if each.outcome in BAD and each.log_id is not None
    }
    runs = missing.find_missing(session, log_ids)
    if not all(actor.may(run.group_id, Right.OPERATE) for run in runs):
        raise PermissionDenied(N_("You have no permission to run all jobs whose runs are missing"))
    repeated = missing.find_repeated(session, {run.job_id for run in runs})
    left = [run for run in runs if run.id not in repeated]
    if not left:
        raise Conflict(NOTHING)
    return left
