"""Checker of blackouts: compares what ran with the blackouts and the calendar that the tables have.

Windows and instants come from an evaluator of its own; the program's rules and plans are not used.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Engine, select

from app.models.calendar import BlackoutJob, CalendarVersion, JobBlackout
from app.models.log import JobLog
from app.models.skip import Skip
from tests.domain.cron.brute import quartz_fires

#: a claim may be so much later than the beginning of a blackout of which it could not know yet
GRACE_MS = 1_000
#: an instant from before a blackout may start if it is not later than this, and its claim takes a while
LET_THROUGH_MS = 60_000 + GRACE_MS
#: `trigger_time` is in whole seconds
SECOND_MS = 1_000
SCHEDULED = ("CRON", "MISFIRE")
HOLIDAY = "holiday"
ENDLESS = 2**62

Window = tuple[int, int]
Row = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A job of the scenario."""

    job_id: int
    group_id: int
    #: its expression; empty: it has another schedule, whose instants are not counted here
    cron: str
    #: from when until when its schedule was on for certain
    since_ms: int
    until_ms: int
    #: it runs on these days only; empty: it has no calendar
    on: str = ""


class Closure(NamedTuple):
    """Time that blackouts cover without a gap."""

    from_ms: int
    until_ms: int
    runs_once: bool


@dataclass
class Story:
    """All records of a harness run."""

    subjects: Sequence[Subject]
    blackouts: Sequence[Row]
    members: Sequence[Row]
    versions: Sequence[Row]
    runs: Sequence[Row]
    skips: Sequence[Row]
    #: blackout id -> when it was first seen, which is after its commit
    seen_ms: Mapping[int, int]
    #: keys of the triggers that were forced
    forced: set[int]
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(
        cls, engine: Engine, subjects: Sequence[Subject], seen_ms: Mapping[int, int], forced: set[int]
    ) -> "Story":
        """Read it from the database."""
        columns = (
            JobLog.id,
            JobLog.job_id,
            JobLog.fire_time,
            JobLog.logical_ms,
            JobLog.trigger_time,
            JobLog.trigger_type,
            JobLog.trigger_key,
            JobLog.trigger_msg,
        )
        tables = (JobBlackout, BlackoutJob, CalendarVersion, JobLog, Skip)
        queries = [select(*(columns if table is JobLog else table.__table__.columns)) for table in tables]
        with engine.connect() as connection:
            blackouts, members, versions, runs, skips = (
                [dict(row) for row in connection.execute(query).mappings()] for query in queries
            )
        return cls(subjects, blackouts, members, versions, runs, skips, seen_ms, forced)

    @cached_property
    def runs_of(self) -> dict[int, list[Row]]:
        """Job id -> its runs."""
        runs = defaultdict(list)
        for run in self.runs:
            runs[run["job_id"]].append(run)
        return runs

    def windows(self, subject: Subject) -> Iterator[tuple[int, int, Row]]:
        """Yield the times in which blackouts of a job are on, and those blackouts."""
        for row in self.blackouts:
            if (row["job_id"] or subject.job_id) != subject.job_id:
                continue
            if (row["group_id"] or subject.group_id) != subject.group_id:
                continue
            for from_ms, until_ms in self._times(row, subject):
                if from_ms < until_ms:
                    yield from_ms, until_ms, row

    def _times(self, row: Row, subject: Subject) -> Iterator[Window]:
        parts = [(0, ENDLESS)]
        if row["tag"]:
            parts = [
                (member["from_ms"], ENDLESS if member["until_ms"] is None else member["until_ms"])
                for member in self.members
                if (member["blackout_id"], member["job_id"]) == (row["id"], subject.job_id)
            ]
        until_ms = ENDLESS if row["until_ms"] is None else row["until_ms"]
        for part_ms, end_ms in parts:
            for begin_ms, over_ms in self._windows(row, min(until_ms, subject.until_ms)):
                yield max(begin_ms, row["from_ms"], part_ms), min(over_ms, until_ms, end_ms)

    def _windows(self, row: Row, last_ms: int) -> list[Window]:
        if not row["cron"]:
            return [(row["from_ms"], ENDLESS)]
        length_ms = row["duration_s"] * 1_000
        begins = quartz_fires(row["cron"], ZoneInfo(row["zone"]), row["from_ms"] - length_ms - 1, last_ms)
        return [(begin_ms, begin_ms + length_ms) for begin_ms in begins]

    def closures(self, subject: Subject) -> list[Closure]:
        """Return the times that blackouts of a job cover without a gap, ascending."""
        found: list[Closure] = []
        for from_ms, until_ms, row in sorted(self.windows(subject), key=lambda window: window[:2]):
            runs_once = row["afterwards"] == "run_once"
            if found and from_ms <= found[-1].until_ms:
                last = found.pop()
                found.append(Closure(last.from_ms, max(last.until_ms, until_ms), last.runs_once or runs_once))
            else:
                found.append(Closure(from_ms, until_ms, runs_once))
        return found

    def is_allowed(self, subject: Subject, at_ms: int) -> bool:
        """Whether a job runs on the day by the version of the calendar that holds then."""
        held = [row for row in self.versions if row["from_ms"] <= at_ms]
        if not subject.on or not held:
            return True
        is_holiday = HOLIDAY in max(held, key=lambda row: (row["from_ms"], row["id"]))["days"]
        return is_holiday == (subject.on == "holidays")

    def is_skipped(self, subject: Subject, at_ms: int) -> bool:
        """Whether a recorded skip of another reason than these rules covers an instant."""
        return any(
            skip["from_ms"] <= at_ms <= skip["to_ms"]
            for skip in self.skips
            if skip["job_id"] == subject.job_id and skip["reason"] not in ("blackout", "calendar")
        )

    def note(self, problem: str, subject: Subject, row: object) -> None:
        self.problems.append(f"{problem}: job {subject.job_id} {subject.cron} {row}")


