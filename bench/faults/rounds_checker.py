"""Checker of rounds: compares what became of them with what became of the runs of their predecessors.

The outcome of each predecessor comes from the log and the recorded skips, not from what has arrived in the
rounds; starts come from the executors' journals.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import Engine, text

from app.clock import DAY_MS
from bench.faults.checker import CLOCK_MS, Event

SUCCEEDED, BAD = "succeeded", "bad"
STARTED, NOT_RUN, OPEN = "started", "not_run", "open"
DAY, SINCE_LAST = "day", "since_last"
#: a success that has been recorded for so long has arrived, if it is ever to
ARRIVED_MS = 1_000

RUNS = """
    SELECT id, job_id, COALESCE(logical_ms, fire_time) AS logical_ms, trigger_type, trigger_code, handle_code,
        executor_sharding_param AS shard, round_id, handle_time
    FROM xxl_job_log ORDER BY id
"""
ROUNDS = "SELECT * FROM xxl_job_round ORDER BY id"
SKIPS = "SELECT job_id, from_ms, to_ms, reason, trigger_type, round_id FROM xxl_job_skip ORDER BY id"
ARRIVALS = "SELECT round_id, predecessor_id, shard, outcome, reason, log_id FROM xxl_job_arrival"

Row = dict[str, Any]


@dataclass(frozen=True)
class Follower:
    """A job that runs after others."""

    job_id: int
    #: ids of its predecessors
    after: tuple[int, ...]
    rule: str = "all_succeeded"
    k: int = 1
    round: str = "logical_time"
    at_deadline: str = ""
    #: it has a schedule: its instants wait for the rounds
    is_gate: bool = False

    @property
    def needed(self) -> int:
        """How many predecessors have to succeed."""
        return {"all_succeeded": len(self.after), "any_succeeded": 1, "all_ended": 0}.get(self.rule, self.k)

    def expect(self, outcomes: Sequence[str | None]) -> str:
        """Return the state of a round by the final outcomes of the predecessors; None: unknown."""
        succeeded, bad = outcomes.count(SUCCEEDED), outcomes.count(BAD)
        if self.rule == "all_ended":
            return STARTED if succeeded + bad == len(outcomes) else OPEN
        if succeeded >= self.needed:
            return STARTED
        return NOT_RUN if len(outcomes) - bad < self.needed else OPEN


@dataclass
class Story:
    """All records of a harness run."""

    followers: Sequence[Follower]
    runs: Sequence[Row]
    rounds: Sequence[Row]
    skips: Sequence[Row]
    arrivals: Sequence[Row]
    events: Sequence[Event]
    problems: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, engine: Engine, followers: Sequence[Follower], events: Sequence[Event]) -> "Story":
        """Read it from the database and the journals' events."""
        with engine.connect() as connection:
            runs, rounds, skips, arrivals = (
                [dict(row) for row in connection.execute(text(sql)).mappings()]
                for sql in (RUNS, ROUNDS, SKIPS, ARRIVALS)
            )
        return cls(followers, runs, rounds, skips, arrivals, events)

    @cached_property
    def runs_of(self) -> dict[int, list[Row]]:
        """Job id -> its runs."""
        runs = defaultdict(list)
        for run in self.runs:
            runs[run["job_id"]].append(run)
        return runs

    @cached_property
    def runs_at(self) -> dict[tuple[int, int], list[Row]]:
        """Job id, logical time -> runs."""
        runs = defaultdict(list)
        for run in self.runs:
            runs[run["job_id"], run["logical_ms"]].append(run)
        return runs

    @cached_property
    def skips_of(self) -> dict[int, list[Row]]:
        """Job id -> skips."""
        skips = defaultdict(list)
        for skip in self.skips:
            skips[skip["job_id"]].append(skip)
        return skips

    @cached_property
    def run_by_id(self) -> dict[int, Row]:
        return {run["id"]: run for run in self.runs}

    @cached_property
    def first_start(self) -> dict[int, int]:
        """Log id -> when it first started."""
        starts: dict[int, int] = {}
        for event in self.events:
            if event.event == "start":
                starts[event.log_id] = min(event.wall_ms, starts.get(event.log_id, event.wall_ms))
        return starts

    @cached_property
    def success_ms(self) -> dict[int, int]:
        """Log id -> when its handler reported a success."""
        return {
            event.log_id: event.wall_ms
            for event in self.events
            if event.event == "finish" and event.code == 200
        }

    def outcome(self, job_id: int, logical_ms: int) -> str | None:
        """Return what became of a job's instant in the end; None: nothing has."""
        return self._outcome(
            self.runs_at[job_id, logical_ms], is_skipped=self._is_skipped(job_id, logical_ms)
        )

    def outcome_of_day(self, job_id: int, day: int) -> str | None:
        """Return what became of a job's runs of a day in the end: one success is enough."""
        instants = {run["logical_ms"] for run in self.runs_of[job_id] if run["logical_ms"] // DAY_MS == day}
        skipped = {skip["to_ms"] for skip in self.skips_of[job_id] if skip["to_ms"] // DAY_MS == day}
        outcomes = {self.outcome(job_id, at_ms) for at_ms in instants | skipped}
        return SUCCEEDED if SUCCEEDED in outcomes else BAD if BAD in outcomes else None

    def _outcome(self, runs: Sequence[Row], *, is_skipped: bool) -> str | None:
        if not runs:
            return BAD if is_skipped else None
        total = int((runs[-1]["shard"] or "0/1").partition("/")[2])
        succeeded = {run["shard"] for run in runs if run["handle_code"] == 200}
        if total > 1:
            return SUCCEEDED if succeeded >= {f"{index}/{total}" for index in range(total)} else BAD
        return SUCCEEDED if succeeded else BAD

    def _is_skipped(self, job_id: int, logical_ms: int) -> bool:
        return any(skip["from_ms"] <= logical_ms <= skip["to_ms"] for skip in self.skips_of[job_id])

    def note(self, problem: str, row: object) -> None:
        self.problems.append(f"{problem}: {row}")


def check_rounds(story: Story) -> None:
    """Note every round that is not as the runs of its predecessors require, and every run too many."""
    by_id = {row["id"]: row for row in story.rounds}
    followers = {each.job_id: each for each in story.followers}
    for row in story.rounds:
        _check_state(story, followers[row["job_id"]], row)
        _check_runs(story, followers[row["job_id"]], row)
        if row["state"] == NOT_RUN:
            _check_cause(story, followers, row)
    for each in story.followers:
        _check_complete(story, each)
        if each.round == SINCE_LAST:
            _check_since_last(story, each)
    for run in story.runs:
        _check_start(story, followers, by_id, run)
    starts = Counter(event.log_id for event in story.events if event.event == "start")
    for log_id in starts:
        if starts[log_id] > 1 or log_id not in story.run_by_id:
            story.note("started twice, or unknown", (log_id, starts[log_id]))


def _check_state(story: Story, follower: Follower, row: Row) -> None:
    """Compare the state with the outcomes of the predecessors."""
    if row["state"] == OPEN and 0 < row["due_ms"] <= row["opened_ms"]:
        story.note("open and due", row)
    if row["state"] == NOT_RUN and row["due_ms"]:
        story.note("not passed on", row)
    outcomes = _outcomes(story, follower, row)
    if outcomes is None:
        return
    expected = follower.expect(outcomes)
    if row["state"] == expected and not row["incomplete"]:
        return
    is_late = row["decided_ms"] >= row["deadline_ms"] - CLOCK_MS
    if follower.at_deadline == "run" and row["incomplete"] and row["state"] == STARTED and is_late:
        return
    if follower.at_deadline == "drop" and row["reason"] == "deadline" and is_late:
        return
    story.note(f"not {expected} in spite of {outcomes}", row)


def _outcomes(story: Story, follower: Follower, row: Row) -> list[str | None] | None:
    kind, _, value = row["round_key"].partition(":")
    if kind == "t":
        return [story.outcome(job_id, int(value)) for job_id in follower.after]
    if kind == "d":
        return [story.outcome_of_day(job_id, row["logical_ms"] // DAY_MS) for job_id in follower.after]
    return None


def _check_runs(story: Story, follower: Follower, row: Row) -> None:
    """A started round has one first run, another has none but a skip; an instant that waits is its run."""
    first = [
        run
        for run in story.runs_of[follower.job_id]
        if run["round_id"] == row["id"] and run["trigger_type"] != "RETRY"
    ]
    is_started = row["state"] == STARTED
    if follower.is_gate:
        if len(first) > 1 or (first and not is_started):
            story.note(f"{len(first)} runs of a gate", row)
        if row["state"] == NOT_RUN and not story.outcome(follower.job_id, row["logical_ms"]):
            story.note("an instant without a skip", row)
        return
    if len(first) != is_started or (first and row["log_id"] != first[0]["id"]):
        story.note(f"{len(first)} first runs", row)
    skips = [skip for skip in story.skips_of[follower.job_id] if skip["round_id"] == row["id"]]
    if len(skips) != (row["state"] == NOT_RUN):
        story.note(f"{len(skips)} skips", row)


def _check_cause(story: Story, followers: Mapping[int, Follower], row: Row) -> None:
    """The cause of a round that was not run is a run that has failed, or a skip."""
    if row["reason"] not in ("predecessor", "deadline"):
        story.note("unexpected reason", row)
    if row["reason"] == "deadline":
        return
    if row["cause_log_id"] is None:
        arrived = [each for each in story.arrivals if each["round_id"] == row["id"]]
        if not any(each["outcome"] == "not_run" and each["reason"] for each in arrived):
            story.note(f"no cause among {arrived}", row)
        return
    run = story.run_by_id.get(row["cause_log_id"])
    if run is None or run["job_id"] not in _above(followers, row["job_id"]):
        story.note(f"the cause is {run}", row)
    elif run["handle_code"] == 200:
        story.note(f"the cause has succeeded: {run}", row)


def _above(followers: Mapping[int, Follower], job_id: int) -> set[int]:
    """Return all that a job runs after, directly or not."""
    above, new = set[int](), {job_id}
    while new:
        new = {after for each in new if each in followers for after in followers[each].after} - above
        above |= new
    return above


def _check_complete(story: Story, follower: Follower) -> None:
    """There is a round for each logical time that anything has become of."""
    if follower.round in (DAY, SINCE_LAST):
        return
    keys = {row["round_key"] for row in story.rounds if row["job_id"] == follower.job_id}
    times = {run["logical_ms"] for job_id in follower.after for run in story.runs_of[job_id]}
    for at_ms in sorted(times):
        if f"t:{at_ms}" not in keys:
            story.note(f"no round of {follower.job_id} at", at_ms)
    runs = Counter(
        run["logical_ms"] for run in story.runs_of[follower.job_id] if run["trigger_type"] != "RETRY"
    )
    for at_ms, count in runs.items():
        if count > 1:
            story.note(f"{count} runs of {follower.job_id} at", at_ms)


def _check_since_last(story: Story, follower: Follower) -> None:
    """Each round begins with the end of the one before; a success counts in one, and the last is open."""
    rows = [row for row in story.rounds if row["job_id"] == follower.job_id]
    before = 0
    for row in rows:
        if row["round_key"] != f"s:{before}":
            story.note(f"not since {before}", row)
        before = row["id"]
    ids = {row["id"] for row in rows}
    arrived = [each for each in story.arrivals if each["round_id"] in ids]
    succeeded = Counter(each["log_id"] for each in arrived if each["outcome"] == SUCCEEDED)
    for log_id, count in succeeded.items():
        if count > 1:
            story.note(f"run {log_id} counts {count} times", follower)
    for row in rows[:-1]:
        if row["state"] == OPEN:
            story.note("open, but not the last", row)
    if not rows or rows[-1]["state"] != OPEN:
        return
    last = {each["predecessor_id"] for each in arrived if each["round_id"] == rows[-1]["id"]}
    if len(last) == len(follower.after):
        outcomes = [each["outcome"] for each in arrived if each["round_id"] == rows[-1]["id"]]
        if follower.expect([SUCCEEDED if each == SUCCEEDED else BAD for each in outcomes]) != OPEN:
            story.note(f"open in spite of {outcomes}", rows[-1])
    since_ms = rows[-2]["decided_ms"] if len(rows) > 1 else 0
    for job_id in set(follower.after) - last:
        late = [
            event.log_id
            for event in story.events
            if event.job_id == job_id and event.event == "start" and event.wall_ms > since_ms + ARRIVED_MS
        ]
        if any(log_id in story.success_ms and _has_succeeded(story, log_id) for log_id in late):
            story.note(f"a success of {job_id} has not arrived", rows[-1])


def _has_succeeded(story: Story, log_id: int) -> bool:
    return story.run_by_id.get(log_id, {}).get("handle_code") == 200


def _check_start(story: Story, followers: Mapping[int, Follower], by_id: Mapping[int, Row], run: Row) -> None:
    """No run of a round began before it was decided, nor before enough predecessors had succeeded."""
    follower, began_ms = followers.get(run["job_id"]), story.first_start.get(run["id"])
    if run["trigger_code"] == 0 or (run["trigger_code"] == 200 and run["handle_code"] == 0):
        story.note("a run without an end", run)
    if follower is None:
        return
    row = by_id.get(run["round_id"])
    if row is None:
        story.note("a run in no round", run)
        return
    if began_ms is None:
        return
    if row["state"] != STARTED or began_ms < row["decided_ms"] - CLOCK_MS:
        story.note(f"began at {began_ms}, before its round {row}", run)
    if follower.round in (DAY, SINCE_LAST) or row["incomplete"]:
        return
    done = sum(
        _was_done(story, story.runs_at[job_id, run["logical_ms"]], began_ms) for job_id in follower.after
    )
    if done < follower.needed:
        story.note(f"began at {began_ms} after {done} successes", run)


def _was_done(story: Story, runs: Iterable[Row], at_ms: int) -> bool:
    """Return whether the handlers of all shards had succeeded by then."""
    times: Collection[Row] = list(runs)
    done = {run["shard"] for run in times if story.success_ms.get(run["id"], at_ms + 1) <= at_ms}
    return bool(times) and done == {run["shard"] for run in times}
