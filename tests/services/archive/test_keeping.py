"""Archived logs that are not kept any longer: by days, by size, by job and day; files of no row."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.blobs.folder import PARTIAL, Folder
from app.clock import DAY_MS, HOUR_MS
from app.database.engine import read_scope, transact
from app.domain.archive.chunks import dump_chunks
from app.domain.archive.packing import pack_lines
from app.models.archive import ArchiveDay, LogArchive
from app.models.job import Job
from app.services.archive import keeping
from app.services.archive.keeping import Keeper
from app.services.archive.store_log import StoreLog
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig
from app.store.archive import room
from app.store.archive.room import JobOfDay, Room
from app.store.fires import log_ids
from app.store.runs import clearing
from tests.support.factories import T0, all_rows, make_job, make_log, only_row, save
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

NOW = T0 + 100 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "archive")


def archive(store: Folder, job: Job, log_id: int, **columns: Any) -> str:
    """Store the log of a run with one chunk; return the name of its file."""
    chunk, stored = pack_lines(1, [f"line of {log_id}"] * 10)
    folder = f"2026/07/01/{job.id}/{log_id}"
    store.put(f"{folder}/{chunk.name}", stored)
    values = {"log_id": log_id, "job_id": job.id, "job_group": job.job_group, "folder": folder}
    values |= {"state": "complete", "ended_ms": T0, "size": chunk.size, "stored": len(stored)}
    save(LogArchive(**values | {"chunks": dump_chunks([chunk])} | columns))
    key = JobOfDay(job.id, "2026/07/01")
    transact(partial(room.add, rooms={key: Room(chunk.size, len(stored))}))
    return f"{folder}/{chunk.name}"


def names(store: Folder) -> set[str]:
    return {blob.name for blob in store.list("")}


def states() -> dict[int, str]:
    return {row.log_id: row.state for row in all_rows(LogArchive)}


def keeper(store: Folder, **settings: Any) -> Keeper:
    return Keeper(Config(archive=ArchiveConfig(**settings)), store)


@every_database
def test_logs_are_purged_after_the_days_of_their_job_or_group_or_of_the_installation(store: Folder) -> None:
    general, longer, shorter = make_job(), make_job(log_days=200), make_job(log_days=5)
    open_log = archive(store, general, 1, state="open", ended_ms=0)
    archive(store, general, 2, ended_ms=NOW - 31 * DAY_MS)
    young = archive(store, general, 3, ended_ms=NOW - 29 * DAY_MS)
    kept = archive(store, longer, 4, state="partial", ended_ms=NOW - 150 * DAY_MS)
    archive(store, shorter, 5, state="partial", ended_ms=NOW - 6 * DAY_MS)
    one = keeper(store)
    assert one.tick(NOW) == keeping.PERIOD_MS
    assert states() == {1: "open", 2: "purged", 3: "complete", 4: "partial", 5: "purged"}
    assert {row.reason for row in all_rows(LogArchive) if row.state == "purged"} == {"expired"}
    assert names(store) == {open_log, young, kept}
    row = next(row for row in all_rows(LogArchive) if row.log_id == 2)
    assert (row.chunks, row.size, row.stored, row.epoch, row.reason) == (None, 0, 0, 1, "expired")
    one.tick(NOW + 2 * DAY_MS)
    assert states()[3] == "purged"


def test_other_days_of_a_job_hold_for_logs_that_were_looked_at_before(store: Folder) -> None:
    job = make_job(log_days=90)
    archive(store, job, 1, ended_ms=NOW - 50 * DAY_MS)
    one = keeper(store)
    one.tick(NOW)
    assert states() == {1: "complete"}
    transact(lambda session: session.execute(update(Job).values(log_days=40)))
    one.tick(NOW + 1)
    assert states() == {1: "purged"}


def test_without_days_logs_stay_as_long_as_their_runs(store: Folder) -> None:
    archive(store, make_job(), 1)
    keeper(store, days=0).tick(NOW)
    assert states() == {1: "complete"}


@every_database
def test_beyond_its_size_the_archive_loses_the_oldest_logs(
    store: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    for log_id in range(1, 21):
        archive(store, job, log_id, ended_ms=T0 + log_id, state="partial" if log_id % 2 else "complete")
    stored = only_row(ArchiveDay).stored // 20
    monkeypatch.setattr(keeping, "GIB", 10 * stored + 5)
    keeper(store, days=0, total_gb=1).tick(NOW)
    assert {row.log_id for row in all_rows(LogArchive) if row.reason == "purged"} == set(range(1, 12))
    assert len(names(store)) == 9
    with read_scope() as session:
        assert room.total_stored(session) <= 10 * stored


def test_what_was_deleted_with_its_runs_is_counted_before_more_is_purged(
    store: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    archive(store, job, 1)
    transact(partial(room.add, rooms={JobOfDay(job.id, "2026/06/30"): Room(5_000, 5_000)}))
    monkeypatch.setattr(keeping, "GIB", 4_000)
    keeper(store, days=0, total_gb=1).tick(NOW)
    assert states() == {1: "complete"}
    assert only_row(ArchiveDay).day == "2026/07/01"


def test_files_that_no_row_names_go_after_an_hour(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "FILES_AT_ONCE", 2)
    job = make_job()
    kept = archive(store, job, 1)
    chunk, stored = pack_lines(11, ["a line of a crash"])
    orphans = {
        f"2026/07/01/{job.id}/1/{chunk.name}",
        f"2026/07/01/{job.id}/2/{chunk.name}",
        f"2026/07/01/{job.id}/2/{PARTIAL}0f",
    }
    other = "index/2026/07/01"
    for name in (*orphans, other):
        store.put(name, stored)
        os.utime(store.path / name, (NOW / 1000, NOW / 1000))
    one = keeper(store, days=0)
    while one.tick(NOW + HOUR_MS // 2) == keeping.WAIT_MS:
        pass
    assert names(store) == {kept, other, *orphans}
    at_ms = NOW + HOUR_MS // 2 + keeping.SWEEP_MS
    while one.tick(at_ms) == keeping.WAIT_MS:
        pass
    assert names(store) == {kept, other}


def test_files_of_another_database_are_left_alone(
    store: Folder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two installations with the same bucket would delete each other's files."""
    theirs = "2026/07/01/1/2/1-3-0123456789abcdef.gz"
    store.put(theirs, b"x")
    transact(log_ids.make_identity)
    keeper(store).tick(T0)
    with read_scope() as session:
        assert keeping.owner_of(store) == log_ids.find_identity(session)
    os.utime(store.path / theirs, (0, 0))
    monkeypatch.setattr(log_ids, "find_identity", lambda session: "another")
    keeper(store).tick(NOW)
    assert (store.get(theirs), "that of another database" in caplog.text) == (b"x", True)
    monkeypatch.undo()
    keeper(store).tick(NOW)
    assert names(store) == {keeping.OWNER}


