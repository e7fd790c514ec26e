"""Statements of the pipeline on `xxl_job_round` and `xxl_job_arrival`."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.rows import bulk, deletion
from app.database.sql import direct
from app.database.sql.in_list import among
from app.domain.enums import FireState, TriggerType
from app.domain.rounds.evaluation import RoundArrival
from app.domain.rounds.kinds import ArrivalOutcome, RoundState
from app.domain.rounds.round_keys import SINCE
from app.models.fire import Fire
from app.models.job import Job
from app.models.round import Arrival, Round
from app.models.skip import Skip


class RoundRow(NamedTuple):
    """A round, as it is evaluated."""

    id: int
    job_id: int
    round_key: str
    logical_ms: Millis
    chain: int | None
    state: str
    reason: str
    epoch: int
    opened_ms: Millis
    deadline_ms: Millis
    due_ms: Millis
    decided_ms: Millis
    cause_log_id: int | None
    incomplete: int
    log_id: int | None
    taken_ms: Millis


class LastDecided(NamedTuple):
    """The last round since the one before that was decided."""

    id: int
    round_key: str
    state: str
    reason: str
    #: first run of the job in it; None: none yet
    log_id: int | None


#: job id and key
RoundName = tuple[int, str]

_COLUMNS = tuple(getattr(Round, name) for name in RoundRow._fields)
_NAMED = select(Round.id, Round.job_id, Round.round_key).where(
    among(Round.job_id, name="jobs"), among(Round.round_key, name="keys")
)
_LOCKED = select(*_COLUMNS).where(among(Round.id)).order_by(Round.id).with_for_update()
#: read backwards by the index of a job's rounds, of which there may be a million
_LAST_ID = (
    select(Round.id)
    .where(Round.job_id == Job.id, Round.state != RoundState.OPEN, Round.round_key.startswith(SINCE))
    .order_by(Round.id.desc())
    .limit(1)
    .correlate(Job)
    .scalar_subquery()
)
_LAST_IDS = select(_LAST_ID).where(among(Job.id))
_LAST = select(Round.job_id, *(getattr(Round, name) for name in LastDecided._fields)).where(among(Round.id))


def find_ids(session: Session, names: Collection[RoundName]) -> dict[RoundName, int]:
    """Return the ids of those of the rounds that exist."""
    if not names:
        return {}
    jobs, keys = sorted({job_id for job_id, _ in names}), sorted({key for _, key in names})
    rows = direct.read(session, _NAMED, {"jobs": jobs, "keys": keys})
    id_by_name = {(row[1], row[2]): row[0] for row in rows}
    return {name: id_by_name[name] for name in names if name in id_by_name}


def insert_rounds(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert rounds, except those that exist; in one order, so that two transactions wait only one way."""
    bulk.insert_ignore(session, Round, sorted(rows, key=lambda row: (row["job_id"], row["round_key"])))


def lock_rounds(session: Session, round_ids: Collection[int]) -> dict[int, RoundRow]:
    """Lock and return the rounds that exist, by id."""
    rows = bulk.read_among(session, _LOCKED, sorted(round_ids)) if round_ids else ()
    return {row[0]: RoundRow._make(row) for row in rows}


def find_last_decided(session: Session, job_ids: Collection[int]) -> dict[int, LastDecided]:
    """Return job id -> its last decided round since the one before; of jobs that have any."""
    ids = bulk.read_among(session, _LAST_IDS, sorted(job_ids)) if job_ids else ()
    last_ids = [row[0] for row in ids if row[0] is not None]
    rows = bulk.read_among(session, _LAST, last_ids) if last_ids else ()
    return {row[0]: LastDecided._make(row[1:]) for row in rows}


#: by their texts; the call of an enum takes several times as long
_OUTCOMES = {outcome.value: outcome for outcome in ArrivalOutcome}
_ARRIVALS = select(
    Arrival.round_id,
    Arrival.predecessor_id,
    Arrival.shard,
    Arrival.total,
    Arrival.outcome,
    Arrival.at_ms,
    Arrival.log_id,
    Arrival.reason,
).where(among(Arrival.round_id))


def find_arrivals(session: Session, round_ids: Collection[int]) -> dict[int, list[RoundArrival]]:
    """Return round id -> what has arrived, for each of the rounds."""
    arrivals: dict[int, list[RoundArrival]] = {round_id: [] for round_id in round_ids}
    for row in bulk.read_among(session, _ARRIVALS, sorted(round_ids)) if round_ids else ():
        round_id, predecessor_id, shard, total, outcome, at_ms, log_id, reason = row
        arrival = RoundArrival(predecessor_id, shard, total, _OUTCOMES[outcome], at_ms, log_id, reason)
        arrivals[round_id].append(arrival)
    return arrivals


def insert_arrivals(session: Session, arrivals: Iterable[tuple[int, RoundArrival]]) -> None:
    """Write the first that arrives of predecessors, or of shards of them, each with the id of its round."""
    bulk.insert_whole(session, Arrival, _rows(arrivals))


def write_arrivals(session: Session, arrivals: Iterable[tuple[int, RoundArrival]]) -> None:
    """Write what arrives, first or not, each with the id of its round; the caller holds the rounds' locks."""
    bulk.upsert(session, Arrival, _rows(arrivals), key=("round_id", "predecessor_id", "shard"))


