"""Plain triggers: runs due now on any instance of the group, those of many requests in one transaction."""

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.runs.trigger_keys import new_trigger
from app.domain.text.limits import limited_text
from app.errors import InvalidInput
from app.services.auditing import audit
from app.services.auditing.audit import Entry
from app.services.jobs.jobs import QueuedRun
from app.services.jobs.rules import PARAM_MAX
from app.store.base import locks
from app.store.fires import queue as fires


class PlainTrigger(NamedTuple):
    """A trigger as a request asked for it."""

    job_id: int
    #: None: the job's own
    executor_param: str | None
    actor: Actor
    now_ms: Millis
    #: id of the request
    request: str


def is_storable(executor_param: str | None) -> bool:
    """Whether a parameter would be accepted."""
    try:
        limited_text("executorParam", executor_param or "", PARAM_MAX)
    except InvalidInput:
        return False
    return True


def trigger_plain(session: Session, triggers: Sequence[PlainTrigger]) -> list[QueuedRun | None]:
    """Queue runs as ``jobs.trigger_job`` does, in as many statements as it takes for one.

    None: there is no such job, or the actor has not the right; ``trigger_job`` says which.
    """
    group_ids = locks.lock_groups_of(session, {each.job_id for each in triggers})
    allowed = [
        each.job_id in group_ids and each.actor.may(group_ids[each.job_id], Right.OPERATE)
        for each in triggers
    ]
    taken = list(compress(triggers, allowed))
    queued = [new_trigger(each.job_id, each.now_ms) for each in taken]
    fires.insert_plain(
        session,
        [(trigger, each.executor_param, each.request) for trigger, each in zip(queued, taken, strict=True)],
    )
    audit.record_of_several(session, [(_entry(each), each.actor, each.now_ms) for each in taken])
    runs = iter(queued)
    return [
        QueuedRun(next(runs), group_ids[each.job_id]) if is_allowed else None
        for each, is_allowed in zip(triggers, allowed, strict=True)
    ]


def _entry(trigger: PlainTrigger) -> Entry:
    changes = {"executor_param": trigger.executor_param, "address_list": None}
    return Entry("job.trigger", ("job", trigger.job_id), changes)
