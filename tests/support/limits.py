"""Named limits, and runs that have their slots or wait for them."""

from typing import Any

from app.clock import Millis
from app.database.engine import session_scope
from app.domain.enums import FireState, LimitKind
from app.domain.limits.waits import Wait, WaitReason
from app.models.fire import Fire
from app.models.limit import Limit
from tests.support.factories import save


def add_limit(
    name: str, *, slots: int, group_id: int | None = None, kind: LimitKind = LimitKind.NAMED
) -> int:
    """Store a limit."""
    with session_scope() as session:
        limit = Limit(kind=kind.value, name=name, group_id=group_id, slots=slots)
        session.add(limit)
        session.flush()
        return limit.id


def add_holder(
    job_id: int, log_id: int | None, *, state: FireState = FireState.ACCEPTED, **values: Any
) -> None:
    """Store a run that has its slots."""
    fire = {"fire_key": f"cron:{job_id}:{log_id}", "due_time": 1_000, "admitted_ms": 1_000} | values
    save(Fire(job_id=job_id, log_id=log_id, state=state.value, trigger_type="CRON", **fire))


def add_waiting(
    job_id: int, limit_id: int, *, due_ms: Millis, place: Millis, used: int = 1, slots: int = 1, **values: Any
) -> None:
    """Store a run that waits for a limit."""
    log_ids = values.pop("log_ids", ())
    wait = Wait(limit_id, values.pop("reason", WaitReason.FULL), used, slots, log_ids)
    fire = {"fire_key": f"cron:{job_id}:{due_ms}", "trigger_type": "CRON", "lease_until": 2**62} | values
    fire |= {"state": FireState.WAITING.value, "deadline_ms": place, "waits_for": wait.text}
    save(Fire(job_id=job_id, due_time=due_ms, **fire))
