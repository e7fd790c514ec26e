"""Tails of logs that executors send while they stop."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.blobs.folder import Folder
from app.database.engine import session_scope, transact
from app.domain.archive.chunks import parse_chunks
from app.domain.archive.packing import unpack_lines
from app.domain.executors.token_scope import TokenScope
from app.errors import Conflict, NotFound, PermissionDenied
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.services.archive import small_chunks, tails
from app.services.archive.tails import TailStore
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig
from executor_client.wire.log_tails import LogTail
from tests.support.factories import T0, make_job, make_run, only_row, save

pytestmark = pytest.mark.usefixtures("database")

GLOBAL = TokenScope(is_global=True)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "archive")


@pytest.fixture
def store(folder: Folder) -> TailStore:
    archive = ArchiveConfig(url=folder.path.as_uri(), redact="token=[a-z]+")
    return TailStore(Config(archive=archive), clock=lambda: T0)


@pytest.fixture
def run() -> JobLog:
    run = make_run(make_job())
    folder = f"2024/05/01/{run.job_id}/{run.id}"
    save(LogArchive(log_id=run.id, job_id=run.job_id, job_group=run.job_group, folder=folder, state="open"))
    return run


def tail_of(run: JobLog, first: int, *lines: str) -> LogTail:
    return LogTail(run.id, run.trigger_time or 0, first, lines)


def stored(folder: Folder) -> list[str]:
    row = only_row(LogArchive)
    chunks = parse_chunks(row.chunks or "")
    return [
        line for chunk in chunks for line in unpack_lines(chunk, folder.get(f"{row.folder}/{chunk.name}"))
    ]


def test_only_lines_behind_the_last_one_are_stored(store: TailStore, run: JobLog, folder: Folder) -> None:
    assert store.store(tail_of(run, 1), GLOBAL) == 1
    assert store.store(tail_of(run, 1, "one", "two"), GLOBAL) == 3
    assert store.store(tail_of(run, 2, "two", "my token=abc"), GLOBAL) == 4
    assert store.store(tail_of(run, 1, "one"), GLOBAL) == 4
    assert store.store(tail_of(run, 9, "nine"), GLOBAL) == 4, "lines between are wanted first"
    assert stored(folder) == ["one", "two", "my ***"]
    row = only_row(LogArchive)
    assert (row.last_line, row.state, row.pulled_ms) == (3, "open", T0)


def test_a_tail_is_of_a_run_that_was_sent_to_the_group_of_the_token(store: TailStore, run: JobLog) -> None:
    tail = tail_of(run, 1, "one")
    with pytest.raises(PermissionDenied):
        store.store(tail, TokenScope(is_global=False))
    for unknown in (replace(tail, log_id=run.id + 1), replace(tail, log_date_time=T0 + 1_000)):
        with pytest.raises(NotFound):
            store.store(unknown, GLOBAL)


def test_what_is_not_archived_is_not_wanted(store: TailStore) -> None:
    run = make_run(make_job())
    assert store.store(tail_of(run, 1, "one"), GLOBAL) == 0


def test_a_tail_and_a_pull_do_not_store_the_same_lines(
    store: TailStore, run: JobLog, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = tails.rows.find_of_logs

    def find_before_a_pull(*args: object) -> object:
        logs = find(*args)  # type: ignore[arg-type]
        transact(lambda session: session.execute(update(LogArchive).values(epoch=LogArchive.epoch + 1)))
        return logs

    monkeypatch.setattr(tails.rows, "find_of_logs", find_before_a_pull)
    with pytest.raises(Conflict):
        store.store(tail_of(run, 1, "one"), GLOBAL)
    assert stored(folder) == []


def test_lines_that_come_end_the_reason_why_they_were_missing(store: TailStore, run: JobLog) -> None:
    with session_scope() as session:
        session.execute(update(LogArchive).values(state="ending", ended_ms=T0, reason="instance_gone"))
    store.store(tail_of(run, 1, "one"), GLOBAL)
    row = only_row(LogArchive)
    assert (row.state, row.reason) == ("ending", "")


def test_a_log_that_grows_line_by_line_has_few_chunks(store: TailStore, run: JobLog, folder: Folder) -> None:
    """It would have a file for each second of a run that lasts for days."""
    lines = [f"line {number}" for number in range(1, 101)]
    for number, line in enumerate(lines, 1):
        assert store.store(tail_of(run, number, line), GLOBAL) == number + 1
    assert stored(folder) == lines
    assert len(parse_chunks(only_row(LogArchive).chunks or "")) <= small_chunks.COUNT


def test_a_chunk_that_cannot_be_read_stays_as_it_is(store: TailStore, run: JobLog, folder: Folder) -> None:
    for number in range(1, 41):
        store.store(tail_of(run, number, f"line {number}"), GLOBAL)
        if number == 3:
            row = only_row(LogArchive)
            lost = parse_chunks(row.chunks or "")[-1]
            folder.delete([f"{row.folder}/{lost.name}"])
    chunks = parse_chunks(only_row(LogArchive).chunks or "")
    assert lost in chunks
    assert [chunk.first for chunk in chunks[1:]] == [chunk.last + 1 for chunk in chunks[:-1]]
    assert (chunks[-1].last, len(chunks) <= 3 + small_chunks.COUNT) == (40, True)
