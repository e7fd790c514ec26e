"""The same thing done to several jobs: each in a transaction of its own, so that one refusal leaves the others alone."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.clock import Clock
from app.db import transact
from app.domain.permissions import Actor, Right
from app.domain.texts import N_
from app.errors import Conflict, InvalidInput, XxlJobError
from app.services.jobs import jobs
from app.services.jobs.jobs import JobFilter

logger = logging.getLogger(__name__)

#: jobs one request may name: a whole page of the list
JOBS_MAX = 100
#: jobs that may match a filter all of whose jobs are changed
MATCHING_MAX = 2_000
#: how long one request changes jobs
PIECE_S = 1.5


class Act(StrEnum):
    """What can be done to several jobs at once."""

    START = "start"
    STOP = "stop"
    RUN = "run"
    MOVE = "move"
    TAG = "tag"
    UNTAG = "untag"
    REMOVE = "delete"


#: what the actor must be allowed on each job's own group
NEEDED: dict[Act, Right] = {
    Act.START: Right.OPERATE,
    Act.STOP: Right.OPERATE,
    Act.RUN: Right.OPERATE,
    Act.MOVE: Right.EDIT,
    Act.TAG: Right.EDIT,
    Act.UNTAG: Right.EDIT,
    Act.REMOVE: Right.EDIT,
}


@dataclass(frozen=True, slots=True)
class Aim:
    """What beside the jobs an act needs: the group ``MOVE`` moves them to, the tag ``TAG`` and ``UNTAG`` are about."""

    group_id: int = 0
    tag: str = ""
    #: names the question: ``RUN`` queues a job once for it, however often it is answered
    key: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one job; ``error`` None: done."""

    job_id: int
    error: XxlJobError | None = None
    #: the same question was answered before: this time nothing was done
    already: bool = False


def check_ids(job_ids: Sequence[int], limit: int = JOBS_MAX) -> list[int]:
    """Return the ids once each, in their order; raises InvalidInput for none and for too many."""
    ids = list(dict.fromkeys(job_ids))
    if not ids:
        raise InvalidInput("id", N_("Tick at least one job"))
    if len(ids) > limit:
        raise InvalidInput("id", N_("At most %(limit)s jobs at a time", limit=limit))
    return ids


def find_matching(session: Session, act: Act, wanted: JobFilter, *, actor: Actor) -> tuple[list[int], int]:
    """Return the ids of the jobs of a list it may be done to, and how many others are seen there; raises InvalidInput for too many."""
    page = jobs.list_jobs(session, wanted, actor=actor, start=0, length=MATCHING_MAX + 1)
    if page.total > MATCHING_MAX:
        raise InvalidInput(
            "id", N_("At most %(limit)s jobs at a time: choose fewer by the filters", limit=MATCHING_MAX)
        )
    ids = [job.id for job in page.rows if actor.may(job.job_group, NEEDED[act])]
    return ids, len(page.rows) - len(ids)


def change_piece(
    act: Act,
    job_ids: Sequence[int],
    aim: Aim,
    *,
    actor: Actor,
    clock: Clock,
    monotonic: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Do it to the first jobs for PIECE_S, each in transactions of its own."""
    until, told = monotonic() + PIECE_S, list[Outcome]()
    for job_id in job_ids:
        told.append(_change_one(act, job_id, aim, actor=actor, clock=clock))
        if monotonic() >= until:
            break
    return told


def _change_one(act: Act, job_id: int, aim: Aim, *, actor: Actor, clock: Clock) -> Outcome:
    """Change one job. Whatever the database refuses is this job's outcome: the others before it are done, and stay so."""
    try:
        if act is Act.REMOVE:
            jobs.clear_before_removal(job_id, actor=actor)
        changed = transact(lambda session: _change(session, act, job_id, aim, actor=actor, clock=clock))
    except XxlJobError as exc:
        return Outcome(job_id, exc)
    except DBAPIError as exc:
        logger.error("change failed act=%s job_id=%s database_error=%s", act, job_id, exc.orig)
        return Outcome(job_id, Conflict(N_("The database refused the change: try again")))
    return Outcome(job_id, already=not changed)


def _change(session: Session, act: Act, job_id: int, aim: Aim, *, actor: Actor, clock: Clock) -> bool:
    """Change one job; False where this question has done it before."""
    match act:
        case Act.START:
            jobs.start_job(session, job_id, actor=actor, clock=clock)
        case Act.STOP:
            jobs.stop_job(session, job_id, actor=actor, clock=clock)
        case Act.RUN:
            return jobs.trigger_job(
                session,
                job_id,
                executor_param=None,
                address_list=None,
                actor=actor,
                now_ms=clock(),
                asked_by=aim.key,
            )
        case Act.MOVE:
            jobs.move_job(session, job_id, aim.group_id, actor=actor, now_ms=clock())
        case Act.TAG | Act.UNTAG:
            jobs.change_tag(session, job_id, aim.tag, wanted=act is Act.TAG, actor=actor, now_ms=clock())
        case Act.REMOVE:
            jobs.remove_job(session, job_id, actor=actor, now_ms=clock())
    return True
