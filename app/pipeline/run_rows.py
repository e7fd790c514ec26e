"""Log rows of a claim: those of new runs, and what changes in those of repeated ones."""

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import ParamForm
from app.executors.addresses import storable
from app.models.base import as_stored
from app.models.log import JobLog
from app.pipeline.checkpoints import copy_checkpoints, find_repeated
from app.pipeline.claimed_run import SENT_AS_IS, RunRow, filled_columns, log_row
from app.pipeline.fill import is_filled
from app.pipeline.route import RoutedFire, is_as_sent
from app.store.executors import registry
from app.store.fires import logs
from app.store.fires.logs import UnfinishedRun


def write_logs(
    session: Session,
    routed_fires: Sequence[RoutedFire],
    run_by_id: Mapping[int, UnfinishedRun],
    now_ms: Millis,
) -> dict[int, RunRow]:
    """Insert the log rows of new runs, update those of repeated ones, and return the runs by fire id."""
    new = [routed_fire for routed_fire in routed_fires if routed_fire.fire.log_id is None]
    new.sort(key=is_filled)
    log_ids = logs.insert_logs(session, [log_row(routed_fire, now_ms) for routed_fire in new])
    unsent = UnfinishedRun(as_stored(now_ms), None)
    runs = {
        routed_fire.fire.id: RunRow(log_id, unsent, is_remembered=False)
        for routed_fire, log_id in zip(new, log_ids, strict=True)
    }
    earlier_runs = find_repeated(session, routed_fires)
    copy_checkpoints(session, {fire_id: run.log_id for fire_id, run in runs.items()}, earlier_runs)
    resent_to = {
        routed_fire.address
        for routed_fire in routed_fires
        if routed_fire.address and routed_fire.fire.attempt
    }
    boots = registry.find_boots(session, resent_to) if resent_to else {}
    moved_rows, edited_rows = list[bulk.Row](), list[bulk.Row]()
    for routed_fire in routed_fires:
        log_id, address = routed_fire.fire.log_id, routed_fire.address
        if log_id is None:
            continue
        capabilities = boots.get((address or "", routed_fire.candidates.app_name), ("", ""))[1]
        durable = "durable-dedup" in capabilities or bool(routed_fire.fire.boot_id)
        runs[routed_fire.fire.id] = RunRow(
            log_id, run_by_id[log_id], is_remembered=routed_fire.fire.attempt > 0 and durable
        )
        if address not in (None, routed_fire.fire.address):
            moved_rows.append({"id": log_id, "executor_address": storable(address)})
        edited_rows += _edit(session, routed_fire, log_id, run_by_id[log_id])
    bulk.update_many(session, JobLog, moved_rows)
    bulk.update_many(session, JobLog, edited_rows)
    return runs | {
        fire_id: runs[fire_id]._replace(source=earlier_run) for fire_id, earlier_run in earlier_runs.items()
    }


def _edit(session: Session, routed_fire: RoutedFire, log_id: int, run: UnfinishedRun) -> list[bulk.Row]:
    """Return the changes of the log row of a run that executes what its job has now, if that was edited."""
    row: bulk.Row = {
        "executor_handler": routed_fire.job.executor_handler,
        "executor_param": routed_fire.param,
        "executor_fail_retry_count": routed_fire.retries,
    }
    row |= logs.copies_of(session, row)
    is_filled_again = routed_fire.parameter is not None or run.param_form != ParamForm.TEXT
    is_unchanged = [*row.values()] == [run.handler, run.param, run.retries] and not is_filled_again
    if is_unchanged or is_as_sent(routed_fire.fire, routed_fire.job, run):
        return []
    # All rows have the same columns, as they are updated together.
    return [{"id": log_id} | row | SENT_AS_IS | filled_columns(routed_fire)]
