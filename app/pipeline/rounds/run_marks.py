"""Marks of runs in chains and rounds: columns of their log rows, and the first run of each round."""

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.domain.enums import TriggerType
from app.domain.rounds.round_keys import FOR_NO_TIME
from app.domain.runs.logical_times import second_of
from app.models.log import JobLog
from app.pipeline.route import RoutedFire
from app.store.rounds import rounds


def mark_runs(
    session: Session, routed_fires: Sequence[RoutedFire], log_id_by_fire: Mapping[int, int]
) -> None:
    """Write to which chain and round new runs belong; writes nothing for those in none."""
    new = [
        (routed_fire.fire, chain)
        for routed_fire in routed_fires
        if routed_fire.fire.log_id is None
        and ((chain := _chain(routed_fire)) is not None or routed_fire.fire.round_id is not None)
    ]
    if not new:
        return
    bulk.update_many(
        session,
        JobLog,
        [{"id": log_id_by_fire[fire.id], "chain": chain, "round_id": fire.round_id} for fire, chain in new],
    )
    first: dict[int, int] = {}
    for fire, _ in new:
        if fire.round_id is not None:
            first.setdefault(fire.round_id, log_id_by_fire[fire.id])
    rounds.write_first_runs(session, first)


def _chain(routed_fire: RoutedFire) -> int | None:
    """Return the `chain` of a run; one by hand that was asked for no logical time belongs to none."""
    fire = routed_fire.fire
    if fire.chain is not None or fire.trigger_type != TriggerType.MANUAL or not routed_fire.job.has_followers:
        return fire.chain
    is_own_time = fire.repeats_log_id is None and fire.logical_time == second_of(fire.due_time)
    return FOR_NO_TIME if is_own_time else None
