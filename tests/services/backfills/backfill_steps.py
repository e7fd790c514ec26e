"""Steps of backfills: one is made, its runs are claimed and ended, and what became of its instants."""

from typing import Any

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.engine import transact
from app.domain.access.permissions import Actor, system_actor
from app.domain.backfills.kinds import Children, OnFailure, Order, Which
from app.models.backfill import Backfill, BackfillInstant
from app.models.job import Job
from app.services.backfills import backfills
from app.services.backfills.backfills import BackfillDraft, BackfillPlan
from app.services.backfills.steps import advance
from tests.support.factories import T0, all_rows, make_job, only_row

ZONE = "UTC"
ACTOR = system_actor("test")
_KINDS: dict[str, Any] = {"which": Which, "order": Order, "children": Children, "on_failure": OnFailure}


def minutely(**columns: Any) -> Job:
    """Return a job that runs each minute, but whose switch is off."""
    return make_job(schedule_type="CRON", schedule_conf="0 * * * * ?", **columns)


def minute(number: int) -> Millis:
    """Return an instant of such a job: so many minutes before T0."""
    return T0 // MINUTE_MS * MINUTE_MS - number * MINUTE_MS


def draft(first: int = 3, last: int = 1, **values: Any) -> BackfillDraft:
    """Return a draft for these instants, counted back from T0."""
    entered = {name: _KINDS[name](value) if name in _KINDS else value for name, value in values.items()}
    return BackfillDraft(**({"from_ms": minute(first), "to_ms": minute(last) + 1} | entered))


def plan(job: Job, entered: BackfillDraft, *, now_ms: Millis = T0, actor: Actor = ACTOR) -> BackfillPlan:
    """Return what a backfill would run."""

    def work(session: Session) -> BackfillPlan:
        return backfills.plan_backfill(session, job.id, entered, actor=actor, zone=ZONE, now_ms=now_ms)

    return transact(work)


def start(job: Job, entered: BackfillDraft, *, now_ms: Millis = T0, actor: Actor = ACTOR) -> int:
    """Start a backfill; return its id."""
    options: dict[str, Any] = {"shared_with_java": False, "clock": lambda: now_ms}

    def work(session: Session) -> int:
        return backfills.start_backfill(session, job.id, entered, actor=actor, zone=ZONE, **options)

    return transact(work)


def change(backfill_id: int, action: str, *, now_ms: Millis = T0, actor: Actor = ACTOR) -> str:
    """Pause, resume or cancel a backfill; return its state."""
    function = getattr(backfills, f"{action}_backfill")
    transact(lambda session: function(session, backfill_id, actor=actor, clock=lambda: now_ms))
    return state(backfill_id)


def go_on(backfill_id: int, *, now_ms: Millis = T0) -> str:
    """Make the steps that can be made; return the state of the backfill."""
    while advance(backfill_id, clock=lambda: now_ms):
        pass
    return state(backfill_id)


def state(backfill_id: int) -> str:
    """Return the state of a backfill."""
    return only_row(Backfill, id=backfill_id).state


def states(backfill_id: int) -> list[str]:
    """Return the states of the instants of a backfill, in its order."""
    rows = all_rows(BackfillInstant, backfill_id=backfill_id)
    return [row.state for row in sorted(rows, key=lambda row: row.number)]
