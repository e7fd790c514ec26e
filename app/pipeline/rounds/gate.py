"""Gate: instants of a schedule wait for the round of their job's predecessors.

docs/reference/rounds.md. Such a fire is GATED until its round is decided; then it is PENDING again, or
skipped.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import announce_due_fires, transact
from app.database.rows import bulk
from app.domain.enums import FireState
from app.domain.rounds.kinds import RoundKind, RoundState
from app.domain.rounds.round_keys import round_key, since_key
from app.domain.rounds.runs_after import RunsAfter, parse_runs_after
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.round import Round
from app.pipeline.rounds.decisions import insert_round_skips
from app.pipeline.rounds.excuses import looks_ahead
from app.pipeline.rounds.opening import lock_rounds, new_round
from app.store.fires import queue as fires
from app.store.fires.queue import PendingFire
from app.store.jobs.scheduling import JobToRun
from app.store.rounds import rounds
from app.store.rounds.rounds import PREDECESSORS, LastDecided, RoundName, RoundRow, SinceInUse

#: fires of one transaction
PAGE = 500

Pair = tuple[PendingFire, JobToRun]


def needs_round(fire: PendingFire, job: JobToRun) -> bool:
    """Whether a fire has to wait for a round: an instant of a schedule whose job runs after others."""
    if not job.runs_after or fire.round_id is not None or fire.log_id is not None:
        return False
    return fire.trigger_type in fires.SCHEDULED and parse_runs_after(job.runs_after) is not None


def hold(session: Session, pairs: Sequence[Pair], *, zone: str, now_ms: Millis) -> list[DueFire]:
    """Give each of these locked fires its round; return those to claim once more.

    Of these the round has started, so that they may run, or they need a round since the last one for which
    another instant waits by now. The others wait. A round that the instant opens waits from the instant on.
    """
    rules = {job.id: rule for _, job in pairs if (rule := parse_runs_after(job.runs_after)) is not None}
    since = {job_id for job_id, rule in rules.items() if rule.round is RoundKind.SINCE_LAST}
    pairs, again = _first_of_each(pairs, since)
    last, used = rounds.find_last_decided(session, since), rounds.find_since_in_use(session, since)
    names = {
        fire.id: (job.id, _key(fire, rules[job.id], job.time_zone or zone, last.get(job.id), used))
        for fire, job in pairs
    }
    row_by_name = _lock(session, pairs, names, rules)
    used = rounds.find_since_in_use(session, since)  # By now no other claim can take one.
    is_looked_at, rows, round_ids = looks_ahead(), list[bulk.Row](), dict[int, int]()
    started_rounds, waiting = dict[int, RoundRow](), dict[int, RoundRow]()
    for fire, job in pairs:
        row = row_by_name[names[fire.id]]
        if job.id in since and not _is_free(row, used):
            again.append(fire)
        elif row.state == RoundState.STARTED:
            started_rounds[row.id] = row
            round_ids[fire.id] = row.id
        else:
            rows.append(
                {"id": fire.id, "state": FireState.GATED.value, "round_id": row.id, "waits_for": PREDECESSORS}
            )
            is_own = job.id in since
            round_row = _from_instant(waiting.get(row.id, row), rules[job.id], fire, is_own=is_own)
            waiting[row.id] = round_row._replace(due_ms=fire.due_time) if is_looked_at else round_row
    bulk.update_many(session, Fire, rows)
    bulk.update_many(session, Fire, [{"id": key, "round_id": round_ids[key]} for key in round_ids])
    _write(session, waiting.values(), started_rounds.values(), now_ms)
    ready = [fire for fire, _ in pairs if fire.id in round_ids]
    return [DueFire(fire.id, fire.job_id, fire.due_time) for fire in (*ready, *again)]


def _first_of_each(pairs: Sequence[Pair], since: Collection[int]) -> tuple[list[Pair], list[PendingFire]]:
    """Return the fires without all but the first of each of these jobs, and those others."""
    first: dict[int, PendingFire] = {}
    for fire, job in sorted(pairs, key=lambda pair: (pair[0].due_time, pair[0].id)):
        if job.id in since:
            first.setdefault(job.id, fire)
    is_left = {fire.id for fire, job in pairs if first.get(job.id, fire) is not fire}
    left = [fire for fire, _ in pairs if fire.id in is_left]
    return [pair for pair in pairs if pair[0].id not in is_left], left


def _key(fire: PendingFire, rule: RunsAfter, zone: str, last: LastDecided | None, used: SinceInUse) -> str:
    key = round_key(rule.round, fire.logical_time, zone=zone, chain=None)
    if key:
        return key
    if (awaited_id := used.last_by_job.get(fire.job_id)) is not None:
        return since_key(awaited_id)
    if last is None:
        return since_key(0)
    return last.round_key if _is_unused(last, used) else since_key(last.id)


def _is_free(row: RoundRow, used: SinceInUse) -> bool:
    """Whether an instant may take a round since the last one: one that waits for it, or runs in it."""
    if row.state == RoundState.OPEN:
        return row.id > used.last_by_job.get(row.job_id, 0)
    return _is_unused(row, used)


def _is_unused(row: RoundRow | LastDecided, used: SinceInUse) -> bool:
    """Whether a round has started, and no instant has run in it or is about to."""
    return row.state == RoundState.STARTED and row.log_id is None and row.id not in used.round_ids


def _lock(
    session: Session, pairs: Iterable[Pair], names: Mapping[int, RoundName], rules: Mapping[int, RunsAfter]
) -> dict[RoundName, RoundRow]:
    first: dict[RoundName, Pair] = {}
    for fire, job in pairs:
        first.setdefault(names[fire.id], (fire, job))

    def new_row(name: RoundName) -> bulk.Row:
        fire, job = first[name]
        return new_round(name, fire.logical_time, opened_ms=fire.due_time, wait_ms=rules[job.id].wait_ms)

    return lock_rounds(session, first, new_row)


def _from_instant(row: RoundRow, rule: RunsAfter, fire: PendingFire, *, is_own: bool) -> RoundRow:
    """Return a round as it waits from the first of its instants on; ``is_own``: this is the only one."""
    if row.state != RoundState.OPEN or (row.taken_ms and not is_own):
        return row
    end_ms = fire.due_time + rule.wait_ms
    return row._replace(deadline_ms=end_ms, due_ms=end_ms, taken_ms=fire.due_time)


def _write(
    session: Session, waiting: Iterable[RoundRow], started_rounds: Iterable[RoundRow], now_ms: Millis
) -> None:
    """Write the ends of the waits, and which rounds an instant has taken."""
    names = ("id", "deadline_ms", "due_ms", "taken_ms", "epoch")
    changed_rows = [row._replace(epoch=row.epoch + 1) for row in waiting if row.state == RoundState.OPEN]
    changed_rows += [
        row._replace(epoch=row.epoch + 1, taken_ms=now_ms) for row in started_rounds if not row.taken_ms
    ]
    bulk.update_many(session, Round, [{name: getattr(row, name) for name in names} for row in changed_rows])


def release(*, now_ms: Millis) -> bool:
    """Let the fires go on whose rounds are decided; return whether any fire waits for a round.

    Opens its own transactions.
    """
    if not rounds.has_gated():
        return False
    while fire_ids := rounds.find_decided_fires(limit=PAGE):
        count = transact(partial(_release, fire_ids=fire_ids, now_ms=now_ms))
        if count < PAGE:
            break
    return True


def _release(session: Session, fire_ids: Sequence[int], now_ms: Millis) -> int:
    gate_fires = fires.lock_gated(session, fire_ids)
    rows = rounds.lock_rounds(session, {fire.round_id for fire in gate_fires if fire.round_id})
    ready, skipped_fires = list[bulk.Row](), list[tuple[PendingFire, RoundRow]]()
    for fire in gate_fires:
        row = rows.get(fire.round_id or 0)
        if row is not None and row.state == RoundState.OPEN:
            continue
        if row is not None and row.state == RoundState.NOT_RUN:
            skipped_fires.append((fire, row))
            continue
        # That of a round that is gone, too: nothing is left that it could wait for.
        ready.append({"id": fire.id, "state": FireState.PENDING.value, "owner": "", "waits_for": ""})
    bulk.update_many(session, Fire, ready)
    if ready:
        announce_due_fires(session)
    _skip(session, skipped_fires, now_ms)
    return len(gate_fires)


def _skip(session: Session, skipped_fires: Sequence[tuple[PendingFire, RoundRow]], now_ms: Millis) -> None:
    """Skip instants whose round was not run; the monitor passes it on to the jobs that follow."""
    if not skipped_fires:
        return
    instants = [(row, fire.due_time) for fire, row in skipped_fires]
    job_by_id = insert_round_skips(session, instants, trigger_type="", now_ms=now_ms)
    fires.delete_fires(session, [fire.id for fire, _ in skipped_fires])
    followed_rounds = {row.id: row for _, row in skipped_fires if row.job_id in job_by_id}
    due = [
        {"id": row.id, "due_ms": now_ms, "epoch": row.epoch + 1}
        for row in followed_rounds.values()
        if job_by_id[row.job_id].has_followers
    ]
    bulk.update_many(session, Round, due)
