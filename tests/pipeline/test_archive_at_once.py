"""Logs that are fetched at once when an instance leaves, is drained or falls silent."""

from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from app.database.engine import transact
from app.domain.access.permissions import system_actor
from app.domain.archive.kinds import ArchiveState
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline import registration
from app.services.executors import drains
from app.store.executors.registry import DEAD_AFTER_MS
from executor_client.wire.protocol import RegistryRequest
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_job, make_run, save
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
        new.id: ("open", T0, 1),
        known.id: ("open", T0, 0),
        elsewhere.id: ("open", T0 + 30_000, 0),
    }


def add_archive(run: JobLog, *, next_ms: int) -> None:
    values = {"log_id": run.id, "job_id": run.job_id, "job_group": run.job_group, "folder": "f"}
    save(LogArchive(**values, state=ArchiveState.OPEN.value, next_ms=next_ms))
