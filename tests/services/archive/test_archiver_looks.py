"""Archiver: how often it looks, what a full day of a job and a store that takes nothing change."""

import itertools
import logging
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest

from app.blobs.blob_store import StoreFull
from app.blobs.folder import Folder
from app.clock import SECOND_MS
from app.database.engine import transact
from app.domain.archive.pulls import DISPATCH_MS, rest_ms
from app.executors.gateway import Gateway
from app.models.archive import LogArchive
from app.services.archive import archiver
from app.services.archive.archiver import IDLE_MS, LOOK_MS, OFF_MS, Archiver
from app.services.archive.store_log import StoreLog
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig, use_mode
from app.store.archive import modes, room, rows
from app.store.archive.room import JobOfDay, Room
from tests.support.eventually import eventually
from tests.support.factories import T0, make_job, make_run, only_row, save
from tests.support.fake_executor import FakeExecutor
from tests.support.runs import log_answer

pytestmark = pytest.mark.databases("sqlite")
FOLDER = "2026/07/01/7/1"


@pytest.fixture
def looks(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archiver:
    monkeypatch.setattr(archiver, "store_log", StoreLog())
    caller = Caller(Gateway((ip_network("127.0.0.0/8"),)), ("token",))
    settings = Config(time_zone="UTC", archive=ArchiveConfig(job_day_mb=1))
    clock = partial(int, T0 + 60 * SECOND_MS)
    store = Folder(tmp_path)
    return Archiver(settings, node="n", caller=caller, store=store, clock=clock, rest=lambda at_ms: 0)


@pytest.mark.parametrize(("mode", "wait_ms"), [("off", OFF_MS), ("failed", IDLE_MS)])
def test_it_looks_seldom_while_nothing_is_in_progress(looks: Archiver, mode: str, wait_ms: int) -> None:
    use_mode(mode)
    try:
        assert looks.tick(T0) == wait_ms
        save(LogArchive(log_id=1, job_id=1, job_group=1, folder=FOLDER, state="open", next_ms=T0 + 10_000))
        assert looks.tick(T0) == LOOK_MS
    finally:
        use_mode("")
        modes.forget()
        looks.close()


def test_nothing_begins_while_a_second_does(looks: Archiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_rest", rest_ms)
    with FakeExecutor() as executor:
        archive_a_run(executor)
        assert looks.tick(T0 + 50) == DISPATCH_MS - 50
        assert only_row(LogArchive).lease_until == 0
        looks.tick(T0 + DISPATCH_MS)
        eventually(lambda: only_row(LogArchive).pulled_ms, 10)
    looks.close()


def test_a_look_that_took_long_is_repeated_late_or_after_a_call(
    looks: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many logs of busy instances a look passes over all of them."""
    seconds = itertools.count(100, 0.25)
    monkeypatch.setattr(looks, "_monotonic", lambda: next(seconds))
    taken = list[object]()
    monkeypatch.setattr(rows, "find_due", lambda **_: taken.append(1) or [])
    for _ in range(9):
        looks.tick(T0)
    assert len(taken) == 1
    looks._forget("http://10.0.0.1:9999/")
    looks.tick(T0)
    assert len(taken) == 2
    for _ in range(9):
        looks.tick(T0)
    assert len(taken) == 3
    looks.close()


def archive_a_run(executor: FakeExecutor, **columns: object) -> LogArchive:
    job = make_job(addresses=executor.address)
    run = make_run(job, log={"executor_address": executor.address})
    values = {"log_id": run.id, "job_id": job.id, "job_group": 1, "state": "open", "next_ms": T0}
    return save(LogArchive(**{**values, "folder": FOLDER, **columns}))


def test_a_job_whose_day_is_full_is_not_asked(looks: Archiver) -> None:
    with FakeExecutor() as executor:
        row = archive_a_run(executor)
        transact(partial(room.add, rooms={JobOfDay(row.job_id, "2026/07/01"): Room(2**20, 9)}))
        looks.tick(T0)
        eventually(lambda: only_row(LogArchive).next_ms > T0, 10)
        assert (executor.requests, only_row(LogArchive).state) == ([], "open")
    looks.close()


@pytest.mark.parametrize(
    ("error", "reason"), [(StoreFull("no room"), "disk_full"), (OSError("away"), "store_gone")]
)
def test_a_store_that_takes_nothing_is_one_line(
    looks: Archiver,
    error: Exception,
    reason: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_store: Folder, _name: str, _content: bytes) -> None:
        raise error

    monkeypatch.setattr(Folder, "put", refuse)
    with FakeExecutor() as executor, caplog.at_level(logging.ERROR):
        executor.respond("log", log_answer(1, "a line"))
        first, second = archive_a_run(executor), archive_a_run(executor, folder=f"{FOLDER}2")
        looks.tick(T0)
        for row in (first, second):
            eventually(lambda row=row: only_row(LogArchive, id=row.id).reason == reason, 10)
        assert only_row(LogArchive, id=first.id).state == "open"
        eventually(lambda: "the store refuses it" in caplog.text, 10)
    looks.close()
    assert caplog.text.count("the store refuses it") == 1
