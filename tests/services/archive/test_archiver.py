"""Archiver: which logs are fetched, and what a pull makes of the answers of executors."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from app.blobs.folder import Folder
from app.clock import SECOND_MS
from app.database.engine import transact
from app.domain.archive.chunks import parse_chunks
from app.domain.archive.kinds import Missing
from app.domain.archive.packing import unpack_lines
from app.domain.archive.pulls import AT_ONCE
from app.errors import ExecutorRefused, ExecutorUnreachable
from app.executors.calls import Peer
from app.executors.gateway import Gateway, ReadLog
from app.models.archive import LogArchive
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.archive_at_once import fetch_at_once
from app.pipeline.complete import callback_result, complete
from app.services.archive import archiver as archivers
from app.services.archive.archiver import Archiver
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.store.archive import expiry, room, rows
from app.store.archive.room import JobOfDay, Room
from executor_client.wire.protocol import LogRequest, LogResult
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_job, make_run, only_row

pytestmark = pytest.mark.usefixtures("database")


class Answering(Gateway):
    """Executors that answer as the test says."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        super().__init__(())
        self.answer = answer
        #: addresses that were called
        self.called: list[str] = []

    def read_run(
        self, peer: Peer, request: LogRequest, *, timeout_s: float, progress: bool, last_lines: int = 0
    ) -> ReadLog:
        self.called.append(peer.address)
        first = request.from_line_num
        return ReadLog(LogResult.from_wire(self.answer(first), from_line_num=first), None, False)


def lines_of(*lines: str) -> Callable[[int], Any]:
    """Return the answers of an executor with a log."""

    def answer(first: int) -> Any:
        text = "".join(f"{line}\n" for line in lines[first - 1 :])
        return {"fromLineNum": first, "toLineNum": len(lines), "logContent": text}

    return answer


@dataclass
class Site:
    """An archiver without threads, and the time."""

    folder: Folder
    gateway: Answering
    now_ms: int = T0 + 60 * SECOND_MS
    tasks: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.archiver = Archiver(
            Config(),
            node="one",
            caller=Caller(self.gateway, ("token",)),
            store=self.folder,
            clock=lambda: self.now_ms,
            monotonic=lambda: self.now_ms / SECOND_MS,
            rest=lambda at_ms: 0,
        )
        self.archiver.close()
        self.archiver._pool = self  # type: ignore[assignment]

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        self.tasks.append(partial(work, *args))

    def look(self) -> None:
        """Let the archiver look, and end what it began."""
        self.archiver.tick(self.now_ms)
        while self.tasks:
            self.tasks.pop()()

    def pass_s(self, seconds: int) -> None:
        """Let the archiver look each second."""
        for _ in range(seconds):
            self.look()
            self.now_ms += SECOND_MS

    def stored(self) -> list[str]:
        row = only_row(LogArchive)
        names = [(chunk, f"{row.folder}/{chunk.name}") for chunk in parse_chunks(row.chunks or "")]
        return [line for chunk, name in names for line in unpack_lines(chunk, self.folder.get(name))]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(Folder(tmp_path), Answering(lines_of("one", "two")))


def accepted(job: Job, address: str = FIRST) -> JobLog:
    return make_run(job, log={"executor_address": address}, accepted_ms=T0, logical_ms=T0)


def end(run: JobLog, code: int, at_ms: int) -> None:
    transact(lambda session: complete(session, [callback_result(run.id, code, "")], now_ms=at_ms))


def keep(job: Job, mode: str) -> None:
    transact(lambda session: session.execute(update(Job).where(Job.id == job.id).values(log_archive=mode)))


@pytest.mark.parametrize(("code", "mode"), [(200, "failed"), (500, "off")])
def test_the_end_of_a_run_is_seen_if_its_job_archives_no_more(site: Site, code: int, mode: str) -> None:
    job = make_job(log_archive="all")
    run = accepted(job)
    site.look()
    keep(job, mode)
    end(run, code, site.now_ms)
    site.pass_s(40)
    assert site.stored() == ["one", "two"]
    assert only_row(LogArchive).state == "complete"
    assert len(site.gateway.called) < 12


