"""Checkpoints: what a failed run left behind goes to the run that repeats it. Part of the claim.

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
    """The run that a claimed one repeats."""

    log_id: int
    #: JSON text; empty: it left none
    checkpoint: str
    #: addresses of executors that take checkpoints
    takers: frozenset[str]


def find_repeated(session: Session, routed: Sequence[RoutedFire]) -> dict[int, RepeatedRun]:
    """Return fire id -> the run that it repeats, for retries and for runs that a user has repeated."""
    sources = {each.fire.id: source for each in routed if (source := _source_of(each)) is not None}
    if not sources:
        return {}
    repeating = [each for each in routed if each.fire.id in sources]
    found = logs.find_checkpoints(session, set(sources.values()))
    addresses = {address for each in repeating for address in _addresses(each)}
    announcing = registry.find_announcing(session, addresses, RUN_STATE)
    return {
        each.fire.id: RepeatedRun(
            sources[each.fire.id],
            found.get(sources[each.fire.id], ""),
            frozenset(
                address for address in _addresses(each) if (address, each.candidates.app_name) in announcing
            ),
        )
        for each in repeating
    }


def copy_checkpoints(
    session: Session, log_ids: Mapping[int, int], repeated: Mapping[int, RepeatedRun]
) -> None:
    """Copy checkpoints into the log rows of new runs; ``log_ids``: fire id -> log id."""
    rows = [
        {"id": log_ids[fire_id], "checkpoint": each.checkpoint}
        for fire_id, each in repeated.items()
        if fire_id in log_ids and each.checkpoint
    ]
    bulk.update_many(session, JobLog, rows)


def _source_of(routed: RoutedFire) -> int | None:
    if routed.fire.repeats_log_id is not None:
        return routed.fire.repeats_log_id
    return fires.source_of(routed.fire.fire_key) if routed.fire.fire_key.startswith("retry:") else None


def _addresses(routed: RoutedFire) -> tuple[str, ...]:
    return routed.addresses if routed.address is None else (routed.address,)
