"""What the predecessors of a round give to the run that follows: their successful runs."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.rounds.kinds import ArrivalOutcome
from app.models.code import CodeObject
from app.models.round import Arrival

#: `kind` of jobs in the table of objects managed as code
JOB = "job"


class GivingRun(NamedTuple):
    """A successful run or shard of a predecessor; ``log_id`` None: that shard has not succeeded."""

    shard: int
    total: int
    log_id: int | None


_SUCCEEDED = select(
    Arrival.round_id,
    Arrival.predecessor_id,
    Arrival.shard,
    Arrival.total,
    Arrival.log_id,
    Arrival.outcome,
).where(among(Arrival.round_id))


def find_giving(session: Session, round_ids: Collection[int]) -> dict[int, dict[int, list[GivingRun]]]:
    """Return round id -> predecessor id -> its runs or shards."""
    by_round: dict[int, dict[int, list[GivingRun]]] = {round_id: defaultdict(list) for round_id in round_ids}
    for row in bulk.read_among(session, _SUCCEEDED, sorted(round_ids)) if round_ids else ():
        round_id, predecessor_id, shard, total, log_id, outcome = row
        succeeded_id = log_id if outcome == ArrivalOutcome.SUCCEEDED else None
        by_round[round_id][predecessor_id].append(GivingRun(shard, total, succeeded_id))
    return by_round


_KEYS = select(CodeObject.object_id, CodeObject.managed_key).where(
    among(CodeObject.object_id), CodeObject.kind == JOB
)


def find_keys(session: Session, job_ids: Iterable[int]) -> dict[int, str]:
    """Return job id -> its key as code, without its group; of those that have one."""
    ids = sorted(job_ids)
    rows = bulk.read_among(session, _KEYS, ids) if ids else ()
    return {row[0]: row[1].rpartition("/")[2] for row in rows}