def test_what_is_to_be_fetched_at_once_is_so_after_a_pull_in_progress(site: Site) -> None:
    accepted(make_job(log_archive="all"))

    def answer(first: int) -> Any:
        transact(partial(fetch_at_once, addresses=[FIRST]))
        return lines_of("one")(first)

    site.gateway.answer = answer
    site.look()
    assert only_row(LogArchive).next_ms == AT_ONCE
    site.gateway.answer = lines_of("one", "two")
    site.now_ms += archivers.LOOK_MS
    site.look()
    assert site.stored() == ["one", "two"]
    assert only_row(LogArchive).next_ms > site.now_ms


def test_a_log_is_fetched_after_a_claim_that_failed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted(make_job(log_archive="all"))

    def fail(*args: object, **named: object) -> None:
        raise OperationalError("claim", {}, Exception("the database is away"))

    with monkeypatch.context() as patch:
        patch.setattr(archivers.rows, "claim", fail)
        for _ in range(3):
            with pytest.raises(OperationalError):
                site.look()
    site.look()
    assert site.stored() == ["one", "two"]


def test_a_log_that_another_node_has_fetched_meanwhile_is_left_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted(make_job(log_archive="all"))
    find = rows.find_due

    def find_before_the_other(**named: int) -> object:
        due = find(**named)
        transact(lambda session: session.execute(update(LogArchive).values(state="complete", next_ms=0)))
        return due

    monkeypatch.setattr(archivers.rows, "find_due", find_before_the_other)
    site.look()
    assert (only_row(LogArchive).epoch, site.gateway.called) == (0, [])


def test_an_instance_that_hangs_does_not_hold_up_the_logs_of_others(site: Site) -> None:
    hanging, other = make_job(log_archive="all"), make_job(log_archive="all", addresses=SECOND)
    for _ in range(150):
        accepted(hanging)
    site.archiver.tick(site.now_ms)
    site.now_ms += SECOND_MS
    accepted(other, SECOND)
    site.archiver.tick(site.now_ms)  # finds the new run
    assert len(site.tasks) == 3, "two calls of the one that hangs, and one"


def test_many_logs_of_an_instance_are_fetched_by_two_calls_at_a_time(site: Site) -> None:
    job = make_job(log_archive="all")
    for _ in range(40):
        accepted(job)
    assert site.archiver.tick(site.now_ms) == archivers.BACKLOG_MS
    assert len(site.tasks) == archivers.CALLS_OF_INSTANCE
    while site.tasks:
        site.tasks.pop()()
    lines = [row.last_line for row in all_rows(LogArchive)]
    assert lines.count(2) == archivers.CALLS_OF_INSTANCE * archivers.LANE_MAX


def test_logs_that_there_is_no_time_for_are_given_back(site: Site) -> None:
    job = make_job(log_archive="all")
    for _ in range(6):
        accepted(job)

    def answer_late(first: int) -> Any:
        site.now_ms += 10 * SECOND_MS
        return lines_of("one", "two")(first)

    site.gateway.answer = answer_late
    site.look()
    assert sum(not row.lease_until for row in all_rows(LogArchive)) == 6
    assert 0 < sum(bool(row.last_line) for row in all_rows(LogArchive)) < 6


def test_many_due_logs_of_an_instance_that_answers_do_not_hold_up_those_of_others(site: Site) -> None:
    many, other = make_job(log_archive="all"), make_job(log_archive="all", addresses=SECOND)
    for _ in range(archivers.DUE_MAX + 2):
        accepted(many)
    accepted(other, SECOND)
    site.archiver.tick(site.now_ms)
    site.archiver.tick(site.now_ms)
    assert len(site.tasks) == 3


