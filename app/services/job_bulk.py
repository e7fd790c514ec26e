"""The same thing done to several jobs: each in a transaction of its own, so that one refusal leaves the others alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.clock import Millis
from app.db import session_scope
from app.domain.permissions import Actor, Right
from app.domain.texts import N_
from app.errors import InvalidInput, XxlJobError
from app.services import jobs

#: jobs one request may name: a whole page of the list
JOBS_MAX = 100


class Act(StrEnum):
    """What can be done to several jobs at once."""

    START = "start"
    STOP = "stop"
    MOVE = "move"
    TAG = "tag"
    UNTAG = "untag"
    REMOVE = "delete"


#: what the actor must be allowed on each job's own group
NEEDED: dict[Act, Right] = {act: Right.OPERATE if act in {Act.START, Act.STOP} else Right.EDIT for act in Act}
STEPS = {Act.START: jobs.start_job, Act.STOP: jobs.stop_job, Act.REMOVE: jobs.remove_job}


@dataclass(frozen=True, slots=True)
class Aim:
    """What beside the jobs an act needs: the group ``MOVE`` moves them to, the tag ``TAG`` and ``UNTAG`` are about."""

    group_id: int = 0
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job; ``error`` None: done."""

    job_id: int
    error: XxlJobError | None = None


def check_ids(job_ids: Sequence[int]) -> list[int]:
    """Return the ids once each, in their order; raises InvalidInput for none and for too many."""
    ids = list(dict.fromkeys(job_ids))
    if not ids:
        raise InvalidInput("id", N_("Tick at least one job"))
    if len(ids) > JOBS_MAX:
        raise InvalidInput("id", N_("At most %(limit)s jobs at a time", limit=JOBS_MAX))
    return ids


def change_all(act: Act, job_ids: Sequence[int], aim: Aim, *, actor: Actor, now_ms: Millis) -> list[Outcome]:
    """Do it to every job, in transactions of its own."""
    return [_change_one(act, job_id, aim, actor=actor, now_ms=now_ms) for job_id in check_ids(job_ids)]


def _change_one(act: Act, job_id: int, aim: Aim, *, actor: Actor, now_ms: Millis) -> Outcome:
    try:
        if act is Act.REMOVE:
            jobs.clear_before_removal(job_id, actor=actor)
        with session_scope() as session:
            if act is Act.MOVE:
                jobs.move_job(session, job_id, aim.group_id, actor=actor, now_ms=now_ms)
            elif act in {Act.TAG, Act.UNTAG}:
                jobs.change_tag(session, job_id, aim.tag, wanted=act is Act.TAG, actor=actor, now_ms=now_ms)
            else:
                STEPS[act](session, job_id, actor=actor, now_ms=now_ms)
    except XxlJobError as exc:
        return Outcome(job_id, exc)
    return Outcome(job_id)
