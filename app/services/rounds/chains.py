"""Chains: runs by hand with all that follows them; the rounds of a chain are opened with its trigger."""

from collections.abc import Collection, Iterable, Mapping, Set

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.enums import ScheduleType
from app.domain.rounds.cycles import reachable
from app.domain.rounds.evaluation import RoundArrival
from app.domain.rounds.kinds import ArrivalOutcome
from app.domain.rounds.round_keys import chain_key
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.domain.runs.trigger_keys import Trigger
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied
from app.pipeline.rounds.arrivals import Outcome, arrive
from app.pipeline.rounds.ends import without_children
from app.pipeline.rounds.opening import new_round
from app.services.rounds.rules import WITHOUT_JAVA
from app.store.jobs.listing import find_groups_of
from app.store.rounds import following, rounds
from app.store.rounds.edges import Followers
from app.store.rounds.following import FollowerRow

CHAIN = "chain"
SOONER = N_(
    "The chain would run jobs that you may not run, sooner than their schedules and predecessors say; run"
    " this one without the chain"
)
#: most jobs of a chain
JOBS_MAX = 500


def find_chain(session: Session, job_id: int) -> set[int]:
    """Return a job and all that follow it, by `runs_after` and as children; raises InvalidInput."""
    job_ids, is_cut = reachable([job_id], Followers(session), most=JOBS_MAX)
    if is_cut:
        problem = N_(
            "More than %(limit)s jobs follow this one; run it without the chain, or begin further down",
            limit=JOBS_MAX,
        )
        raise InvalidInput(CHAIN, problem)
    return job_ids


def open_chain(
    session: Session, trigger: Trigger, logical_ms: Millis, *, actor: Actor, shared_with_java: bool
) -> None:
    """Open the rounds of all jobs that follow that of a trigger, in the transaction of the trigger.

    Predecessors that do not descend from the job are excused. Raises InvalidInput and PermissionDenied.
    """
    check_chain(session, trigger.job_id, actor=actor, shared_with_java=shared_with_java)
    open_rounds(session, trigger.job_id, {trigger.number: logical_ms}, opened_ms=trigger.due_ms)


def check_chain(session: Session, job_id: int, *, actor: Actor, shared_with_java: bool) -> None:
    """Raise InvalidInput and PermissionDenied if the actor may not run a job with all that follows it."""
    job_ids = find_chain(session, job_id)
    jobs = following.find_jobs(session, job_ids - {job_id})
    rules = _rules(jobs, job_ids)
    if not rules:
        return
    if shared_with_java:
        raise InvalidInput(CHAIN, WITHOUT_JAVA)
    _require(session, jobs, rules, job_ids, actor)


def open_rounds(
    session: Session, job_id: int, logical_times: Mapping[int, Millis], *, opened_ms: Millis
) -> None:
    """Open the rounds of chains of a job, as ``open_chain``, without a check of rights.

    ``logical_times``: number of the trigger of a chain -> its logical time.
    """
    job_ids = find_chain(session, job_id)
    rules = _rules(following.find_jobs(session, job_ids - {job_id}), job_ids)
    if not rules:
        return
    names = {
        (follower_id, chain): (follower_id, chain_key(chain))
        for follower_id in rules
        for chain in logical_times
    }
    rows = [
        new_round(
            name, logical_times[chain], opened_ms=opened_ms, wait_ms=rules[follower_id].wait_ms, chain=chain
        )
        for (follower_id, chain), name in names.items()
    ]
    rounds.insert_rounds(session, rows)
    ids = rounds.find_ids(session, names.values())
    excuses = (
        (ids[name], RoundArrival(other, 0, 1, ArrivalOutcome.EXCUSED, opened_ms))
        for (follower_id, _), name in names.items()
        for other in rules[follower_id].jobs
        if other not in job_ids
    )
    rounds.write_arrivals(session, excuses)


def _require(
    session: Session,
    jobs: Mapping[int, FollowerRow],
    rules: Mapping[int, RunsAfter],
    job_ids: Set[int],
    actor: Actor,
) -> None:
    """Check the right to run jobs that would run without their schedule, or without some predecessor.

    The others would follow the job's run without the chain, too.
    """
    sooner = {
        job_id
        for job_id, rule in rules.items()
        if jobs[job_id].schedule_type != ScheduleType.NONE or not job_ids >= {*rule.jobs}
    }
    groups = find_groups_of(session, sooner) if sooner else {}
    if not all(actor.may(group_id, Right.OPERATE) for group_id in groups.values()):
        raise PermissionDenied(SOONER)


def _rules(jobs: Mapping[int, FollowerRow], job_ids: Collection[int]) -> dict[int, RunsAfter]:
    """Return the rules of the jobs that run after one of the chain; the others are in it as children."""
    rules = {job_id: parse_runs_after(job.runs_after) for job_id, job in jobs.items()}
    return {job_id: rule for job_id, rule in rules.items() if rule is not None and _is_in(rule.jobs, job_ids)}


def _is_in(predecessors: Iterable[int], job_ids: Collection[int]) -> bool:
    return any(predecessor in job_ids for predecessor in predecessors)


def withdraw_chain(session: Session, trigger: Trigger, logical_ms: Millis, *, now_ms: Millis) -> None:
    """Note in the rounds of a chain that its first run was withdrawn, so that nothing of it runs."""
    first = Outcome(
        trigger.job_id, logical_ms, ArrivalOutcome.NOT_RUN, None, trigger.number, reason="withdrawn"
    )
    arrive(session, [first, *without_children(session, [first])], now_ms=now_ms)
