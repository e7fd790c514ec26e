"""Slot gate: gives the fires of a claim their slots, in the order of the waiting list.

docs/reference/limits.md. What becomes of a fire is decided in ``app.domain.limits.admission``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import FireState, LimitKind, RouteStrategy, TriggerType, WhenFull
from app.domain.limits.admission import BEHIND_MS, WAITING_MAX, Action, Decision, Demand, Slots, place_of
from app.domain.limits.keys import key_for
from app.domain.limits.waits import Wait, WaitReason, parse_wait
from app.domain.runs.routing import route_of
from app.domain.runs.trace_templates import (
    KEY_UNFILLED,
    WAITED,
    WAITED_BEHIND,
    WAITED_FOR,
    WAITED_REPLACING,
    write,
)
from app.models.fire import Fire
from app.pipeline.group_candidates import GroupCandidates, addresses_for
from app.pipeline.limits.limit_skips import skip_fires
from app.pipeline.limits.limit_usage import LimitUsage
from app.store.fires import logs
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun
from app.store.limits import rules as limit_rules
from app.store.limits import slots as limit_slots
from app.store.limits.rules import LimitRules
from app.store.limits.slots import NO_END, JobKey
from app.store.limits.waiting import WaitingColumns, find_waiting

#: a fire with its job
Pair = tuple[PendingFire, JobToRun]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fire that asks for slots."""

    fire: PendingFire
    rule: LimitRules
    key: str
    #: place in the order; the lowest is first
    place: Millis
    #: as it waits already; None: it is new
    former: WaitingColumns | None = None
    #: it is of a backfill: it waits, whatever its job says of others, and for as long as it takes
    is_backfill: bool = False

    @property
    def pair(self) -> JobKey:
        """Its job and key."""
        return JobKey(self.rule.job_id, self.key)

    @property
    def answer(self) -> WhenFull:
        """What to do when there is no slot."""
        return WhenFull.WAIT if self.is_backfill else self.rule.answer

    @property
    def max_wait_s(self) -> int:
        """Seconds after which it is skipped; 0: never."""
        return 0 if self.is_backfill else self.rule.max_wait_s