def test_runs_that_are_not_archived_do_not_hide_those_that_are(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archivers, "DISCOVERED_MAX", 3)
    off, on = make_job(log_archive="off"), make_job(log_archive="all")
    for _ in range(3):
        accepted(off)
    run = accepted(on)
    site.look()
    assert only_row(LogArchive).log_id == run.id


def test_a_log_that_its_executor_has_lost_is_not_whole(site: Site) -> None:
    run = accepted(make_job(log_archive="all"))
    site.look()
    site.gateway.answer = lambda first: {"logContent": "readLog fail, logFile not exists", "toLineNum": 0}
    end(run, 500, site.now_ms)
    site.pass_s(30)
    row = only_row(LogArchive)
    assert (row.state, row.reason, row.last_line) == ("partial", "log_gone", 2)


def test_an_answer_with_other_lines_ends_the_pull(site: Site) -> None:
    """pyxxljob answers always the same, from line 1; another client might count on its own."""
    run = accepted(make_job(log_archive="all"))
    site.gateway.answer = lambda first: {"fromLineNum": 1, "toLineNum": first, "logContent": "xxx"}
    site.look()
    end(run, 500, site.now_ms)
    site.pass_s(30)
    assert (site.stored(), only_row(LogArchive).state) == (["xxx"], "complete")


def test_refusals_are_no_silence(site: Site) -> None:
    """npm xxl-job and others refuse to return a log that does not exist."""
    job = make_job(log_archive="all")
    runs = [accepted(job) for _ in range(4)]

    def refuse(first: int) -> Any:
        raise ExecutorRefused(FIRST, "denied")

    site.gateway.answer = refuse
    site.pass_s(10)
    assert len(site.gateway.called) > 12, "the instance does not rest"
    for run in runs:
        end(run, 500, site.now_ms)
    site.pass_s(60)
    assert {(row.state, row.reason) for row in all_rows(LogArchive)} == {("partial", "refused")}


def test_a_folder_stays_if_the_time_zone_changes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run = accepted(make_job(log_archive="all"))
    site.look()
    monkeypatch.setattr("app.pipeline.archive_ends.zone_name", lambda: "Pacific/Honolulu")
    end(run, 500, site.now_ms)
    site.pass_s(30)
    assert site.stored() == ["one", "two"]


def test_a_late_result_has_a_purged_log_fetched_anew(site: Site) -> None:
    run = accepted(make_job(log_archive="all"))
    site.look()
    transact(lambda session: session.execute(update(LogArchive).values(state="partial", next_ms=0)))
    transact(lambda session: expiry.purge(session, [only_row(LogArchive).id], reason=Missing.EXPIRED))
    end(run, 500, site.now_ms)
    site.pass_s(30)
    assert (site.stored(), only_row(LogArchive).state) == (["one", "two"], "complete")


def test_an_instance_that_does_not_answer_rests(site: Site) -> None:
    def hang(first: int) -> Any:
        raise ExecutorUnreachable(FIRST, "no answer")

    accepted(make_job(log_archive="all"))
    site.gateway.answer = hang
    site.pass_s(30)
    assert len(site.gateway.called) == 3
    site.gateway.answer = lines_of("one")
    site.pass_s(60)
    assert site.stored() == ["one"]


def test_a_day_with_room_again_has_the_log_whole(site: Site) -> None:
    job = make_job(log_archive="all")
    run = accepted(job)
    full = {JobOfDay(job.id, "2024/05/01"): Room(2**30, 9)}
    transact(partial(room.add, rooms=full))
    site.pass_s(5)
    assert (only_row(LogArchive).reason, site.gateway.called) == ("job_cap", [])
    transact(partial(room.add, rooms={key: Room(-size, -9) for key, (size, _) in full.items()}))
    end(run, 500, site.now_ms)
    site.pass_s(30)
    row = only_row(LogArchive)
    assert (row.state, row.reason, site.stored()) == ("complete", "", ["one", "two"])
