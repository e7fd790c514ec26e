"""Checkpoints: the claim copies the checkpoint of a failed run to the run that repeats it.

The log row of the new run gets a copy at once, so that it is not lost if the run never reaches an executor.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.models.log import JobLog
from app.pipeline.route import RoutedFire
from app.store.executors import registry
from app.store.fires import logs
from app.store.fires import queue as fires
from executor_client.wire.run_reports import RUN_STATE


class RepeatedRun(NamedTuple):
    """Earlier run that a claimed run repeats."""

    log_id: int
    #: JSON text; empty without a checkpoint
    checkpoint: str
    #: addresses of executors that accept checkpoints
    checkpoint_addresses: frozenset[str]


def find_repeated(session: Session, routed_fires: Sequence[RoutedFire]) -> dict[int, RepeatedRun]:
    """Return fire id -> the run that it repeats, for retries and for runs that a user has repeated."""
    sources = {
        routed_fire.fire.id: source
        for routed_fire in routed_fires
        if (source := repeated_id(routed_fire)) is not None
    }
    if not sources:
        return {}
    repeating = [routed_fire for routed_fire in routed_fires if routed_fire.fire.id in sources]
    checkpoints = logs.find_checkpoints(session, set(sources.values()))
    addresses = {address for routed_fire in repeating for address in _addresses(routed_fire)}
    announcing = registry.find_announcing(session, addresses, RUN_STATE)
    return {
        routed_fire.fire.id: RepeatedRun(
            sources[routed_fire.fire.id],
            checkpoints.get(sources[routed_fire.fire.id], ""),
            frozenset(
                address
                for address in _addresses(routed_fire)
                if (address, routed_fire.candidates.app_name) in announcing
            ),
        )
        for routed_fire in repeating
    }


def copy_checkpoints(
    session: Session, log_ids: Mapping[int, int], earlier_runs: Mapping[int, RepeatedRun]
) -> None:
    """Copy the checkpoints of earlier runs, by fire id, into the log rows of new ones.

    ``log_ids``: fire id -> log id.
    """
    rows = [
        {"id": log_ids[fire_id], "checkpoint": run.checkpoint}
        for fire_id, run in earlier_runs.items()
        if fire_id in log_ids and run.checkpoint
    ]
    bulk.update_many(session, JobLog, rows)


def repeated_id(routed_fire: RoutedFire) -> int | None:
    """Return the log id of the run that a retry, or a run that a user has repeated, repeats; None: none."""
    if routed_fire.fire.repeats_log_id is not None:
        return routed_fire.fire.repeats_log_id
    return (
        fires.source_of(routed_fire.fire.fire_key) if routed_fire.fire.fire_key.startswith("retry:") else None
    )


def _addresses(routed_fire: RoutedFire) -> tuple[str, ...]:
    return routed_fire.addresses if routed_fire.address is None else (routed_fire.address,)