@dataclass(slots=True)
class SlotGate:
    """Gate of a claim of fires with limits."""

    usage: LimitUsage
    candidates: Mapping[int, Candidate]
    slots: Slots
    names: Mapping[int, limit_rules.LimitName]
    zone: str
    now_ms: Millis
    _demands: dict[int, Demand] = field(default_factory=dict)
    _old_waits: list[tuple[Candidate, Wait]] = field(default_factory=list)
    _waiting: list[tuple[Candidate, Wait]] = field(default_factory=list)
    _to_skip: list[Candidate] = field(default_factory=list)
    #: job -> how many of its runs begin to wait
    _began: Counter[int] = field(default_factory=Counter)
    #: job and key -> the fire that is to be the only one to wait
    _newest: dict[JobKey, int] = field(default_factory=dict)

    def admits(self, fire: PendingFire, job: JobToRun, candidates: GroupCandidates) -> bool:
        """Return whether a fire gets its slots now."""
        candidate = self.candidates[fire.id]
        is_broadcast = route_of(job.executor_route_strategy) is RouteStrategy.SHARDING_BROADCAST
        shards = len(addresses_for(fire, candidates)) if is_broadcast and not fire.sharding_param else 1
        rule = candidate.rule
        weights = self.usage.demand(rule, candidate.key, shards=max(shards, 1))
        demand = Demand(weights, candidate.answer, waits=candidate.former is not None)
        decision = self.slots.decide(demand)
        self._demands[fire.id] = demand
        self._note(candidate, decision)
        return decision.action is Action.ADMIT

    def _note(self, candidate: Candidate, decision: Decision) -> None:
        if decision.wait is None:
            return
        if decision.action is Action.KEEP:
            self._old_waits.append((candidate, decision.wait))
        elif decision.action is Action.SKIP or self._count_waiting(candidate.rule.job_id) >= WAITING_MAX:
            self._to_skip.append(candidate)
        else:
            self._waiting.append((candidate, decision.wait))
            self._began[candidate.rule.job_id] += 1
            if decision.action in (Action.NEWEST, Action.REPLACE):
                self._newest[candidate.pair] = candidate.fire.id

    def _count_waiting(self, job_id: int) -> int:
        return self.usage.waiting_by_job[job_id] + self._began[job_id]

    def take(self, fire: PendingFire) -> bulk.Row:
        """Count a fire that is claimed; return its columns."""
        self.slots.take(self._demands[fire.id])
        return self.columns(fire)

    def columns(self, fire: PendingFire) -> bulk.Row:
        """Return the columns of a fire that has its slots."""
        return {
            "admitted_ms": self.now_ms if self._demands[fire.id].slots else 0,
            "limit_key": self.candidates[fire.id].key,
            "waits_for": "",
            "deadline_ms": 0,
        }

    def trace(self, fire: PendingFire) -> tuple[str, ...]:
        """Return what a run has waited for."""
        candidate = self.candidates[fire.id]
        lines = []
        template = candidate.rule.limit_key
        if template and not candidate.key and key_for(template, "") is None:
            lines.append(write(KEY_UNFILLED, key=template))
        wait = parse_wait(candidate.former.waits_for) if candidate.former is not None else None
        if wait is not None:
            lines.append(self._wait_line(wait, (self.now_ms - fire.due_time) // 1000))
        return tuple(lines)

    def _wait_line(self, wait: Wait, seconds: int) -> str:
        runs = ", ".join(map(str, wait.log_ids))
        limit = self._name(wait.limit_id)
        if wait.reason is WaitReason.REPLACING:
            return write(WAITED_REPLACING, seconds=seconds, runs=runs)
        if wait.reason is WaitReason.BEHIND:
            return write(WAITED_BEHIND, seconds=seconds, limit=limit)
        template = WAITED_FOR if runs else WAITED
        return write(template, seconds=seconds, limit=limit, used=wait.used, slots=wait.slots, runs=runs)

    def _name(self, limit_id: int) -> str:
        kind, name = self.names.get(limit_id, (LimitKind.NAMED, str(limit_id)))
        return {LimitKind.JOB: "of the job", LimitKind.GROUP: "of the executor group"}.get(kind, name)

    def write(self, session: Session) -> int:
        """Write which fires wait, and skip those that must not; return how many have begun to wait."""
        newest_ids = set(self._newest.values())
        waiting = [
            (candidate, wait)
            for candidate, wait in self._waiting
            if candidate.pair not in self._newest or candidate.fire.id in newest_ids
        ]
        superseded_fires = [
            candidate.fire
            for candidate, _ in (*self._waiting, *self._old_waits)
            if candidate.pair in self._newest
            and candidate.fire.id not in newest_ids
            and not candidate.is_backfill
        ]
        others = set(limit_slots.find_waiting_of(session, set(self._newest)))
        others -= {fire.id for fire in superseded_fires} | self.candidates.keys()
        superseded_fires += [
            fire for fire in fires.lock_waiting(session, others) if fire.trigger_type != TriggerType.BACKFILL
        ]
        bulk.update_many(session, Fire, [self._row(candidate, wait) for candidate, wait in waiting])
        bulk.update_many(session, Fire, self._changed_reasons())
        skipped_fires = [candidate.fire for candidate in self._to_skip]
        skip_fires(session, [*skipped_fires, *superseded_fires], zone=self.zone, now_ms=self.now_ms)
        return len(waiting)

    def _row(self, candidate: Candidate, wait: Wait) -> bulk.Row:
        longest_s = candidate.max_wait_s
        return {
            "id": candidate.fire.id,
            "state": FireState.WAITING.value,
            "waits_for": wait.text,
            "limit_key": candidate.key,
            "deadline_ms": candidate.place,
            "lease_until": self.now_ms + longest_s * 1000 if longest_s > 0 else NO_END,
        }

    def _changed_reasons(self) -> list[bulk.Row]:
        """Return the new reasons of fires that wait for another limit than before."""
        rows = []
        for candidate, wait in self._old_waits:
            former = parse_wait(candidate.former.waits_for) if candidate.former is not None else None
            is_replacing = former is not None and former.reason is WaitReason.REPLACING
            if not is_replacing and (former is None or former.limit_id != wait.limit_id):
                rows.append({"id": candidate.fire.id, "waits_for": wait.text})
        return rows


def open_gate(
    session: Session, to_run: Sequence[Pair], usage: LimitUsage, *, zone: str, now_ms: Millis
) -> SlotGate:
    """Lock the limits that may give slots to these fires, and return their gate.

    Limits that are full are not locked: their fires wait, and no claim waits for them.
    """
    candidates = _candidates(session, to_run, usage)
    demands = [usage.demand(candidate.rule, candidate.key) for candidate in candidates]
    locked_ids = {
        scope.limit_id
        for demand in demands
        if not any(usage.is_full(scope) for scope in demand)
        for scope in demand
    }
    limit_rules.lock(session, locked_ids)
    if locked_ids:
        usage.count(session)  # The claims before this one have ended by now.
    closed_scopes = {scope for demand in demands for scope in demand if scope.limit_id not in locked_ids}
    waits = [
        parse_wait(candidate.former.waits_for) for candidate in candidates if candidate.former is not None
    ]
    names = limit_rules.find_names(session, {wait.limit_id for wait in waits if wait is not None})
    by_fire = {candidate.fire.id: candidate for candidate in sorted(candidates, key=_order)}
    return SlotGate(usage, by_fire, usage.book(closed_scopes), names, zone, now_ms)


def _order(candidate: Candidate) -> tuple[Millis, int]:
    return candidate.place, candidate.fire.id


def _candidates(session: Session, to_run: Sequence[Pair], usage: LimitUsage) -> list[Candidate]:
    waiting = find_waiting(session, [fire.id for fire, _ in to_run])
    origins = _origins(session, [fire for fire, _ in to_run])
    turns = usage.turns
    candidates = []
    for fire, job in to_run:
        if (rule := usage.rules.get(fire.job_id)) is None:  # It was deleted meanwhile, and so is the fire.
            continue
        origin = origins.get(fire.id)
        first_type = origin.trigger_type if origin is not None else fire.trigger_type
        is_backfill = first_type == TriggerType.BACKFILL
        if (former := waiting.get(fire.id)) is not None:
            candidates.append(Candidate(fire, rule, former.limit_key, former.place, former, is_backfill))
            continue
        param = fire.executor_param if fire.executor_param is not None else job.executor_param or ""
        key = (key_for(rule.limit_key, param) or "") if rule.limit_key else ""
        pair = JobKey(rule.job_id, key)
        turn = turns[pair] if rule.limit_key else 0
        turns[pair] += not is_backfill
        due_ms = origin.due_ms if origin is not None else fire.due_time
        place = place_of(due_ms, rule.priority, turn)
        place += BEHIND_MS if is_backfill else 0
        candidates.append(Candidate(fire, rule, key, place, None, is_backfill))
    return candidates


def _origins(session: Session, asking: Sequence[PendingFire]) -> dict[int, logs.Origin]:
    """Return the first run of a retry's chain, by fire."""
    sources = {
        fire.id: source
        for fire in asking
        if fire.trigger_type == TriggerType.RETRY and (source := fires.source_of(fire.fire_key)) is not None
    }
    if not sources:
        return {}
    origins = logs.find_origins(session, set(sources.values()))
    return {fire_id: origins[log_id] for fire_id, log_id in sources.items() if log_id in origins}