def check_blackouts(story: Story) -> None:
    """Note every run that a blackout or the calendar should have kept back, and every one that is missing."""
    for subject in story.subjects:
        closures = story.closures(subject)
        story.counts["closures"] += len(closures)
        for run in story.runs_of[subject.job_id]:
            if run["trigger_type"] in SCHEDULED:
                _check_due(story, subject, closures, run)
            _check_claim(story, subject, run)
        if subject.cron:
            _check_instants(story, subject, closures)
            _check_run_once(story, subject, closures)


def _check_due(story: Story, subject: Subject, closures: Sequence[Closure], run: Row) -> None:
    """No run of a schedule has a due time within a blackout, or on a day that the calendar leaves out."""
    due_ms = run["fire_time"]
    story.counts["scheduled"] += 1
    if any(each.from_ms <= due_ms < each.until_ms for each in closures):
        story.note("due within a blackout", subject, run)
    if run["trigger_type"] == "CRON" and not story.is_allowed(subject, due_ms):
        story.note("due on a day without runs", subject, run)


def _check_claim(story: Story, subject: Subject, run: Row) -> None:
    """Nothing else has started within a blackout, unless a user has forced it."""
    began_ms = run["trigger_time"]
    is_scheduled = run["trigger_type"] == "CRON"
    if not is_scheduled and (run["trigger_type"] == "MANUAL" and run["trigger_key"] in story.forced):
        story.counts["forced"] += 1
        return
    story.counts["others"] += not is_scheduled
    for from_ms, until_ms, row in story.windows(subject):
        known_ms = max(from_ms, story.seen_ms.get(row["id"], ENDLESS)) + GRACE_MS
        if not known_ms <= began_ms <= until_ms - SECOND_MS:
            continue
        if not is_scheduled or began_ms - run["fire_time"] > LET_THROUGH_MS:
            story.note(f"began within blackout {row['id']} of {from_ms} to {until_ms}", subject, run)


def _check_instants(story: Story, subject: Subject, closures: Sequence[Closure]) -> None:
    """Each instant that nothing excludes has one run or one skip."""
    runs = Counter(
        run["fire_time"] for run in story.runs_of[subject.job_id] if run["trigger_type"] in SCHEDULED
    )
    for at_ms in quartz_fires(subject.cron, ZoneInfo("UTC"), subject.since_ms, subject.until_ms):
        is_covered = any(each.from_ms <= at_ms < each.until_ms for each in closures)
        if is_covered or not story.is_allowed(subject, at_ms):
            story.counts["excluded"] += 1
            continue
        story.counts["expected"] += 1
        if runs[at_ms] > 1:
            story.note(f"{runs[at_ms]} runs", subject, at_ms)
        if not runs[at_ms] and not story.is_skipped(subject, at_ms):
            story.note("missing", subject, at_ms)


def _check_run_once(story: Story, subject: Subject, closures: Sequence[Closure]) -> None:
    """At the end of blackouts the latest instant that they have covered runs once, or is skipped once."""
    ends = {}
    for closure in closures:
        if not closure.runs_once or closure.until_ms >= subject.until_ms:
            continue
        first_ms = max(closure.from_ms - 1, subject.since_ms)
        covered = quartz_fires(subject.cron, ZoneInfo("UTC"), first_ms, closure.until_ms - 1)
        # The calendar is asked at the end, and says the same of all days of the scenario.
        if covered and story.is_allowed(subject, closure.until_ms):
            ends[closure.until_ms] = covered[-1]
    runs = [run for run in story.runs_of[subject.job_id] if run["trigger_type"] == "MISFIRE"]
    for end_ms, logical_ms in ends.items():
        count = sum(
            run["fire_time"] in (end_ms, end_ms + 1) and run["logical_ms"] == logical_ms for run in runs
        )
        story.counts["ends"] += 1
        story.counts["run_once"] += count
        is_skipped = story.is_skipped(subject, end_ms) or story.is_skipped(subject, end_ms + 1)
        if count > 1 or (not count and not is_skipped):
            story.note(f"{count} runs of {logical_ms} at the end of a blackout", subject, end_ms)
    times = {end_ms + later for end_ms in ends for later in (0, 1)}
    for run in runs:
        is_within = subject.since_ms < run["fire_time"] < subject.until_ms
        is_late = run["logical_ms"] not in (None, run["fire_time"])
        if is_within and is_late and run["fire_time"] not in times:
            story.note("a late run at no end of a blackout", subject, run)
