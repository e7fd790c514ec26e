"""Archived logs under faults: random histories keep each line once, and none is missing but those named."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.blobs.blob_store import StoreFull
from app.blobs.folder import Folder
from app.clock import SECOND_MS
from app.database.engine import read_scope, transact
from app.domain.archive.chunks import parse_chunks
from app.domain.archive.kinds import FETCHED, ArchiveState, Missing
from app.domain.archive.packing import unpack_lines
from app.domain.runs.evidence import ABSENT_LOGS
from app.errors import ExecutorUnreachable
from app.executors.calls import Peer
from app.executors.gateway import Gateway, ReadLog
from app.models.archive import LogArchive
from app.models.log import JobLog
from app.pipeline.complete import callback_result, complete
from app.services.archive import small_chunks
from app.services.archive.archiver import LEASE_MS, Archiver
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.settings.log_archive import ArchiveConfig
from app.store.archive import room
from app.store.archive.room import JobOfDay, Room
from executor_client.wire.protocol import LogRequest, LogResult
from tests.support.factories import T0, all_rows, make_job, make_run
from tests.support.plan import every_database

pytestmark = [every_database, pytest.mark.usefixtures("database")]

RUN_MAX = 700
TEXTS = ("", "short", "日志", "a\ttab", "x" * 90, "password=hunter2", '{"k": "\\n"}', "bare\rreturn")
#: what a client says is the last line, from that and the first one requested
LAST_LINES: list[Callable[[int, int, bool], int | None]] = [
    lambda first, last, has_text: last,
    lambda first, last, has_text: last if has_text else 0,
    lambda first, last, has_text: last if has_text else last + 1,
    lambda first, last, has_text: last if has_text else first,
    lambda first, last, has_text: last + 1,
    lambda first, last, has_text: None,
]


class Killed(BaseException):
    """The archiver was killed."""


class Remote:
    """Log of a run as its executor has it, and the way in which that one answers."""

    def __init__(self, run: JobLog, dice: random.Random) -> None:
        self.run, self.dice = run, dice
        self.lines: list[str] = []
        self.is_lost = False
        self.ended_ms = 0
        self.result = 0
        self.last_line = dice.choice(LAST_LINES)
        self.line_end = dice.choice(("\n", "\n", "\r\n"))
        self.is_bare = dice.random() < 0.2

    def answer(self, first: int) -> Any:
        """Return the payload of an answer."""
        if self.is_lost or not self.lines:
            text = self.dice.choice((*ABSENT_LOGS, ""))
            return {"fromLineNum": first, "toLineNum": self.dice.choice((0, first)), "logContent": text}
        piece = self.lines[first - 1 :][: self.dice.randrange(1, 6)]
        text = "".join(line + self.line_end for line in piece)
        last = self.last_line(first, first + len(piece) - 1 if piece else len(self.lines), bool(piece))
        if self.is_bare:
            return text
        numbers = {"fromLineNum": first} | ({} if last is None else {"toLineNum": last})
        return {**numbers, "logContent": text, "isEnd": False}


class RemoteGateway(Gateway):
    """Calls of executors, during which other things happen."""

    def __init__(self, world: "World") -> None:
        super().__init__(())
        self.world = world

    def read_run(
        self, peer: Peer, request: LogRequest, *, timeout_s: float, progress: bool, last_lines: int = 0
    ) -> ReadLog:
        self.world.calls += 1
        self.world.meanwhile()
        if self.world.is_away:
            raise ExecutorUnreachable(peer.address, "away")
        first = request.from_line_num
        answer = self.world.remotes[request.log_id].answer(first)
        return ReadLog(LogResult.from_wire(answer, from_line_num=first), None, False)


class FaultyFolder(Folder):
    """A folder without room now and then, and before or after whose changes the archiver is killed."""

    world: "World"

    def put(self, name: str, content: bytes) -> None:
        self.world.may_die()
        if self.world.is_full:
            raise StoreFull(name)
        super().put(name, content)
        self.world.may_die()

    def delete(self, names: list[str]) -> None:
        self.world.may_die()
        super().delete(names)


class Waiting:
    """Pool whose tasks are run by the test."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], None]] = []

    def submit(self, work: Callable[..., None], *args: Any) -> None:
        self.tasks.append(partial(work, *args))


