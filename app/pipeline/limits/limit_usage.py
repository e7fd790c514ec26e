"""Use of limits: their slots, and the open runs that have them. Reads only, but for missing rows."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from sqlalchemy.orm import Session

from app.domain.enums import LimitKind
from app.domain.limits.admission import Scope, Slots
from app.domain.schedules.planning import DueFire
from app.store.limits import rules as limit_rules
from app.store.limits import slots
from app.store.limits.rules import LimitName, LimitRules, Share
from app.store.limits.slots import JobKey, LimitShares, OpenRun, WaitingRuns

#: room of a job that has no limit any more, or does not exist
ROOM_MAX = 512
#: how many more waiting runs are looked at than a limit has free slots
LOOKED_AHEAD = 32


@dataclass
class LimitUsage:
    """Rules of some jobs and of all that wait for the same limits, and the slots that are taken."""

    rules: dict[int, LimitRules]
    #: runs that wait, by job and key
    waiting: dict[JobKey, WaitingRuns]
    #: limits of jobs and groups
    ids: Mapping[LimitName, int]
    #: of all jobs that share a limit with these
    shares: Sequence[Share]
    #: limit id -> its slots
    slots: dict[int, int] = field(default_factory=dict)
    used: Counter[Scope] = field(default_factory=Counter)
    #: log ids of the runs that have the slots
    holders: dict[Scope, list[int]] = field(default_factory=dict)
    #: open runs by job and key
    open: Counter[JobKey] = field(default_factory=Counter)

    @classmethod
    def read(cls, session: Session, job_ids: Collection[int]) -> Self:
        """Return the use of the limits of these jobs; limits of jobs and groups get their rows."""
        rules = limit_rules.find_rules(session, job_ids)
        shares = _find_shares(session, rules)
        has_groups = any(rule.group_max > 0 for rule in rules.values())
        sharing = {*job_ids, *(share.job_id for share in shares)}
        waiting = slots.count_waiting(session, None if has_groups else sharing)
        others = limit_rules.find_rules(session, {pair.job_id for pair in waiting} - rules.keys())
        if not has_groups and _reach_further(others.values(), {share.limit_id for share in shares}):
            # Those that wait before them for the further limits count, too.
            waiting = slots.count_waiting(session, None)
            others |= limit_rules.find_rules(
                session, {pair.job_id for pair in waiting} - rules.keys() - others.keys()
            )
        rules |= others
        ids = limit_rules.add_missing(session, _names(rules))
        return cls._make(session, rules, waiting, ids)

    @classmethod
    def read_waiting(cls, session: Session) -> Self:
        """Return the use of the limits for which any run waits; writes nothing."""
        waiting = slots.count_waiting(session, None)
        rules = limit_rules.find_rules(session, {pair.job_id for pair in waiting})
        return cls._make(session, rules, waiting, limit_rules.find_ids(session, _names(rules)))

    @classmethod
    def _make(
        cls,
        session: Session,
        rules: dict[int, LimitRules],
        waiting: dict[JobKey, WaitingRuns],
        ids: Mapping[LimitName, int],
    ) -> Self:
        usage = cls(rules, waiting, ids, _find_shares(session, rules))
        for rule in rules.values():
            usage.slots |= {share.limit_id: share.slots for share in rule.shares}
            own_slots = {LimitKind.JOB: rule.max_running, LimitKind.GROUP: rule.group_max}
            usage.slots |= {ids[name]: own_slots[name[0]] for name in rule.names if name in ids}
        usage.count(session)
        return usage

    @property
    def turns(self) -> Counter[JobKey]:
        """How many runs of each job and key have slots, or wait and are not behind all others."""
        return self.open + Counter({pair: runs.total - runs.behind for pair, runs in self.waiting.items()})

    @cached_property
    def waiting_by_job(self) -> Counter[int]:
        """How many runs of each job wait."""
        counts = Counter[int]()
        for pair, runs in self.waiting.items():
            counts[pair.job_id] += runs.total
        return counts

    def count(self, session: Session) -> None:
        """Count the slots that are taken."""
        job_ids = {rule.job_id for rule in self.rules.values() if rule.max_running > 0}
        group_ids = {rule.job_group for rule in self.rules.values() if rule.group_max > 0}
        job_ids |= {share.job_id for share in self.shares}
        self._count(slots.find_open(session, job_ids, group_ids))

    def _count(self, runs: Sequence[OpenRun]) -> None:
        self.used, self.open = Counter(), Counter()
        holders = defaultdict[Scope, list[int]](list)
        shares_by_job = defaultdict[int, list[Share]](list)
        for share in self.shares:
            shares_by_job[share.job_id].append(share)
        counted_runs = set[tuple[int, str]]()
        for run in runs:
            weights = {Scope(share.limit_id): share.weight for share in shares_by_job[run.job_id]}
            group_limit = self.ids.get((LimitKind.GROUP, str(run.job_group)))
            if group_limit in self.slots:
                weights[Scope(group_limit)] = 1
            rule = self.rules.get(run.job_id)
            if rule is not None and (run.job_id, run.run_key) not in counted_runs:
                counted_runs.add((run.job_id, run.run_key))
                self.open[JobKey(run.job_id, run.limit_key)] += 1
                weights |= self._own(rule, run.limit_key)
            self.used.update(weights)
            for scope in weights:
                if run.log_id:
                    holders[scope].append(run.log_id)
        self.holders = dict(holders)

    def demand(self, rule: LimitRules, key: str, *, shards: int = 1) -> dict[Scope, int]:
        """Return the slots that a run takes, a broadcast as many as it has shards but for that of its job."""
        weights = self._own(rule, key)
        group_limit = self.ids.get((LimitKind.GROUP, str(rule.job_group)))
        if rule.group_max > 0 and group_limit is not None:
            weights[Scope(group_limit)] = shards
        return weights | {Scope(share.limit_id): share.weight * shards for share in rule.shares}

    def _own(self, rule: LimitRules, key: str) -> dict[Scope, int]:
        limit_id = self.ids.get((LimitKind.JOB, str(rule.job_id)))
        if rule.max_running <= 0 or limit_id is None:
            return {}
        return {Scope(limit_id, key if rule.limit_key else ""): 1}

    def room(self) -> dict[JobKey, int]:
        """Return how many of the waiting runs of each job and key may get slots now.

        At least one if no limit is full: if it needs more than there is, the others do not overtake it.
        """
        return {pair: room for pair in self.waiting if (room := self._room_of(pair))}

    def _room_of(self, pair: JobKey) -> int:
        if (rule := self.rules.get(pair.job_id)) is None:  # Another program has deleted the job.
            return ROOM_MAX
        demand = self.demand(rule, pair.key)
        if any(self.is_full(scope) for scope in demand):
            return 0
        free = [(self.slots[scope.limit_id] - self.used[scope]) // weight for scope, weight in demand.items()]
        return max(min(free, default=ROOM_MAX), 1)

    def share(self, room: Mapping[JobKey, int]) -> LimitShares:
        """Return which named limits and those of groups these jobs have, and how far to look for each.

        As many runs as there are free slots may get one; LOOKED_AHEAD more, as some need further slots.
        """
        limits = {pair: self._shared_by(pair.job_id) for pair in room}
        most = {
            limit_id: max(self.slots[limit_id] - self.used[Scope(limit_id)], 0) + LOOKED_AHEAD
            for limit_id in frozenset[int]().union(*limits.values())
        }
        return LimitShares(most, limits)

    def _shared_by(self, job_id: int) -> frozenset[int]:
        if (rule := self.rules.get(job_id)) is None:
            return frozenset()
        group_limit = self.ids.get((LimitKind.GROUP, str(rule.job_group))) if rule.group_max > 0 else None
        own = () if group_limit is None else (group_limit,)
        return frozenset({*own, *(share.limit_id for share in rule.shares)})

    def find_first(self, session: Session) -> list[tuple[DueFire, str]]:
        """Return the waiting fires that may get slots now with their keys, in their order."""
        room = self.room()
        return slots.find_first(session, room, self.share(room))

    def is_full(self, scope: Scope) -> bool:
        """Whether a limit has no slot at all."""
        return self.used[scope] >= self.slots[scope.limit_id]

    def book(self, closed_scopes: Iterable[Scope]) -> Slots:
        """Return the slots for decisions."""
        return Slots(self.slots, self.used, self.holders, closed_scopes)


def _reach_further(rules: Iterable[LimitRules], limit_ids: Collection[int]) -> bool:
    """Whether jobs have limits beside these and their own."""
    return any(
        rule.group_max > 0 or any(share.limit_id not in limit_ids for share in rule.shares) for rule in rules
    )


def _names(rules: Mapping[int, LimitRules]) -> set[LimitName]:
    return {name for rule in rules.values() for name in rule.names}


def _find_shares(session: Session, rules: Mapping[int, LimitRules]) -> list[Share]:
    limit_ids = {share.limit_id for rule in rules.values() for share in rule.shares}
    return limit_rules.find_shares(session, limit_ids)
