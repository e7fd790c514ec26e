"""Journal: states on disk, duplicates, and an unwritable file."""

import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executor_client import Executor, ExecutorConfig, HandlerRegistry, StartRefused, context
from executor_client.journal import journal as journal_module
from executor_client.journal.journal import Journal
from executor_client.journal.writer import BATCH_MAX, BatchWriter
from executor_client.wire.callbacks import CallbackItem
from executor_client.wire.errors import JournalUnavailable
from executor_client.wire.protocol import RunRequest
from tests.executor_client.stand_in_admin import StandInAdmin
from tests.support.eventually import eventually
from tests.support.executor_client import T0, Caller, MakeExecutor

REQUEST = RunRequest(1, "h", "p\ud800", "SERIAL_EXECUTION", 0, 5, T0, "BEAN", "", 0, 0, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "journal.sqlite3"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    opened = Journal(path)
    yield opened
    opened.close()


def accept(journal: Journal, log_id: int = 5, log_date_time: int = T0) -> int | None:
    return journal.accept(REQUEST._replace(log_id=log_id, log_date_time=log_date_time), now_ms=T0)


def test_a_run_goes_through_its_states(journal: Journal) -> None:
    run_id = accept(journal)
    assert run_id is not None
    (left,) = journal.open_runs()
    assert (left.run_id, left.is_started, left.request.log_id, left.request.executor_params) == (
        run_id,
        False,
        5,
        "p?",
    )
    assert journal.start(run_id)
    assert not journal.start(run_id), "it starts only once"
    journal.record_processes(run_id, "7:8")
    assert journal.find_unacknowledged(10) == []
    journal.finish(run_id, 200, "ok", now_ms=T0 + 1).result(5)
    journal.finish(run_id, 500, "late", now_ms=T0 + 2).result(5)
    assert journal.find_unacknowledged(10) == [(run_id, CallbackItem(5, T0, 200, "ok"))]
    assert journal.open_runs() == []
    journal.acknowledge([run_id], now_ms=T0).result(5)
    assert journal.find_unacknowledged(10) == []
    assert journal.is_known(REQUEST, now_ms=T0)


def test_a_run_that_starts_at_once_is_stored_as_started(journal: Journal) -> None:
    run_id = journal.accept(REQUEST, now_ms=T0, starts=True)
    assert run_id is not None
    assert not journal.start(run_id), "it starts only once"
    assert [left.is_started for left in journal.open_runs()] == [True]
    journal.requeue(run_id).result(5)
    assert [left.is_started for left in journal.open_runs()] == [False]


def test_a_run_with_a_result_does_not_start(journal: Journal) -> None:
    run_id = accept(journal) or 0
    journal.finish(run_id, 500, "killed", now_ms=T0).result(5)
    assert not journal.start(run_id)


HOUR_MS = 3_600_000


@pytest.mark.parametrize("state", ["accepted", "started", "finished", "acknowledged"])
@pytest.mark.parametrize(
    ("later_ms", "job_id", "known_while_open", "known_when_acknowledged"),
    [
        (0, 1, True, True),
        (877, 1, True, True),
        (9_999, 1, True, True),
        (
            HOUR_MS,
            1,
            True,
            False,
        ),  # another database, or an admin that changes the time of a repeated trigger
        (-HOUR_MS, 1, True, False),
        (0, 2, False, False),  # a log id never changes its job
    ],
)
def test_a_log_id_is_one_run(
    journal: Journal,
    state: str,
    later_ms: int,
    job_id: int,
    known_while_open: bool,
    known_when_acknowledged: bool,
) -> None:
    run_id = accept(journal) or 0
    if state != "accepted":
        journal.start(run_id)
    if state in ("finished", "acknowledged"):
        journal.finish(run_id, 200, None, now_ms=T0).result(5)
    if state == "acknowledged":
        journal.acknowledge([run_id], now_ms=T0).result(5)
    again = REQUEST._replace(log_date_time=T0 + later_ms, job_id=job_id)
    known = known_when_acknowledged if state == "acknowledged" else known_while_open
    assert journal.is_known(again, now_ms=T0 + HOUR_MS) == known
    assert (journal.accept(again, now_ms=T0 + HOUR_MS) is None) == known


def test_a_trigger_sent_again_during_its_callback_is_known(journal: Journal) -> None:
    run_id = accept(journal) or 0
    journal.finish(run_id, 200, None, now_ms=T0).result(5)
    journal.acknowledge([run_id], now_ms=T0).result(5)
    again = REQUEST._replace(log_date_time=T0 + 40_000)
    assert journal.is_known(again, now_ms=T0 + 41_000)


def test_the_journal_survives_its_process(path: Path) -> None:
    first = Journal(path)
    ids = [accept(first, log_id) or 0 for log_id in (1, 2, 3)]
    first.start(ids[1])
    first.record_processes(ids[1], "1:2")
    first.finish(ids[2], 200, None, now_ms=T0).result(5)
    first.close()
    second = Journal(path)
    assert [(left.request.log_id, left.is_started, left.process) for left in second.open_runs()] == [
        (1, False, ""),
        (2, True, "1:2"),
    ]
    assert [item.log_id for _, item in second.find_unacknowledged(10)] == [3]
    second.close()


def test_two_executors_cannot_share_a_journal(journal: Journal, path: Path) -> None:
    with pytest.raises(StartRefused, match="another executor"):
        Journal(path)


def test_the_journal_is_readable_by_its_owner_only(journal: Journal, path: Path) -> None:
    accept(journal)
    assert {file.stat().st_mode & 0o077 for file in (path, path.parent)} == {0}


def test_an_invalid_file_is_refused_in_one_line(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("x" * 5000)
    with pytest.raises(StartRefused, match="not a database"):
        Journal(path)


def test_a_newer_format_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for _ in range(2):  # the file is released after the failure
        with pytest.raises(StartRefused, match="format 99"):
            Journal(path)


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="XXL_JOB_HOME"):
        Journal(tmp_path / "file" / "journal.sqlite3")


def test_only_old_acknowledged_runs_are_pruned(journal: Journal) -> None:
    ids = [accept(journal, log_id) or 0 for log_id in range(1, 2_101)]
    for number, run_id in enumerate(ids[:2_050]):
        journal.finish(run_id, 200, None, now_ms=T0 + number)
        if number == 1_499:
            journal.flush()  # results stored together get the time of the last
    journal.acknowledge(ids[:2_000], now_ms=T0).result(5)
    assert journal.prune(before_ms=T0 + 1_500) == 1_500
    assert not journal.is_known(REQUEST._replace(log_id=1_500), now_ms=T0)
    assert journal.is_known(REQUEST._replace(log_id=1_501), now_ms=T0)
    assert len(journal.find_unacknowledged(1_000)) == 50
    assert len(journal.open_runs()) == 50


def test_concurrent_writers_get_distinct_ids(journal: Journal) -> None:
    accepted: list[int | None] = []
    threads = [
        threading.Thread(
            target=lambda n=n: accepted.extend(accept(journal, n * 100 + i + 1) for i in range(50))
        )
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(accepted)) == 400
    assert None not in accepted


def test_results_that_wait_together_keep_their_own_outcome(journal: Journal) -> None:
    outcomes = [(200, None), (500, "bad"), (200, "3 rows"), (200, None)]
    ids = [accept(journal, log_id) or 0 for log_id in range(1, 5)]
    for run_id in ids:
        journal.save_checkpoint(run_id, "7")
    journal.finish(ids[0], 502, "timed out", now_ms=T0).result(5)
    release = threading.Event()
    journal._writer.submit(lambda connection: release.wait(5))
    stored = [
        journal.finish(run_id, code, msg, now_ms=T0)
        for run_id, (code, msg) in zip(ids, outcomes, strict=True)
    ]
    release.set()
    stored[-1].result(5)
    assert len(set(stored)) == 1
    kept = [
        (item.handle_code, item.handle_msg, item.checkpoint) for _, item in journal.find_unacknowledged(9)
    ]
    assert kept == [(502, "timed out", "7"), (500, "bad", "7"), (200, "3 rows", None), (200, None, None)]


def test_a_run_with_a_result_keeps_its_checkpoint(journal: Journal) -> None:
    run_id = accept(journal) or 0
    assert journal.save_checkpoint(run_id, "1")
    journal.finish(run_id, 502, None, now_ms=T0).result(5)
    assert not journal.save_checkpoint(run_id, "2")
    assert journal.find_checkpoint(5, REQUEST.job_id) == "1"


def test_queued_statements_share_a_commit(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x", isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE t (a INTEGER)")
    executed: list[str] = []
    connection.set_trace_callback(executed.append)
    writer = BatchWriter(connection)
    done = [
        writer.submit(lambda database, n=n: database.execute(f"INSERT INTO t VALUES ({n})").rowcount)
        for n in range(BATCH_MAX + 1)
    ]
    writer.start()
    assert [future.result(5) for future in done] == [1] * (BATCH_MAX + 1)
    writer.close()
    assert executed.count("COMMIT") == 2


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    opened = journal_module._connect(tmp_path / "x")
    full, wal = (
        opened.execute("PRAGMA synchronous").fetchone()[0],
        opened.execute("PRAGMA journal_mode").fetchone()[0],
    )
    opened.close()
    assert (full, wal) == (2, "wal")


def test_an_invalid_value_fails_only_its_own_statement(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x", isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE t (a INTEGER)")
    writer = BatchWriter(connection)
    valid = writer.submit(lambda database: database.execute("INSERT INTO t VALUES (1)").rowcount)
    invalid = writer.submit(lambda database: database.execute("INSERT INTO t VALUES (?)", (2**70,)))
    writer.start()
    assert valid.result(5) == 1
    with pytest.raises(OverflowError):
        invalid.result(5)
    writer.close()
    with pytest.raises(JournalUnavailable):
        writer.submit(lambda _: None).result(5)


def test_runs_are_accepted_in_one_transaction_each_for_itself(journal: Journal) -> None:
    known = accept(journal, 5)
    triggers = [
        (REQUEST._replace(log_id=log_id), starts) for log_id, starts in ((5, True), (6, True), (7, False))
    ]
    invalid = (REQUEST._replace(log_id=2**70), False)
    duplicate, error, *run_ids = journal.accept_all([triggers[0], invalid, *triggers[1:]], now_ms=T0)
    assert duplicate is None
    assert isinstance(error, OverflowError)
    assert [(run.run_id, run.is_started) for run in journal.open_runs()] == [
        (known, False),
        (run_ids[0], True),
        (run_ids[1], False),
    ]


def test_a_journal_of_the_earlier_name_is_named(
    start: MakeExecutor, config: Callable[..., ExecutorConfig], caplog: pytest.LogCaptureFixture
) -> None:
    settings = config(appname="my app")
    settings.earlier_journal_path.touch()
    start(appname="my app")
    names = f"file={settings.earlier_journal_path} new={settings.journal_path}"
    assert f"journal of an earlier version not read {names}" in caplog.text


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit the file size to 1 byte, so that SQLite gets EFBIG instead of ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_rejects_new_runs_and_loses_none(
    caller: Caller,
    handlers: HandlerRegistry,
    admin: StandInAdmin,
    result: Callable[[int], tuple[int, str | None]],
) -> None:
    release = threading.Event()
    handlers.job("wait")(lambda: release.wait(10) and None)
    caller.accepted(1, executorHandler="wait")
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    with full_disk():
        reply = caller.run(2)
        assert (reply["code"], reply["msg"]) == (500, "the journal cannot be written")
        assert "duplicate" in caller.run(1, executorHandler="wait")["msg"], "an accepted run stays accepted"
        release.set()
        eventually(lambda: not caller.is_busy(), message="the run does not end")
        assert admin.codes() == {}, "a result is reported only after it is on disk"
    assert result(1) == (200, None)
    caller.accepted(2)
    assert result(2) == (200, None)


def test_a_stop_with_a_full_disk_sends_results_without_the_journal(
    caller: Caller,
    handlers: HandlerRegistry,
    admin: StandInAdmin,
    executors: list[Executor],
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = threading.Event()
    handlers.job("wait")(lambda: release.wait(10) and "done")
    caller.accepted(1, executorHandler="wait", jobId=4)
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    with full_disk():
        release.set()
        eventually(lambda: not caller.is_busy(4), message="the run does not end")
        executors[0].stop()
    assert admin.codes() == {1: 200}
    assert "result not stored job_id=4 log_id=1 code=200" in caplog.text
    assert "run ended" not in caplog.text


def test_a_stop_with_a_full_disk_sends_no_result_of_a_run_that_will_start(
    start: MakeExecutor, handlers: HandlerRegistry, admin: StandInAdmin, executors: list[Executor]
) -> None:
    handlers.job("first_waits")(lambda: context.log_id == 1 and context.cancelled.wait(10) and None)
    caller = start()
    caller.accepted(1, executorHandler="first_waits")
    eventually(lambda: "execute start" in caller.log(1)["logContent"])
    caller.accepted(2, executorHandler="first_waits")
    with full_disk():
        executors[0].stop()  # ends run 1, when the queue is closed
    assert admin.codes() == {1: 500}, "run 2 is still in the queue"
    start()
    eventually(lambda: admin.codes().get(2) == 200, message="run 2 does not start")
