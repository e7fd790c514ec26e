"""Open and waiting runs: the fires that have slots, and those that wait for one."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, case, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.rows import bulk
from app.database.sql.exact_text import exact
from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import FireState
from app.domain.limits.admission import BEHIND_MS
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.job import Job

#: end of a wait that has none
NO_END: Millis = 2**62
#: states of runs that have slots
WITH_SLOTS = (
    FireState.ROUTING,
    FireState.SENDING,
    FireState.ACCEPTED,
    FireState.UNKNOWN,
    FireState.HELD,
)
#: most rounds of the search for the first waiting runs, and fires that each reads
ROUNDS_MAX, ROUND_ROWS = 16, 128
#: most sets of keys that a round looks for, each with its jobs
KEY_SETS_MAX = 100


class OpenRun(NamedTuple):
    """A run that has slots."""

    fire_id: int
    job_id: int
    job_group: int
    limit_key: str
    fire_key: str
    sharding_param: str | None
    log_id: int | None

    @property
    def run_key(self) -> str:
        """The key of the whole run, of a broadcast without its shard."""
        return self.fire_key.rpartition(":")[0] if self.sharding_param else self.fire_key


#: A fire that was claimed and given back, and the shards of a broadcast, keep their slots.
IS_OPEN = or_(
    Fire.state.in_(WITH_SLOTS),
    and_(Fire.state == FireState.PENDING, or_(Fire.admitted_ms > 0, Fire.attempt > 0, Fire.epoch > 0)),
)
_OPEN = (
    select(
        Fire.id,
        Fire.job_id,
        Job.job_group,
        Fire.limit_key,
        Fire.fire_key,
        Fire.sharding_param,
        Fire.log_id,
    )
    .join(Job, Job.id == Fire.job_id)
    .where(IS_OPEN)
)
_OF_JOBS, _OF_GROUPS = _OPEN.where(among(Fire.job_id)), _OPEN.where(among(Job.job_group))


def find_open(session: Session, job_ids: Collection[int], group_ids: Collection[int]) -> list[OpenRun]:
    """Return the open runs of these jobs and of all jobs of these groups, each once, ids ascending."""
    rows = bulk.read_among(session, _OF_JOBS, sorted(job_ids)) if job_ids else []
    more = bulk.read_among(session, _OF_GROUPS, sorted(group_ids)) if group_ids else []
    by_fire = {row[0]: OpenRun._make(row) for row in (*rows, *more)}
    return [by_fire[fire_id] for fire_id in sorted(by_fire)]


class JobKey(NamedTuple):
    """A job, or of a job with keys one of them."""

    job_id: int
    key: str


class WaitingRuns(NamedTuple):
    """How many runs of a job and key wait."""

    total: int
    #: those of backfills, which are behind all others
    behind: int = 0


_IS_BEHIND = Fire.deadline_ms > Fire.due_time + BEHIND_MS // 2
_WAITING = (
    select(Fire.job_id, Fire.limit_key, func.count(), func.sum(case((_IS_BEHIND, 1), else_=0)))
    .where(Fire.state == FireState.WAITING)
    .group_by(Fire.job_id, Fire.limit_key, exact(Fire.limit_key))
)
_WAITING_OF = _WAITING.where(among(Fire.job_id))


def count_waiting(session: Session, job_ids: Collection[int] | None) -> dict[JobKey, WaitingRuns]:
    """Return how many runs of these jobs wait (None: of all), of those with any."""
    if job_ids is None:
        rows: Sequence[Sequence[Any]] = bulk.read_rows(session, _WAITING)
    else:
        rows = bulk.read_among(session, _WAITING_OF, sorted(job_ids)) if job_ids else ()
    return {JobKey(row[0], row[1]): WaitingRuns(row[2], int(row[3])) for row in rows}


_FIRST = (
    select(Fire.id, Fire.job_id, Fire.due_time, Fire.limit_key, Fire.deadline_ms)
    .where(Fire.state == FireState.WAITING)
    .order_by(Fire.deadline_ms, Fire.id)
    .limit(ROUND_ROWS)
)


class LimitShares(NamedTuple):
    """Limits that several jobs and keys share."""

    #: limit id -> most fires to be found of all that share it
    most: Mapping[int, int]
    #: by job and key
    limits: Mapping[JobKey, frozenset[int]]


NOTHING_SHARED = LimitShares({}, {})


def find_first(
    session: Session, room: Mapping[JobKey, int], shares: LimitShares = NOTHING_SHARED
) -> list[tuple[DueFire, str]]:
    """Return the fires that wait first with their keys, as many of each as there is ``room`` for.

    At most ROUNDS_MAX rounds: a key that has enough is left out of the next one, so that its many waiting
    runs hide no others.
    """
    left, first = {pair: count for pair, count in room.items() if count > 0}, list[tuple[DueFire, str]]()
    more = Counter(shares.most)
    query = _FIRST
    for _ in range(ROUNDS_MAX):
        if not left:
            break
        rows = bulk.read_rows(session, query.where(_of_pairs(left)))
        for fire_id, job_id, due_ms, key, _place in rows:
            pair = JobKey(job_id, key)
            if pair in left:
                first.append((DueFire(fire_id, job_id, due_ms), key))
                left[pair] -= 1
                if not left[pair]:
                    del left[pair]
                limits = shares.limits.get(pair, frozenset())
                more.subtract(limits)
                if enough := {limit_id for limit_id in limits if more[limit_id] <= 0}:
                    left = {pair: count for pair, count in left.items() if not enough & shares.limits[pair]}
        if len(rows) < ROUND_ROWS:
            break
        last_id, last_place = rows[-1][0], rows[-1][4]
        behind = and_(Fire.deadline_ms == last_place, Fire.id > last_id)
        query = _FIRST.where(or_(Fire.deadline_ms > last_place, behind))
    return first


def _of_pairs(pairs: Collection[JobKey]) -> ColumnElement[bool]:
    """Return the condition for fires of these jobs and keys.

    The many runs of a key that is full must not hide others, so that it names none beside these; but of more
    than KEY_SETS_MAX sets of keys the last have one condition together.
    """
    keys_of = defaultdict[int, list[str]](list)
    for pair in sorted(pairs):
        keys_of[pair.job_id].append(pair.key)
    jobs_of = defaultdict[tuple[str, ...], list[int]](list)
    for job_id, keys in keys_of.items():
        jobs_of[tuple(keys)].append(job_id)
    sets = [([*keys], job_ids) for keys, job_ids in jobs_of.items()]
    rest = sets[KEY_SETS_MAX - 1 :]
    if len(rest) > 1:
        keys = sorted({key for keys, _ in rest for key in keys})
        sets[KEY_SETS_MAX - 1 :] = [(keys, [job_id for _, job_ids in rest for job_id in job_ids])]
    return or_(
        *(
            and_(among(unindexed_on_sqlite(Fire.job_id), job_ids), among(Fire.limit_key, keys))
            for keys, job_ids in sets
        )
    )


_OF_PAIRS = select(Fire.id, Fire.job_id, Fire.limit_key).where(
    Fire.state == FireState.WAITING, among(Fire.job_id)
)


def find_waiting_of(session: Session, pairs: Collection[JobKey]) -> list[int]:
    """Return the fires of these jobs and keys that wait, without a lock."""
    rows = bulk.read_among(session, _OF_PAIRS, sorted({pair.job_id for pair in pairs})) if pairs else ()
    return sorted(row[0] for row in rows if JobKey(row[1], row[2]) in pairs)


_ANY = select(Fire.id).where(Fire.state == FireState.WAITING).limit(1)


def has_waiting() -> bool:
    """Whether any run waits for a limit; opens its own transaction."""
    return bool(single_statement.read(_ANY, {}))


_OVER = (
    select(Fire.id)
    .where(Fire.state == FireState.WAITING, Fire.lease_until <= bindparam("now_ms"))
    .order_by(Fire.lease_until)
    .limit(bindparam("most"))
)


def find_over(*, now_ms: Millis, limit: int) -> list[int]:
    """Return the fires whose longest wait is over; opens its own transaction."""
    return [row[0] for row in single_statement.read(_OVER, {"now_ms": now_ms, "most": limit})]
