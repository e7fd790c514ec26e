"""Logs that are fetched at once: of an instance that goes, and of a run whose result arrives late."""

from collections.abc import Callable

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from app.database.engine import session_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.archive.kinds import ArchiveState, Missing
from app.domain.archive.pulls import AT_ONCE
from app.domain.enums import TriggerCode
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline import registration
from app.pipeline.complete import Result, Source, complete
from app.services.executors import drains
from app.store.executors.registry import DEAD_AFTER_MS
from executor_client.wire.protocol import RegistryRequest
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_job, make_run, only_row, save
from tests.support.plan import every_database

pytestmark = [every_database, pytest.mark.usefixtures("database")]

GROUP_APP = "demo"


def leave(session: Session, group_id: int) -> None:
    registration.deregister(session, RegistryRequest("EXECUTOR", GROUP_APP, FIRST), now_ms=T0)


def fall_silent(session: Session, group_id: int) -> None:
    registration.tick_registry(session, now_ms=T0)


def drain(session: Session, group_id: int) -> None:
    drains.drain(session, group_id, FIRST, actor=system_actor("test"), now_ms=T0)


@pytest.mark.parametrize("event", [leave, fall_silent, drain])
def test_the_logs_of_an_instance_that_goes_are_fetched_at_once(
    event: Callable[[Session, int], None],
) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}", log_archive="failed")
    for address, age_ms in ((FIRST, DEAD_AFTER_MS + 60_000), (SECOND, 0)):
        row = {"registry_group": "EXECUTOR", "registry_key": GROUP_APP, "registry_value": address}
        save(Registration(**row, update_time=T0 - age_ms))
    new, known, elsewhere = (
        make_run(job, log={"executor_address": address}) for address in (FIRST, FIRST, SECOND)
    )
    for run in (known, elsewhere):
        add_archive(run, next_ms=T0 + 30_000)
    transact(lambda session: event(session, job.job_group))
    logs = {row.log_id: (row.state, row.next_ms, row.is_provisional) for row in all_rows(LogArchive)}
    assert logs == {
        new.id: ("open", AT_ONCE, 1),
        known.id: ("open", AT_ONCE, 0),
        elsewhere.id: ("open", T0 + 30_000, 0),
    }


def add_archive(run: JobLog, *, next_ms: int) -> None:
    values = {"log_id": run.id, "job_id": run.job_id, "job_group": run.job_group, "folder": "f"}
    save(LogArchive(**values, state=ArchiveState.OPEN.value, next_ms=next_ms))


def test_a_late_result_of_an_unresolved_run_takes_its_log_up_again() -> None:
    run = make_run(make_job(log_archive="failed"))
    unresolved = Result(run.id, Source.RESOLVER, trigger_code=TriggerCode.UNRESOLVED)
    transact(lambda session: complete(session, [unresolved], now_ms=T0))
    row = only_row(LogArchive)
    assert (row.state, row.ended_ms) == ("ending", T0)
    with session_scope() as session:
        gone = {"state": "partial", "reason": Missing.INSTANCE_GONE.value, "last_line": 7, "next_ms": 0}
        session.execute(update(LogArchive).values(gone))
    late = Result(run.id, Source.CALLBACK, 500, "the end")
    transact(lambda session: complete(session, [late], now_ms=T0 + 60_000))
    row = only_row(LogArchive)
    assert (row.state, row.next_ms, row.ended_ms, row.last_line) == ("ending", T0 + 60_000, T0 + 60_000, 7)
