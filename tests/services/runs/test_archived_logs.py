"""Logs that are read from the archive, and the tails behind them from executors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from app.blobs.folder import Folder
from app.blobs.stores import Archive
from app.domain.access.permissions import system_actor
from app.domain.archive.chunks import dump_chunks
from app.domain.archive.kinds import ArchiveState, Missing
from app.domain.archive.missing import Caps
from app.domain.archive.packing import pack_lines
from app.errors import ExecutorUnreachable
from app.executors.gateway import Gateway
from app.models.archive import LogArchive
from app.models.group import Group
from app.models.log import JobLog
from app.services.executors.callers import Caller
from app.services.run_logs.log_pieces import join_lines
from app.services.runs.log_ends import fetch_end, fetch_range
from app.services.runs.log_lines import Lines, fetch_lines
from app.services.runs.logs import read_log
from tests.support.executors import NETWORKS
from tests.support.factories import T0, save
from tests.support.fake_executor import Answer, Request
from tests.support.log_executor import LogExecutor

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("test")
LINES = [f"line {number}" for number in range(1, 101)]
#: chunks of the archive: first and last line
PARTS = ((1, 10), (11, 40), (41, 60))


@pytest.fixture
def executor() -> Iterator[LogExecutor]:
    with LogExecutor(LINES) as running:
        yield running


class ArchivedRuns:
    """Runs with archived logs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.blobs = Folder(folder)
        gateway, archive = Gateway(NETWORKS), Archive(self.blobs, Caps(16, 256))
        self.caller = Caller(gateway, ("the-global-token-1",), archive=archive)

    def add(self, address: str, state: ArchiveState, **values: object) -> int:
        """Save a run whose archive has PARTS; ``parts``: other ones."""
        group = save(Group(app_name="some-app", title="Some", address_list=address))
        ended = {} if state is ArchiveState.OPEN else {"handle_code": 500}
        sent = {"executor_address": address, "trigger_time": T0, "trigger_code": 200}
        log = save(JobLog(job_group=group.id, job_id=1, **sent, **ended))
        chunks = []
        for first, last in values.pop("parts", PARTS):  # type: ignore[attr-defined]
            chunk, stored = pack_lines(first, LINES[first - 1 : last])
            self.blobs.put(f"f/{log.id}/{chunk.name}", stored)
            chunks.append(chunk)
        row = {"log_id": log.id, "job_id": 1, "job_group": group.id, "folder": f"f/{log.id}", "pulled_ms": T0}
        row |= {"last_line": chunks[-1].last if chunks else 0, "chunks": dump_chunks(chunks)}
        save(LogArchive(**row, state=state.value, **values))
        return log.id

    def read(self, log_id: int, first: int) -> Lines:
        """Read lines as readers do."""
        return fetch_lines(log_id, first, actor=ADMIN, caller=self.caller)


@pytest.fixture
def runs(tmp_path: Path) -> ArchivedRuns:
    return ArchivedRuns(tmp_path / "archive")


#: no executor listens there
GONE = "http://127.0.0.1:9/"


def texts(lines: Lines) -> list[str]:
    return [str(part.text) for part in lines.missing]


def test_a_whole_archived_log_needs_no_executor(runs: ArchivedRuns) -> None:
    log_id = runs.add(GONE, ArchiveState.COMPLETE)
    piece = runs.read(log_id, 5)
    assert (piece.first, piece.last, piece.lines) == (5, 60, LINES[4:60])
    assert (piece.archived, piece.missing, piece.is_end) == (60, (), False)
    end = runs.read(log_id, 61)
    assert (end.lines, end.is_end, end.missing) == ([], True, ())


def test_only_the_lines_behind_the_archive_come_from_the_executor(
    runs: ArchivedRuns, executor: LogExecutor
) -> None:
    log_id = runs.add(executor.address, ArchiveState.OPEN)
    assert runs.read(log_id, 1).lines == LINES[:60]
    assert not executor.requests
    assert runs.read(log_id, 61).lines == LINES[60:]
    end = fetch_end(log_id, 1, 50, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.last, end.lines) == (51, 100, LINES[50:])
    assert [request.json["fromLineNum"] for request in executor.requests] == [61, 61]


