"""Checker of backfills: what the tables say of their instants, compared with the executors' own journals.

Expected instants come from an independent evaluator; a run belongs to an instant by its trigger.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Engine, text

from app.domain.runs.trigger_keys import backfill_key, trigger_of
from bench.faults.checker import CLOCK_MS, UNRESOLVED, Event
from tests.domain.cron.brute import quartz_fires

BACKFILLS = "SELECT * FROM xxl_job_backfill ORDER BY id"
INSTANTS = "SELECT * FROM xxl_job_backfill_instant ORDER BY backfill_id, number"
RUNS = """
    SELECT id, job_id, trigger_type, trigger_key, source_log_id, logical_ms, trigger_code, handle_code,
        executor_fail_retry_count AS retries_left, chain, round_id
    FROM xxl_job_log WHERE trigger_type IN ('BACKFILL', 'RETRY', 'PARENT', 'AFTER') ORDER BY id
"""
ROUNDS = "SELECT id, job_id, logical_ms, chain, state FROM xxl_job_round"
SUCCEEDED, FAILED, WITHDRAWN = "succeeded", "failed", "withdrawn"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """A backfill that a script has asked for."""

    job_id: int
    #: the schedule, if nothing else has run in the range, so that all its instants are expected
    cron: str
    from_ms: int
    to_ms: int
    #: follower of the job; 0: none
    follower_id: int = 0


@dataclass(frozen=True)
class Pause:
    """Time from the answer to a pause to the request that ends it."""

    backfill_id: int
    from_ms: int
    until_ms: int


@dataclass
class Story:
    """All records of a harness run."""

    asked: Mapping[int, Asked]
    pauses: Sequence[Pause]
    backfills: Sequence[Row]
    instants: Sequence[Row]
    runs: Sequence[Row]
    rounds: Sequence[Row]
    events: Sequence[Event]
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(
        cls, engine: Engine, asked: Mapping[int, Asked], pauses: Sequence[Pause], events: Sequence[Event]
    ) -> "Story":
        with engine.connect() as connection:
            rows = [
                [dict(row._mapping) for row in connection.execute(text(sql))]
                for sql in (BACKFILLS, INSTANTS, RUNS, ROUNDS)
            ]
        return cls(asked, pauses, rows[0], rows[1], rows[2], rows[3], events)

    @cached_property
    def instants_of(self) -> Mapping[int, list[Row]]:
        return _grouped(self.instants, "backfill_id")

    @cached_property
    def first_runs(self) -> Mapping[int, list[Row]]:
        """Runs of backfills by the number of their trigger."""
        return _grouped((run for run in self.runs if run["trigger_type"] == "BACKFILL"), "trigger_key")

    @cached_property
    def successors(self) -> Mapping[int, list[Row]]:
        return _grouped(self.runs, "source_log_id")

    @cached_property
    def rounds_of(self) -> Mapping[tuple[int, int], list[Row]]:
        """Rounds by logical time and chain, which is 0 if there is none."""
        found = defaultdict[tuple[int, int], list[Row]](list)
        for row in self.rounds:
            found[row["logical_ms"], row["chain"] or 0].append(row)
        return found

    @cached_property
    def starts(self) -> Mapping[int, list[int]]:
        return self._times("start")

    @cached_property
    def finishes(self) -> Mapping[int, list[int]]:
        return self._times("finish")

    def _times(self, kind: str) -> Mapping[int, list[int]]:
        found = defaultdict[int, list[int]](list)
        for event in self.events:
            if event.event == kind:
                found[event.log_id].append(event.wall_ms)
        return found

    def runs_of(self, backfill: Row, instant: Row) -> dict[int, list[Row]]:
        """Return the runs of an instant by attempt, each with its retries, in order."""
        found = {}
        for attempt in range(1, backfill["attempt"] + 1):
            key = backfill_key(backfill["id"], instant["logical_ms"], attempt)
            trigger = trigger_of(backfill["job_id"], key)
            assert trigger is not None
            runs = list(self.first_runs.get(trigger.number, ()))
            if len(runs) > 1:
                self.problem(backfill, f"{len(runs)} first runs of attempt {attempt}: {dict(instant)}")
            for run in runs:
                runs += [each for each in self.successors[run["id"]] if each["trigger_type"] == "RETRY"]
            if runs:
                found[attempt] = runs
        return found

    def problem(self, backfill: Row, what: str) -> None:
        self.problems.append(f"backfill {backfill['id']} ({backfill['state']}): {what}")


def _grouped(rows: Iterable[Row], column: str) -> Mapping[int, list[Row]]:
    found = defaultdict[int, list[Row]](list)
    for row in rows:
        found[row[column]].append(row)
    return found


def check_backfills(story: Story) -> None:
    """Judge the backfills of a harness run in which nothing is in progress any more."""
    for backfill in story.backfills:
        story.counts[backfill["state"]] += 1
        story.counts["attempts"] += backfill["attempt"]
        runs = {each["id"]: story.runs_of(backfill, each) for each in story.instants_of[backfill["id"]]}
        for check in CHECKS:
            check(story, backfill, runs)
    if unknown := {row["id"] for row in story.backfills} ^ story.asked.keys():
        story.problems.append(f"backfills of no answer, or answers without: {unknown}")
    for run in story.runs:
        starts = len(story.starts.get(run["id"], ()))
        if starts > 1 or (run["handle_code"] == 200 and not starts):
            story.problems.append(f"started {starts} times: {dict(run)}")


Runs = Mapping[int, Mapping[int, Sequence[Row]]]


def _check_list(story: Story, backfill: Row, _runs: Runs) -> None:
    """The instants are those of the schedule, in the order asked for, and each has its result."""
    rows, asked = story.instants_of[backfill["id"]], story.asked.get(backfill["id"])
    times = [row["logical_ms"] for row in rows]
    if times != sorted(times, reverse=backfill["run_order"] == "newest_first"):
        story.problem(backfill, "its instants are not in order")
    if asked is not None and asked.cron:
        expected = quartz_fires(asked.cron, ZoneInfo("UTC"), asked.from_ms - 1, asked.to_ms - 1)
        if sorted(times) != expected:
            story.problem(backfill, f"{len(times)} instants for {len(expected)}")
    states = Counter(row["state"] for row in rows)
    story.counts.update(f"instants {state}" for state in states.elements())
    ended = {SUCCEEDED, FAILED}
    if backfill["state"] == "cancelled":
        ended.add(WITHDRAWN)
    elif backfill["state"] == "done" and backfill["on_failure"] == "stop":
        ended.remove(FAILED)
    if backfill["state"] not in ("done", "cancelled") or not backfill["ended_ms"] or states.keys() - ended:
        story.problem(backfill, f"has ended with {dict(states)}")
    if len(rows) != backfill["total"]:
        story.problem(backfill, f"{len(rows)} instants of {backfill['total']}")


def _check_results(story: Story, backfill: Row, runs: Runs) -> None:
    """Each instant has the result of its last run, and no run after a success."""
    for instant in story.instants_of[backfill["id"]]:
        attempts = runs[instant["id"]]
        last = attempts.get(instant["attempt"], ())
        succeeded = [attempt for attempt, chain in attempts.items() if chain[-1]["handle_code"] == 200]
        has_succeeded = bool(last) and succeeded == [max(attempts)] == [instant["attempt"]]
        if instant["state"] == SUCCEEDED and not (has_succeeded and instant["log_id"] == last[-1]["id"]):
            story.problem(backfill, f"no success of {dict(instant)}: {attempts}")
        if instant["state"] == FAILED and (succeeded or not last):
            story.problem(backfill, f"has not failed: {dict(instant)}: {attempts}")
        if instant["state"] == WITHDRAWN and succeeded:
            story.problem(backfill, f"was not withdrawn: {dict(instant)}: {attempts}")
        for chain in attempts.values():
            _check_chain(story, backfill, chain)


def _check_chain(story: Story, backfill: Row, chain: Sequence[Row]) -> None:
    """Each failure has a retry while some are left, unless the backfill was cancelled."""
    for run in chain[:-1]:
        if run["handle_code"] == 200:
            story.problem(backfill, f"a success is repeated: {dict(run)}")
    last = chain[-1]
    is_unresolved = last["trigger_code"] == UNRESOLVED and not last["handle_code"]
    may_retry = last["handle_code"] != 200 and last["retries_left"] > 0 and not is_unresolved
    if may_retry and backfill["state"] != "cancelled":
        story.problem(backfill, f"a failure is not repeated: {dict(last)}")


def _check_order(story: Story, backfill: Row, runs: Runs) -> None:
    """One at a time: each begins after the end of the one before, and none after a failure that stops."""
    if backfill["max_running"] != 1:
        return
    chains = [
        (attempt, instant["number"], runs[instant["id"]][attempt])
        for instant in story.instants_of[backfill["id"]]
        for attempt in runs[instant["id"]]
    ]
    chains.sort(key=lambda each: each[:2])
    for (attempt, number, former), (next_attempt, next_number, chain) in pairwise(chains):
        ends = [at_ms for run in former for at_ms in _times_of(story, run)]
        begins = [at_ms for run in chain for at_ms in story.starts.get(run["id"], ())]
        if ends and begins and max(ends) > min(begins):
            story.problem(
                backfill,
                f"{next_number} began {max(ends) - min(begins)} ms before the end of {number}:"
                f" {[dict(run) for run in (*former, *chain)]}",
            )
        has_stopped = backfill["on_failure"] == "stop" and former[-1]["handle_code"] != 200
        if has_stopped and attempt == next_attempt:
            story.problem(backfill, f"{next_number} ran after the failure of {number}")
        story.counts["in order"] += 1


def _times_of(story: Story, run: Row) -> Iterable[int]:
    return (*story.starts.get(run["id"], ()), *story.finishes.get(run["id"], ()))


def _check_silence(story: Story, backfill: Row, runs: Runs) -> None:
    """Nothing starts after its end; within a pause, only what was under way."""
    started = [
        at_ms
        for attempts in runs.values()
        for chain in attempts.values()
        for run in chain
        for at_ms in story.starts.get(run["id"], ())
    ]
    late = [at_ms - backfill["ended_ms"] for at_ms in started if at_ms > backfill["ended_ms"] + CLOCK_MS]
    if late:
        story.problem(backfill, f"starts {late} ms after its end")
    for pause in story.pauses:
        if pause.backfill_id != backfill["id"]:
            continue
        begun = [
            row["logical_ms"]
            for row in story.instants_of[backfill["id"]]
            if pause.from_ms < row["begun_ms"] < pause.until_ms
        ]
        if begun:
            story.problem(backfill, f"began {begun} within {pause}")
        story.counts["pauses"] += 1


def _check_followers(story: Story, backfill: Row, runs: Runs) -> None:
    """Each success has its child and its round, or none has any, as the backfill asks for."""
    asked = story.asked.get(backfill["id"])
    if asked is None or not asked.follower_id:
        return
    follows = backfill["children"] != "none"
    for instant in story.instants_of[backfill["id"]]:
        rounds = [
            row
            for attempts in runs[instant["id"]].values()
            for chain in {(attempts[0]["chain"] or 0) if attempts else 0}
            for row in story.rounds_of.get((instant["logical_ms"], chain), ())
        ]
        started = {row["id"] for row in rounds if row["state"] == "started"}
        has_succeeded = instant["state"] == SUCCEEDED
        if bool(started) != (follows and has_succeeded):
            story.problem(backfill, f"rounds {rounds} of {dict(instant)}")
        if any(row["state"] == "open" for row in rounds):
            story.problem(backfill, f"open rounds {rounds} of {dict(instant)}")
        for chain in runs[instant["id"]].values():
            for run in chain:
                children = [each for each in story.successors[run["id"]] if each["trigger_type"] == "PARENT"]
                if len(children) != (follows and run["handle_code"] == 200):
                    story.problem(backfill, f"{len(children)} children of {dict(run)}")
                story.counts["children"] += len(children)
        followers = Counter(run["round_id"] for run in story.runs if run["round_id"] in started)
        story.counts["followers"] += followers.total()


CHECKS: Sequence[Callable[[Story, Row, Runs], None]] = (
    _check_list,
    _check_results,
    _check_order,
    _check_silence,
    _check_followers,
)
