"""What becomes of the jobs that follow one that does not run, because it is switched off or idle. Pure.

docs/reference/rounds.md: of a job that does not run nothing arrives, so that the deadline of a round decides.
"""

from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import NamedTuple

from app.domain.rounds.kinds import AtDeadline, RoundRule
from app.domain.rounds.runs_after import RunsAfter


class Effect(Enum):
    """What becomes of a job that follows one that does not run."""

    #: nothing begins a round of it, or it cannot be complete any more
    NOT_RUN = auto()
    #: it is a child of jobs that do not run
    NOT_TRIGGERED = auto()
    #: its rounds end at their deadline without a run
    DROPPED = auto()
    #: it runs when a deadline has passed, its own or one before it
    LATE = auto()
    #: its rounds wait as long as there are any
    WAITS = auto()
    #: its other predecessors suffice
    RUNS = auto()


class Follower(NamedTuple):
    """A job as a follower; ``rule`` None: it is only a child of others."""

    rule: RunsAfter | None
    has_schedule: bool


#: effects after which followers get nothing, or get that it was not run
_SILENT = frozenset({Effect.NOT_RUN, Effect.NOT_TRIGGERED, Effect.WAITS})
#: those of jobs whose followers notice nothing
_AS_EVER = frozenset({None, Effect.RUNS})


def effects_of(
    job_id: int, followers: Mapping[int, Follower], children: Mapping[int, Collection[int]]
) -> dict[int, Effect]:
    """Return what becomes of each job that follows, nearest first, while ``job_id`` does not run.

    ``followers``: all that follow it, in whatever way and over whatever others.
    """
    effects: dict[int, Effect] = {job_id: Effect.NOT_RUN}
    for follower_id in _in_order(job_id, followers, children):
        effect = _effect(follower_id, followers[follower_id], children, effects)
        if effect is not None:
            effects[follower_id] = effect
    del effects[job_id]
    return effects


def _effect(
    job_id: int,
    follower: Follower,
    children: Mapping[int, Collection[int]],
    effects: Mapping[int, Effect],
) -> Effect | None:
    """Return what becomes of a job; None: nothing that concerns it changes."""
    if follower.rule is not None:
        of_jobs = [effects.get(predecessor) for predecessor in follower.rule.jobs]
        if not set(of_jobs) <= _AS_EVER:
            return _by_rule(follower.rule, of_jobs, has_schedule=follower.has_schedule)
    parents = [parent for parent, ids in children.items() if job_id in ids]
    of_parents = {effects.get(parent) for parent in parents}
    if of_parents <= _AS_EVER or (follower.has_schedule and follower.rule is None):
        return None
    if of_parents <= _SILENT | {Effect.DROPPED}:
        return Effect.NOT_TRIGGERED
    return Effect.LATE if of_parents == {Effect.LATE} else None


def _by_rule(rule: RunsAfter, of_jobs: Collection[Effect | None], *, has_schedule: bool) -> Effect:
    silent = sum(effect in _SILENT for effect in of_jobs)
    drops = sum(effect is Effect.DROPPED for effect in of_jobs)
    late = sum(effect is Effect.LATE for effect in of_jobs)
    in_time = len(of_jobs) - silent - drops - late
    if rule.rule is RoundRule.ALL_ENDED:
        if silent:
            return _at_deadline(rule, has_round=has_schedule or silent < len(of_jobs))
        return Effect.LATE if drops or late else Effect.RUNS
    need = {RoundRule.ANY_SUCCEEDED: 1, RoundRule.K_OF_N: min(rule.k, len(of_jobs))}.get(
        rule.rule, len(of_jobs)
    )
    if in_time >= need:
        return Effect.RUNS
    if in_time + late >= need:
        return Effect.LATE
    if in_time + late + silent < need:
        return Effect.NOT_RUN
    return _at_deadline(rule, has_round=has_schedule or silent < len(of_jobs))


def _at_deadline(rule: RunsAfter, *, has_round: bool) -> Effect:
    if not has_round:
        return Effect.NOT_RUN
    if not rule.deadline_s or rule.at_deadline is AtDeadline.WAIT:
        return Effect.WAITS
    return Effect.LATE if rule.at_deadline is AtDeadline.RUN else Effect.DROPPED


def _in_order(
    job_id: int, followers: Mapping[int, Follower], children: Mapping[int, Collection[int]]
) -> list[int]:
    """Return the followers, each after those before it; what a cycle of children holds comes last."""
    after: dict[int, list[int]] = {}
    missing = dict.fromkeys(followers, 0)
    sources = {*followers, job_id}
    pairs = {(before, other) for other, follower in followers.items() for before in _jobs_of(follower)}
    pairs |= {(parent, child) for parent, ids in children.items() for child in ids}
    for source, target in sorted(pairs):
        if source in sources and target in missing and source != target:
            after.setdefault(source, []).append(target)
            missing[target] += 1
    order, ready = [], [job_id]
    while ready:
        source = ready.pop(0)
        order.append(source)
        for target in after.get(source, ()):
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    order_ids = set(order)
    return [
        *order[1:],
        *(follower for follower in followers if follower not in order_ids and follower != job_id),
    ]


def _jobs_of(follower: Follower) -> tuple[int, ...]:
    return follower.rule.jobs if follower.rule is not None else ()
