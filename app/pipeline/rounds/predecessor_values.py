"""Values of predecessors: ``${parents.KEY.result}`` and ``${shards.results}`` of runs that follow a round."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.domain.parameters.values import GivenRun, Shards
from app.pipeline.given_runs import given_run
from app.pipeline.route import RoutedFire
from app.store.fires import earlier_runs
from app.store.rounds import predecessor_runs
from app.store.rounds.predecessor_runs import GivingRun


class RoundValues(NamedTuple):
    """What the predecessors of a run give to it."""

    #: key or id of a predecessor -> its run, or its shards
    parents: Mapping[str, GivenRun | Shards]
    #: of the only broadcast among them; None: there is not exactly one
    shards: Shards | None


NONE_GIVEN = RoundValues({}, None)


def find_given(session: Session, routed_fires: Sequence[RoutedFire]) -> dict[int, RoundValues]:
    """Return fire id -> what its predecessors give, of fires that follow a round."""
    round_ids = {routed_fire.fire.round_id for routed_fire in routed_fires if routed_fire.fire.round_id}
    if not round_ids:
        return {}
    giving = predecessor_runs.find_giving(session, round_ids)
    log_ids = {
        run.log_id for by_job in giving.values() for runs in by_job.values() for run in runs if run.log_id
    }
    rows = earlier_runs.find_given(session, log_ids)
    keys = predecessor_runs.find_keys(session, {job_id for by_job in giving.values() for job_id in by_job})
    runs = {log_id: given_run(row) for log_id, row in rows.items()}
    values = {
        round_id: _values(by_job, {job_id: keys[job_id] for job_id in by_job if job_id in keys}, runs)
        for round_id, by_job in giving.items()
    }
    return {
        routed_fire.fire.id: values[routed_fire.fire.round_id]
        for routed_fire in routed_fires
        if routed_fire.fire.round_id
    }


def _values(
    by_job: Mapping[int, Collection[GivingRun]], keys: Mapping[int, str], runs: Mapping[int, GivenRun]
) -> RoundValues:
    parents: dict[str, GivenRun | Shards] = {}
    broadcasts = list[Shards]()
    for job_id, giving in by_job.items():
        total = max(run.total for run in giving)
        by_shard = {run.shard: runs.get(run.log_id or 0) for run in giving}
        if total > 1:
            shards = [by_shard.get(index) for index in range(total)]
            broadcasts.append(shards)
            parents[str(job_id)] = shards
        elif (run := by_shard.get(0)) is not None:
            parents[str(job_id)] = run
    # A key that two have, or that is the id of another one, names none of them.
    count = Counter([*keys.values(), *map(str, by_job)])
    by_key = {
        key: parents[str(job_id)]
        for job_id, key in keys.items()
        if count[key] == 1 and str(job_id) in parents
    }
    return RoundValues({**parents, **by_key}, broadcasts[0] if len(broadcasts) == 1 else None)