def _rows(arrivals: Iterable[tuple[int, RoundArrival]]) -> list[bulk.Row]:
    return [
        arrival._asdict() | {"round_id": round_id, "outcome": arrival.outcome.value}
        for round_id, arrival in arrivals
    ]


_DUE = (
    select(Round.id)
    .where(Round.due_ms > 0, Round.due_ms <= bindparam("now_ms"))
    .order_by(Round.due_ms, Round.id)
    .limit(bindparam("most"))
)


def find_due(*, now_ms: Millis, limit: int) -> list[int]:
    """Return the ids of rounds that the monitor is to look at; opens its own transaction."""
    return [row[0] for row in single_statement.read(_DUE, {"now_ms": now_ms, "most": limit})]


_SEEN = (
    update(Round)
    .where(Round.id == bindparam("round_id"), Round.epoch == bindparam("read_epoch"))
    .values(due_ms=0)
)


def mark_passed_on(session: Session, rounds: Sequence[RoundRow]) -> None:
    """Note that followers know of these rounds, unless they have changed since they were read."""
    rows = [{"round_id": row.id, "read_epoch": row.epoch} for row in sorted(rounds)]
    if rows:
        session.connection().execute(_SEEN, rows)


_FIRST = (
    update(Round)
    .where(Round.id == bindparam("round_id"), Round.log_id.is_(None))
    .values(log_id=bindparam("first_id"))
)


def write_first_runs(session: Session, log_by_round: dict[int, int]) -> None:
    """Write the first runs of rounds; the others keep theirs."""
    rows = [{"round_id": key, "first_id": log_id} for key, log_id in sorted(log_by_round.items())]
    if rows:
        session.connection().execute(_FIRST, rows)


#: what `waits_for` says of a fire that waits for a round
PREDECESSORS = "predecessors"
_GATED = (
    select(Fire.id)
    .join(Round, Round.id == Fire.round_id, isouter=True)
    .where(
        Fire.state == FireState.GATED,
        Fire.waits_for == PREDECESSORS,
        func.coalesce(Round.state, RoundState.NOT_RUN.value) != RoundState.OPEN.value,
    )
    .order_by(Fire.id)
    .limit(bindparam("most"))
)


def find_decided_fires(*, limit: int) -> list[int]:
    """Return the ids of fires that wait for a round that is decided, or gone; opens its own transaction."""
    return [row[0] for row in single_statement.read(_GATED, {"most": limit})]


_ANY_GATED = select(Fire.id).where(Fire.state == FireState.GATED, Fire.waits_for == PREDECESSORS).limit(1)


def has_gated() -> bool:
    """Whether any fire waits for a round; opens its own transaction."""
    return bool(single_statement.read(_ANY_GATED, {}))


_WAITING_FOR = select(Fire.round_id).where(among(Fire.round_id), Fire.state == FireState.GATED)


def find_awaited(session: Session, round_ids: Collection[int]) -> set[int]:
    """Return those of the rounds for which a fire waits; the caller holds their locks."""
    rows = bulk.read_among(session, _WAITING_FOR, sorted(round_ids)) if round_ids else ()
    return {row[0] for row in rows}


_ON_THEIR_WAY = (
    select(Fire.job_id, Fire.round_id, Fire.state, Round.state)
    .join(Round, Round.id == Fire.round_id)
    .where(among(Fire.job_id), Round.round_key.startswith(SINCE))
)


class SinceInUse(NamedTuple):
    """Rounds since the last one that fires belong to."""

    #: job id -> the last open one that an instant waits for
    last_by_job: dict[int, int]
    round_ids: set[int]


def find_since_in_use(session: Session, job_ids: Collection[int]) -> SinceInUse:
    """Return the rounds since the last one that fires of these jobs belong to."""
    rows = bulk.read_among(session, _ON_THEIR_WAY, sorted(job_ids)) if job_ids else ()
    used = SinceInUse({}, set())
    for job_id, round_id, fire_state, state in rows:
        used.round_ids.add(round_id)
        if fire_state == FireState.GATED and state == RoundState.OPEN:
            used.last_by_job[job_id] = max(used.last_by_job.get(job_id, 0), round_id)
    return used


def delete_rounds(session: Session, round_ids: Collection[int]) -> None:
    """Delete rounds, and what has arrived in them."""
    deletion.by_values(session, Arrival, "round_id", sorted(round_ids))
    deletion.by_values(session, Round, "id", sorted(round_ids))


_SKIPPED_INSTANTS = select(Skip.round_id, Skip.to_ms).where(
    among(Skip.job_id, name="jobs"), among(Skip.round_id, name="rounds"), Skip.trigger_type == ""
)


def find_skipped_instants(session: Session, gates: Collection[RoundRow]) -> list[tuple[int, Millis]]:
    """Return round id and instant of schedules, of those that were skipped because of these rounds."""
    if not gates:
        return []
    jobs, ids = sorted({row.job_id for row in gates}), sorted(row.id for row in gates)
    rows = direct.read(session, _SKIPPED_INSTANTS, {"jobs": jobs, "rounds": ids})
    return [(row[0], row[1]) for row in rows]


def delete_skips(session: Session, reopened_rounds: Iterable[RoundRow]) -> None:
    """Delete the skips of rounds that are decided anew; those of the instants of a schedule stay."""
    for row in reopened_rounds:
        session.execute(
            delete(Skip).where(
                Skip.job_id == row.job_id,
                Skip.round_id == row.id,
                Skip.trigger_type == TriggerType.AFTER.value,
            )
        )