def test_the_tail_that_was_not_fetched_is_named(runs: ArchivedRuns) -> None:
    log_id = runs.add(GONE, ArchiveState.PARTIAL, reason=Missing.INSTANCE_GONE.value)
    assert texts(runs.read(log_id, 1)) == []
    end = runs.read(log_id, 61)
    said = "Lines from 61 on were not fetched: the instance did not answer after 2024-05-01 11:04:05"
    assert (end.is_end, texts(end), end.message) == (True, [said], said)
    last = fetch_end(log_id, 1, 20, actor=ADMIN, caller=runs.caller)
    assert (last.first, last.lines, texts(last.piece)) == (41, LINES[40:60], [said])


def test_the_executor_that_came_back_has_the_tail(runs: ArchivedRuns, executor: LogExecutor) -> None:
    log_id = runs.add(executor.address, ArchiveState.PARTIAL, reason=Missing.INSTANCE_GONE.value)
    piece = runs.read(log_id, 61)
    assert (piece.lines, piece.missing) == (LINES[60:], ())


def test_an_open_log_is_shown_and_its_executor_is_asked_again(runs: ArchivedRuns) -> None:
    log_id = runs.add(GONE, ArchiveState.OPEN)
    end = fetch_end(log_id, 1, 30, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.lines, end.piece.is_end) == (31, LINES[30:60], False)
    with pytest.raises(ExecutorUnreachable):
        runs.read(log_id, 61)


def test_lines_that_another_node_has_archived_come_from_the_executor(
    runs: ArchivedRuns, executor: LogExecutor
) -> None:
    log_id = runs.add(executor.address, ArchiveState.COMPLETE)
    _delete(runs, log_id, "11-")
    piece = runs.read(log_id, 5)
    assert (piece.first, piece.last, piece.missing) == (5, 10, ())
    piece = runs.read(log_id, 11)
    assert (piece.first, piece.lines[:50], piece.missing) == (11, LINES[10:60], ())
    end = fetch_end(log_id, 1, 40, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.lines, texts(end.piece)) == (21, LINES[20:60], [])


def test_the_end_of_small_files_that_cannot_be_read_comes_from_the_executor(
    runs: ArchivedRuns, executor: LogExecutor
) -> None:
    log_id = runs.add(executor.address, ArchiveState.COMPLETE, parts=[(line, line) for line in range(1, 61)])
    for line in range(20, 61):
        _delete(runs, log_id, f"{line}-")
    end = fetch_end(log_id, 1, 40, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.lines, texts(end.piece)) == (21, LINES[20:60], [])


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (lambda first: (first, 100, LINES[first - 1 : first + 19]), (5, 60)),
        (lambda first: (1, 100, LINES), (5, 60)),
        (lambda first: (first, 30, LINES[first - 1 : 30]), (5, 30)),
        (lambda first: (first + 1, 100, LINES[first:]), (5, 10)),
    ],
    ids=["fewer than it says", "from the first one on", "fewer than were archived", "behind those asked for"],
)
def test_other_lines_than_those_asked_for_keep_their_numbers(
    runs: ArchivedRuns,
    executor: LogExecutor,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[int], tuple[int, int, list[str]]],
    part: tuple[int, int],
) -> None:
    def answer_to(request: Request) -> Answer:
        first, last, lines = answer(request.json["fromLineNum"])
        content = {"fromLineNum": first, "toLineNum": last, "logContent": join_lines(lines), "isEnd": True}
        return Answer.json(200, content=content)

    log_id = runs.add(executor.address, ArchiveState.COMPLETE)
    _delete(runs, log_id, "11-")
    monkeypatch.setattr(executor, "answer_to", answer_to)
    piece = read_log(log_id, 11, actor=ADMIN, caller=runs.caller)
    assert piece.is_end == (piece.to_line_num == 100)
    read = fetch_range(log_id, 5, 60, actor=ADMIN, caller=runs.caller)
    assert ((read.first, read.last), read.lines) == (part, LINES[part[0] - 1 : part[1]])


