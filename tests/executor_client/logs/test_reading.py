"""Job logs: paths, writing, reading by line, size limits, expiry."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from executor_client.logs.files import LINE_MAX, RunLog, append_line, expire_logs, log_file
from executor_client.logs.reading import PAGE_MAX_BYTES, LogReader
from executor_client.wire.clock import local_day, local_stamp, parse_day
from executor_client.wire.protocol import LogRequest, LogResult
from tests.support.executor_client import T0

DAY_MS = 86_400_000


def make_log(root: Path, content: bytes) -> Path:
    path = log_file(root, 5, T0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def read(root: Path, from_line: int = 1, max_bytes: int = PAGE_MAX_BYTES) -> LogResult:
    return LogReader(root).read(LogRequest(5, T0, from_line), max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("from_line", "to_line", "text"),
    [
        (1, 3, "a\nb\nc\n"),
        (0, 3, "a\nb\nc\n"),
        (-7, 3, "a\nb\nc\n"),
        (2, 3, "b\nc\n"),
        (3, 3, "c\n"),
        (4, 3, ""),
        (99, 3, ""),
    ],
)
def test_reading_from_a_line(tmp_path: Path, from_line: int, to_line: int, text: str) -> None:
    make_log(tmp_path, b"a\nb\nc\n")
    assert read(tmp_path, from_line) == LogResult(from_line, to_line, text, is_end=False)


@pytest.mark.parametrize(
    ("content", "to_line", "text"),
    [(b"", 0, ""), (b"half", 0, ""), (b"a\nhalf", 1, "a\n"), (b"\n\n", 2, "\n\n")],
)
def test_only_whole_lines_are_returned(tmp_path: Path, content: bytes, to_line: int, text: str) -> None:
    make_log(tmp_path, content)
    assert read(tmp_path) == LogResult(1, to_line, text, is_end=False)


def read_end(root: Path, count: int, max_bytes: int = PAGE_MAX_BYTES) -> LogResult:
    return LogReader(root).read_end(LogRequest(5, T0, 1), count, max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("content", "count", "first", "last", "text"),
    [
        (b"a\nb\nc\n", 2, 2, 3, "b\nc\n"),
        (b"a\nb\nc\n", 3, 1, 3, "a\nb\nc\n"),
        (b"a\nb\nc\n", 99, 1, 3, "a\nb\nc\n"),
        (b"a\nb\nhalf", 1, 2, 2, "b\n"),
        (b"\n\n", 5, 1, 2, "\n\n"),
        (b"half", 5, 1, 0, ""),
        (b"", 5, 1, 0, ""),
    ],
)
def test_reading_the_end(
    tmp_path: Path, content: bytes, count: int, first: int, last: int, text: str
) -> None:
    make_log(tmp_path, content)
    assert read_end(tmp_path, count) == LogResult(first, last, text, is_end=False)


def test_the_end_is_what_fits_into_an_answer(tmp_path: Path) -> None:
    lines = [f"line {number} \u4e2d\n" for number in range(1, 20_001)]
    make_log(tmp_path, "".join(lines).encode())
    whole = read_end(tmp_path, 1_000)
    assert (whole.from_line_num, whole.to_line_num) == (19_001, 20_000)
    assert whole.log_content == "".join(lines[-1_000:])
    part = read_end(tmp_path, 1_000, max_bytes=100)
    assert (part.to_line_num, part.log_content) == (20_000, "".join(lines[part.from_line_num - 1 :]))
    assert 3 <= 20_001 - part.from_line_num <= 6
    cut = read_end(tmp_path, 5, max_bytes=12)
    assert (cut.from_line_num, cut.to_line_num) == (20_000, 20_000)


def test_an_overlong_last_line_is_cut(tmp_path: Path) -> None:
    make_log(tmp_path, b"a\n" + b"\x01" * 100 + b"\n")
    result = read_end(tmp_path, 5, max_bytes=300)
    assert (result.from_line_num, result.to_line_num) == (2, 2)
    assert result.log_content == "\x01" * 50 + " \u2026[line cut]\n"


def test_a_log_that_does_not_exist_has_no_end(tmp_path: Path) -> None:
    assert (read_end(tmp_path, 5).to_line_num, read_end(tmp_path, 5).is_end) == (0, True)


def test_a_follower_gets_each_line_once(tmp_path: Path) -> None:
    reader, log = LogReader(tmp_path), RunLog(log_file(tmp_path, 5, T0))
    log.open()
    got, line = [], 1
    for number in range(300):
        log.write(f"line {number}\n" * (number % 3))
        piece = reader.read(LogRequest(5, T0, line))
        got += piece.log_content.splitlines()
        line = piece.to_line_num + 1
    log.close()
    assert got == [f"line {number}" for number in range(300) for _ in range(number % 3)]


def test_following_a_large_log_skips_the_lines_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_log(tmp_path, b"x" * 99 + b"\n" + (b"y" * 99 + b"\n") * 100_000)
    reader = LogReader(tmp_path)
    assert reader.read(LogRequest(5, T0, 100_002)).to_line_num == 100_001
    offsets: list[int] = []
    pread = os.pread
    monkeypatch.setattr(
        os,
        "pread",
        lambda descriptor, size, offset: offsets.append(offset) or pread(descriptor, size, offset),
    )
    with log_file(tmp_path, 5, T0).open("ab") as stream:
        stream.write(b"new\n")
    assert reader.read(LogRequest(5, T0, 100_002)).log_content == "new\n"
    assert min(offsets) >= 10_000_000


def test_a_replaced_log_is_read_from_its_start(tmp_path: Path) -> None:
    path = make_log(tmp_path, b"a\n" * 100)
    reader = LogReader(tmp_path)
    reader.read(LogRequest(5, T0, 101))
    path.unlink()
    make_log(tmp_path, b"b\nc\n")
    assert reader.read(LogRequest(5, T0, 2)).log_content == "c\n"


@pytest.mark.parametrize("line", [b"z" * 1000, b'"' * 1000, b"\x01" * 200, "ü".encode() * 300, b"\xff" * 400])
def test_a_page_is_bounded_and_loses_nothing(tmp_path: Path, line: bytes) -> None:
    make_log(tmp_path, (line + b"\n") * 50)
    reader, got, start = LogReader(tmp_path), 0, 1
    while (piece := reader.read(LogRequest(5, T0, start), max_bytes=5_000)).log_content:
        assert len(json.dumps(piece.log_content, ensure_ascii=False).encode()) <= 5_002
        got += piece.log_content.count("\n")
        start = piece.to_line_num + 1
    assert got == 50
    assert start == 51


def test_a_page_leaves_room_for_both_copies_in_512_kib(tmp_path: Path) -> None:
    make_log(tmp_path, b'"\x01\n' * 400_000)
    piece = read(tmp_path).to_wire()
    assert (
        len(json.dumps({"code": 200, "msg": None, "content": piece, "data": piece}, ensure_ascii=False))
        < 512 * 1024
    )


@pytest.mark.parametrize("character", ["x", '"', "\x01", "中", "\U0001f600"])
def test_one_overlong_line_is_cut_where_the_page_is_full(tmp_path: Path, character: str) -> None:
    make_log(tmp_path, (character * 50_000 + "\nnext\n").encode())
    first = read(tmp_path, 1, 6_000)
    assert first.to_line_num == 1
    assert first.log_content.endswith(f"{character} …[line cut]\n")
    assert 5_990 < len(json.dumps(first.log_content, ensure_ascii=False).encode()) <= 6_002
    assert read(tmp_path, 2, 6_000).log_content == "next\n"


@pytest.mark.parametrize("character", ["x", '"', "中", "\U0001f600"])
def test_a_long_line_is_written_in_pieces_and_read_whole(tmp_path: Path, character: str) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open()
    line = f"first {character * 200_000} last"
    log.write(f"before\n\n{line}\nafter\n")
    log.close()
    got, reader = "", LogReader(tmp_path)
    while (piece := reader.read(LogRequest(5, T0, got.count("\n") + 1))).log_content:
        got += piece.log_content
    before, empty, *pieces, after, rest = got.split("\n")
    assert [before, empty, after, rest] == ["before", "", "after", ""]
    assert "".join(pieces) == line
    assert {len(each) for each in pieces[:-1]} == {LINE_MAX}


def test_reading_and_appending_create_no_file(tmp_path: Path) -> None:
    assert read(tmp_path) == LogResult(1, 0, "readLog fail, logFile not exists", is_end=True)
    assert not append_line(log_file(tmp_path, 5, T0), "x", now_ms=T0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "fifo"])
def test_a_link_or_pipe_is_not_followed(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "logs"
    path = log_file(root, 5, T0)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "5.log").write_text("secret\n")
    if kind == "folder":
        root.mkdir()
        path.parent.symlink_to(secret)
    else:
        path.parent.mkdir(parents=True)
        path.symlink_to(secret / "5.log") if kind == "file" else os.mkfifo(path)
    assert read(root).log_content == "readLog fail, logFile not exists"
    log = RunLog(path)
    log.open()
    assert not log.write("mine\n")
    assert (secret / "5.log").read_text() == "secret\n"


def test_the_first_lines_wait_for_the_next_ones_a_reader_or_the_end(tmp_path: Path) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open("start\n")
    assert not log.path.exists()
    log.flush()
    assert read(tmp_path).log_content == "start\n"
    log.write("a")
    log.close()
    assert read(tmp_path).log_content == "start\na\n"
    again = RunLog(log.path)
    again.open("after a restart\n")
    again.close()
    assert read(tmp_path).log_content == "start\na\nafter a restart\n"


def test_line_ends_are_normalized(tmp_path: Path) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open()
    log.write("a\r\nb\rc")
    log.close()
    assert log.write("late"), "a handler that continues can still write its log"
    assert log.path.read_bytes() == b"a\nb\nc\nlate\n"
    assert log.path.stat().st_mode & 0o027 == 0


def test_an_unwritable_log_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = RunLog(log_file(tmp_path / "file", 5, T0))
    log.open()
    assert not log.write("x")


@pytest.mark.parametrize("begin", ["", "start\n"])
def test_a_log_that_cannot_be_created_begins_with_a_later_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, begin: str
) -> None:
    root = tmp_path / "logs"
    root.write_text("in the way of the folder")
    log = RunLog(log_file(root, 5, T0))
    log.open(begin)
    log.flush()
    assert [log.write("lost\n"), log.write("lost\n")] == [False, False]
    root.unlink()
    assert [log.write("after\n"), log.write("last\n")] == [True, True]
    log.close()
    assert log.path.read_text() == f"{begin}after\nlast\n"
    (warning,) = caplog.messages
    assert warning.startswith(f"job log incomplete path={log.path} error=[Errno {errno.ENOTDIR}]")


def test_lines_after_the_end_create_no_log(tmp_path: Path) -> None:
    root = tmp_path / "logs"
    root.write_text("in the way of the folder")
    log = RunLog(log_file(root, 5, T0))
    log.open("start\n")
    log.close()
    root.unlink()
    assert not log.write("late\n")
    assert not root.exists()


def test_a_full_disk_is_logged_once_and_cuts_no_later_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open()
    log.write("before\n")
    write, room = os.write, [6]

    def write_while_there_is_room(descriptor: int, data: memoryview) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_while_there_is_room)
        assert [log.write("too long\n"), log.write("lost\n")] == [False, False]
    assert [log.write("after\n"), log.write("last\n")] == [True, True]
    log.close()
    assert log.path.read_text() == "before\ntoo lo\nafter\nlast\n"
    (warning,) = caplog.messages
    assert warning.startswith(f"job log incomplete path={log.path} error=[Errno {errno.ENOSPC}]")


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open()
    threads = [
        threading.Thread(target=lambda n=n: [log.write(f"{n}" * 200 + "\n") for _ in range(100)])
        for n in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert {len(set(line)) for line in log.path.read_text().splitlines()} == {1}


def test_a_forked_process_does_not_wait_for_a_thread_that_was_writing(tmp_path: Path) -> None:
    log = RunLog(log_file(tmp_path, 5, T0))
    log.open()
    held, release = threading.Event(), threading.Event()

    def write() -> None:
        with log._lock:
            held.set()
            release.wait(30)

    thread = threading.Thread(target=write)
    thread.start()
    held.wait(30)
    log.after_fork()
    written = log.write("x")
    release.set()
    thread.join()
    assert written


@pytest.mark.parametrize(("log_id", "time_ms"), [(0, T0), (-1, T0), (5, 0), (5, -1), (5, 10**17)])
def test_impossible_runs_have_no_log_path(tmp_path: Path, log_id: int, time_ms: int) -> None:
    with pytest.raises(ValueError):
        log_file(tmp_path, log_id, time_ms)


def test_expiry_deletes_folders_of_old_days_only(tmp_path: Path) -> None:
    days = [local_day(T0 - age * DAY_MS) for age in (0, 6, 7, 8, 400)]
    for name in (*days, "2020-01-01-backup", "2020-13-01", "gluesource"):
        (tmp_path / name).mkdir()
    (tmp_path / "2019-01-01").write_text("a file")
    (tmp_path / "2018-01-01").symlink_to(tmp_path / "gluesource")
    assert expire_logs(tmp_path, 7, now_ms=T0) == sorted(days[2:])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*days[:2], "2020-01-01-backup", "2020-13-01", "gluesource", "2019-01-01", "2018-01-01"]
    )


def test_expiry_keeps_the_logs_of_running_runs(tmp_path: Path) -> None:
    running = log_file(tmp_path, 5, T0 - 9 * DAY_MS)
    ended = running.with_name("6.log")
    running.parent.mkdir()
    running.touch()
    ended.touch()
    assert expire_logs(tmp_path, 7, now_ms=T0, running=[running]) == []
    assert [running.exists(), ended.exists()] == [True, False]
    assert expire_logs(tmp_path, 7, now_ms=T0) == [running.parent.name]
    assert not running.parent.exists()


@pytest.mark.parametrize("retention", [2, 0, -1])
def test_a_short_retention_keeps_everything(tmp_path: Path, retention: int) -> None:
    (tmp_path / "2020-01-01").mkdir()
    assert expire_logs(tmp_path, retention, now_ms=T0) == []


def test_the_clock_formats_local_time() -> None:
    assert len(local_stamp(T0)) == len("2024-05-01 03:04:05")
    assert local_stamp(T0).startswith(local_day(T0))
    assert parse_day("2024-02-30") is None
    assert parse_day("2024-05-01x") is None