def test_a_store_that_deletes_nothing_is_one_line(
    store: Folder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = archive(store, make_job(), 1, state="deleted")

    def refuse(_store: Folder, names: list[str]) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(keeping, "store_log", StoreLog())
    one = keeper(store)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "delete", refuse)
        assert [one.tick(NOW) for _ in range(3)] == [keeping.FAILED_MS] * 3
    assert caplog.text.count("archived logs not deleted") == 1
    one.tick(NOW)
    assert (states(), name in names(store)) == ({}, False)


def test_a_file_whose_run_has_no_possible_id_is_none_of_the_archive(store: Folder) -> None:
    """The database would refuse the look-up, and no other file would be deleted any more."""
    orphan = "2026/07/01/1/2/1-3-0123456789abcdef.gz"
    foreign = f"2026/07/01/1/{10**30}/1-3-0123456789abcdef.gz"
    for name in (orphan, foreign):
        store.put(name, b"x")
        os.utime(store.path / name, (0, 0))
    keeper(store).tick(NOW)
    assert names(store) == {foreign}


def test_the_log_of_a_deleted_run_goes_with_its_files(store: Folder) -> None:
    job = make_job()
    gone, kept = make_log(job, handle_code=200), make_log(job, handle_code=200)
    archive(store, job, gone.id)
    file = archive(store, job, kept.id)
    transact(lambda session: clearing.delete_runs(session, [gone.id]))
    keeper(store).tick(NOW - 90 * DAY_MS)
    assert (states(), names(store)) == ({kept.id: "complete"}, {file})
    assert only_row(ArchiveDay).size == only_row(LogArchive).size