def test_lines_that_neither_has_are_named(runs: ArchivedRuns) -> None:
    log_id = runs.add(GONE, ArchiveState.COMPLETE)
    _delete(runs, log_id, "11-")
    said = ["Lines 11–40 cannot be read: a file of the log archive is missing or was changed"]
    piece = runs.read(log_id, 11)
    assert (piece.first, piece.lines, texts(piece)) == (41, LINES[40:60], said)
    end = fetch_end(log_id, 1, 40, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.lines, texts(end.piece)) == (41, LINES[40:60], said)


def _delete(runs: ArchivedRuns, log_id: int, chunk: str) -> None:
    """Delete the file of a chunk, by the beginning of its name."""
    (file,) = (runs.blobs.path / f"f/{log_id}").glob(f"{chunk}*")
    file.unlink()


def test_a_gap_is_named_and_skipped(runs: ArchivedRuns) -> None:
    log_id = runs.add(
        GONE,
        ArchiveState.PARTIAL,
        reason=Missing.RUN_CAP.value,
        parts=((1, 10), (41, 60)),
        gap_from=11,
        gap_to=40,
    )
    said = ["Lines 11–40 were not kept: the log is longer than 16 MB"]
    head, tail = runs.read(log_id, 1), runs.read(log_id, 11)
    assert (head.last, texts(head), head.absent(1)) == (10, said, [])
    assert (tail.first, tail.lines, texts(tail), len(tail.absent(11))) == (41, LINES[40:60], said, 1)
    assert runs.read(log_id, 61).is_end
    end = fetch_end(log_id, 1, 30, actor=ADMIN, caller=runs.caller)
    assert (end.first, end.last, len(end.lines)) == (41, 60, 20)
    part = fetch_range(log_id, 5, 50, actor=ADMIN, caller=runs.caller)
    assert (part.first, part.last, part.lines) == (5, 10, LINES[4:10])


def test_an_unreadable_file_is_a_gap(runs: ArchivedRuns) -> None:
    log_id = runs.add(GONE, ArchiveState.COMPLETE)
    for blob in runs.blobs.list(f"f/{log_id}"):
        if "/11-40-" in blob.name:
            runs.blobs.delete([blob.name])
    assert runs.read(log_id, 1).last == 10
    piece = runs.read(log_id, 11)
    reason = "a file of the log archive is missing or was changed"
    assert (piece.first, texts(piece)) == (41, [f"Lines 11–40 cannot be read: {reason}"])


def test_files_in_a_row_that_cannot_be_read_are_one_range(
    runs: ArchivedRuns, executor: LogExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs.blobs, "get", Mock(side_effect=OSError("no answer")))
    assert runs.read(runs.add(executor.address, ArchiveState.COMPLETE), 1).lines == LINES
    piece = runs.read(runs.add(GONE, ArchiveState.COMPLETE), 1)
    said = "Lines 1–60 cannot be read: a file of the log archive is missing or was changed"
    assert (piece.lines, piece.is_end, texts(piece)) == ([], True, [said])


@pytest.mark.parametrize("reason", [Missing.PURGED, Missing.EXPIRED, Missing.LOG_GONE])
def test_without_lines_the_reason_is_named(runs: ArchivedRuns, reason: Missing) -> None:
    state = ArchiveState.PARTIAL if reason is Missing.LOG_GONE else ArchiveState.PURGED
    log_id = runs.add(GONE, state, reason=reason.value, parts=())
    end = fetch_end(log_id, 1, 30, actor=ADMIN, caller=runs.caller)
    why = {
        Missing.PURGED: "not kept: the log archive had reached its size",
        Missing.EXPIRED: "not kept: the log is older than logs of the job are archived",
        Missing.LOG_GONE: "not fetched: the executor had no log of the run",
    }
    assert (end.lines, end.piece.is_end) == ([], True)
    assert texts(end.piece) == [f"Lines from 1 on were {why[reason]}"]