class World:
    """Runs that write logs, two nodes that archive them, and faults."""

    def __init__(self, seed: int, folder: Path, mode: str) -> None:
        self.dice = random.Random(seed)
        self.now_ms = T0 + 60 * SECOND_MS
        self.store = FaultyFolder(folder)
        self.store.world = self
        self.mode = mode
        self.is_away = self.is_full = self.is_quiet = False
        self.depth = self.calls = 0
        job = make_job(log_archive=mode)
        runs = [make_run(job, log={"trigger_time": T0}, accepted_ms=T0, logical_ms=T0) for _ in range(3)]
        self.remotes = {run.id: Remote(run, self.dice) for run in runs}
        self.nodes = [self.node(number) for number in range(2)]

    def node(self, number: int) -> Archiver:
        archiver = Archiver(
            Config(archive=ArchiveConfig(redact="password=[a-z0-9]+")),
            node=f"node-{number}",
            caller=Caller(RemoteGateway(self), ("token",)),
            store=self.store,
            clock=lambda: self.now_ms,
            monotonic=lambda: self.now_ms / SECOND_MS,
            rest=lambda at_ms: 0,
        )
        archiver.close()
        archiver._pool = Waiting()  # type: ignore[assignment]
        archiver._puller = replace(archiver._puller, run_max=RUN_MAX)
        return archiver

    # --- what happens

    def step(self) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self.append, 5), (self.turn, 6), (self.wait, 3), (self.end, 1), (self.toggle, 1), (self.lose, 0),
        ]  # fmt: skip
        self.dice.choices([act for act, _ in acts], [weight for _, weight in acts])[0]()

    def meanwhile(self) -> None:
        if self.is_quiet or self.depth > 1 or self.dice.random() < 0.6:
            return
        self.depth += 1
        for _ in range(self.dice.randrange(4)):
            self.step()
        self.depth -= 1

    def may_die(self) -> None:
        if not self.is_quiet and self.dice.random() < 0.05:
            raise Killed

    def append(self) -> None:
        remote = self.dice.choice(list(self.remotes.values()))
        if not remote.is_lost and (not remote.ended_ms or self.now_ms < remote.ended_ms + 5 * SECOND_MS):
            remote.lines += self.dice.choices(TEXTS, k=self.dice.randrange(1, 8))

    def end(self) -> None:
        remote = self.dice.choice(list(self.remotes.values()))
        if not remote.ended_ms:
            self.end_one(remote)

    def end_one(self, remote: Remote) -> None:
        remote.ended_ms, remote.result = self.now_ms, self.dice.choice((200, 500))
        result = callback_result(remote.run.id, remote.result, "")
        transact(lambda session: complete(session, [result], now_ms=self.now_ms))

    def lose(self) -> None:
        self.dice.choice(list(self.remotes.values())).is_lost = True

    def wait(self) -> None:
        self.now_ms += self.dice.choice((100, SECOND_MS, 5 * SECOND_MS, 30 * SECOND_MS, LEASE_MS + 1))

    def toggle(self) -> None:
        if self.dice.random() < 0.5:
            self.is_away = not self.is_away
        else:
            self.is_full = not self.is_full

    def turn(self) -> None:
        """Let one node look, and run some of what it has begun, in any order."""
        number = self.dice.randrange(2)
        archiver = self.nodes[number]
        try:
            archiver.tick(self.now_ms)
            tasks = archiver._pool.tasks  # type: ignore[attr-defined]
            while tasks and self.dice.random() < 0.7:
                tasks.pop(self.dice.randrange(len(tasks)))()
        except Killed:
            self.nodes[number] = self.node(number)

    def settle(self) -> None:
        """End all runs and fetch what is left, without further faults."""
        self.is_away = self.is_full = False
        self.is_quiet = True
        for remote in self.remotes.values():
            if not remote.ended_ms:
                self.end_one(remote)
        for number in range(2):
            self.nodes[number] = self.node(number)
        calls = self.calls
        for _ in range(300):
            if not any(row.state in FETCHED for row in all_rows(LogArchive)):
                break
            self.nodes[0].tick(self.now_ms)
            tasks = self.nodes[0]._pool.tasks  # type: ignore[attr-defined]
            while tasks:
                tasks.pop()()
            self.now_ms += SECOND_MS
        assert not [row.log_id for row in all_rows(LogArchive) if row.state in FETCHED], "it never ends"
        assert self.calls - calls < 400

    # --- what must hold

    def lines_of(self, row: LogArchive) -> Iterator[tuple[int, str]]:
        for chunk in parse_chunks(row.chunks or ""):
            lines = unpack_lines(chunk, self.store.get(f"{row.folder}/{chunk.name}"))
            assert len(lines) == chunk.last - chunk.first + 1
            yield from enumerate(lines, chunk.first)

    def check(self) -> None:
        """Each row names lines of its log, each once, without holes but for the gap."""
        sums = Room()
        for row in all_rows(LogArchive):
            real = self.remotes[row.log_id].lines
            gap = set(range(row.gap_from, row.gap_to + 1)) if row.gap_from else set()
            numbered = list(self.lines_of(row))
            expected = [number for number in range(1, row.last_line + 1) if number not in gap]
            assert [number for number, _ in numbered] == expected
            for number, line in numbered:
                assert line == real[number - 1].replace("password=hunter2", "***")
            chunks = parse_chunks(row.chunks or "")
            assert row.size == sum(chunk.size for chunk in chunks)
            assert row.size <= RUN_MAX + 2_000
            sums = sums.plus(Room(row.size, row.stored))
            if row.state == ArchiveState.COMPLETE:
                assert row.last_line == len(real)
                assert not gap
                assert not row.reason
        job = next(iter(self.remotes.values())).run.job_id
        with read_scope() as session:
            assert room.size_of(session, JobOfDay(job, "2024/05/01")) == sums.size

    def check_end(self) -> None:
        rows = {row.log_id: row for row in all_rows(LogArchive)}
        for log_id, remote in self.remotes.items():
            if self.mode == "failed" and remote.result == 200:
                assert log_id not in rows
                continue
            row = rows[log_id]
            whole = row.last_line == len(remote.lines)
            if not remote.lines:
                assert (row.state, row.reason) in (("complete", ""), ("partial", Missing.LOG_GONE))
            elif row.gap_from:
                assert whole
                assert (row.state, row.reason) == ("partial", Missing.RUN_CAP)
            else:
                assert whole
                assert (row.state, row.reason) == ("complete", "")


@pytest.mark.parametrize("mode", ["all", "failed"])
def test_random_histories_keep_each_line_once(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_chunks, "SHARE", 8)
    monkeypatch.setattr(small_chunks, "COUNT", 3)
    for seed in range(8):
        world = World(seed, tmp_path / f"{mode}-{seed}", mode)
        for _ in range(8):
            world.step()
            world.check()
        world.settle()
        world.check()
        world.check_end()
        transact(forget_all)


def forget_all(session: Any) -> None:
    """Delete what one history has left."""
    for model in (LogArchive,):
        session.query(model).delete()
