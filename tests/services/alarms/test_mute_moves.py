"""Jobs moved or deleted and groups deleted while muted: no held alarm is lost."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy.orm import Session

from app.database.engine import session_scope
from app.database.rows import deletion
from app.domain.alarms.muting import MuteSpan
from app.domain.jobs.fields import DEFAULTS
from app.models.alarm import Alarm
from app.models.base import Base
from app.models.job import Job
from app.models.mute import Mute
from app.services.executors import groups
from app.services.jobs import jobs
from app.settings.config import Config
from app.store.alarms import alarms
from app.store.alarms import mutes as mute_store
from app.store.jobs import removal
from tests.support.alarms import (
    HOUR,
    fail_run,
    job_with_channels,
    messages,
    move_as_java_does,
    mute,
    notifying,
    tick_until,
    url_of,
)
from tests.support.console import ACTOR
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_job, only_row, save
from tests.support.fake_executor import FakeExecutor
from tests.support.plan import every_database

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), every_database]


def move(job: Job, group_id: int) -> None:
    with session_scope() as session:
        jobs.move_job(session, job.id, group_id, actor=ACTOR, clock=lambda: T0 + 1_000)


def save_into(job: Job, group_id: int) -> None:
    with session_scope() as session:
        draft = replace(
            DEFAULTS, job_group=group_id, job_desc=job.job_desc, author="ann", executor_handler="report"
        )
        jobs.update_job(session, job.id, draft, actor=ACTOR, clock=lambda: T0 + 1_000)


@pytest.mark.parametrize("leave", [move, save_into])
def test_held_alarms_of_a_job_that_leaves_a_muted_group_go_to_its_new_group(
    database: str, config: Config, hook: FakeExecutor, leave: Callable[[Job, int], None]
) -> None:
    with FakeExecutor() as former, notifying(config) as notifier:
        job = job_with_channels(former, job_desc="Nightly report")
        stays = make_job(job_group=job.job_group)
        mute(group_id=job.job_group, reason="upgrade")
        run = fail_run(job)
        fail_run(stays)
        tick_until(notifier, T0, "MUTED", "MUTED")
        leave(job, make_group(app_name="next", alarm_urls=url_of(hook)).id)
        tick_until(notifier, T0 + 1_000, "SENT", "MUTED")
        assert [(row.job_id, row.group_id) for row in all_rows(Mute)] == [(0, job.job_group)]
        assert former.requests == []
    (message,) = messages(hook)
    assert message["title"] == f"[Duetime] Nightly report (job {job.id}): no longer muted, still failing"
    assert f"Held back: 1 alarm, runs {run.id} to {run.id}" in message["message"]


def test_a_job_that_leaves_a_muted_group_stays_muted_by_other_mutes(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job, other = job_with_channels(hook), job_with_channels(hook)
    for muted_job in (job, other):
        mute(group_id=muted_job.job_group, span=MuteSpan.DAY)
        fail_run(muted_job)
    mute(other)
    arrival = make_group(app_name="next", alarm_urls=url_of(hook))
    mute(group_id=arrival.id)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "MUTED", "MUTED")
        move(job, arrival.id)
        move(other, make_group(app_name="last", alarm_urls=url_of(hook)).id)
        eventually(lambda: notifier.tick(T0 + 1_000) and len(all_rows(Mute)) == 4)
        assert hook.requests == []
        tick_until(notifier, T0 + HOUR, "SENT", "SENT")
    assert len(hook.requests) == 2


def test_held_alarms_of_a_deleted_group_are_sent(database: str, config: Config, hook: FakeExecutor) -> None:
    job = job_with_channels(hook)
    former_group = job.job_group
    mute(group_id=former_group, span=MuteSpan.UNTIL_UNDONE)
    fail_run(job)
    with notifying(config, alarm_urls=(url_of(hook),)) as notifier:
        tick_until(notifier, T0, "MUTED")
        move_as_java_does(job, make_group(app_name="elsewhere").id)
        with session_scope() as session:
            groups.remove_group(session, former_group, actor=ACTOR, now_ms=T0 + 1_000)
        tick_until(notifier, T0 + 1_000, "SENT")
        assert all_rows(Mute) == []
    assert len(hook.requests) == 1


def test_deleting_a_job_deletes_its_mute(database: str) -> None:
    job, other = make_job(), make_job()
    mute(job)
    mute(other)
    mute(group_id=job.job_group)
    with session_scope() as session:
        removal.delete_jobs(session, [job.id])
    assert {(row.job_id, row.group_id) for row in all_rows(Mute)} == {(other.id, 0), (0, job.job_group)}


def test_deleting_a_job_while_its_mute_ends_does_not_deadlock(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.startswith("sqlite"):
        pytest.skip("SQLite has one writer at a time")
    job = make_job()
    mute(job)
    held_by = only_row(Mute)
    save(Alarm(log_id=1, job_id=job.id, reason="failed", state="MUTED", created_ms=T0, mute_id=held_by.id))
    deletes_the_mute = threading.Event()

    def noted(session: Session, model: type[Base], column: str, values: Sequence[int]) -> int:
        if model is Mute:
            deletes_the_mute.set()
        return by_values(session, model, column, values)

    by_values = deletion.by_values
    monkeypatch.setattr(deletion, "by_values", noted)
    with ThreadPoolExecutor(1) as other:
        with session_scope() as session:
            assert mute_store.lock_taken(session, held_by) is not None
            deleted = other.submit(transact_once, lambda deleting: removal.delete_jobs(deleting, [job.id]))
            assert deletes_the_mute.wait(10)
            alarms.release(session, held_by.id, log_ids=[1], outcome="{}", lease_until=0)
            mute_store.delete_mute(session, held_by.id)
        deleted.result(10)
    assert all_rows(Mute) == all_rows(Alarm) == []


def transact_once(work: Callable[[Session], None]) -> None:
    """Call the function in one transaction: a lost deadlock is an error."""
    with session_scope() as session:
        work(session)
