"""Checker: compares what happened with what should have, for the fault harness and the acceptance tests.

Expected instants come from an independent evaluator (tests/domain/cron/brute.py), starts from the executors'
journals, rows and skips from the database. The product's own plans are not used.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from tests.domain.cron.brute import quartz_fires

#: an instant scanned later than this is a misfire
MISFIRE_MS = 5_000
#: difference of the clock read by two processes of one machine
CLOCK_MS = 2
#: trigger code of an unresolved run
UNRESOLVED = 504
#: findings listed per kind
LISTED_MAX = 20


@dataclass(frozen=True)
class Watched:
    """A job whose schedule was switched on within ``start`` and off within ``stop``.

    Each is the clock before the request and after the answer.
    """

    job_id: int
    schedule_type: str
    schedule_conf: str
    start: tuple[int, int]
    stop: tuple[int, int]
    misfire: str = "DO_NOTHING"
    time_zone: str = "UTC"
    child_ids: tuple[int, ...] = ()
    #: one row per shard
    shards: int = 1
    #: the same log id may start again after a fault
    may_repeat: bool = False


@dataclass(frozen=True)
class Row:
    """A log row; ``instant`` None: triggered manually, by a parent or as a retry."""

    log_id: int
    job_id: int
    instant: int | None
    trigger_code: int
    handle_code: int
    shard: str | None = None
    retries_left: int = 0

    @property
    def is_final(self) -> bool:
        return self.handle_code != 0 or self.trigger_code not in (0, 200)

    @property
    def has_failed(self) -> bool:
        return self.is_final and self.handle_code != 200

    @property
    def may_retry(self) -> bool:
        """Whether it failed for certain: an unresolved run may have succeeded."""
        return self.has_failed and (self.trigger_code != UNRESOLVED or self.handle_code != 0)


@dataclass(frozen=True)
class Skip:
    """Instants the product recorded as skipped."""

    job_id: int
    from_ms: int
    to_ms: int
    count: int
    reason: str
    recorded_ms: int


@dataclass(frozen=True)
class Event:
    """A line of an executor's journal."""

    event: str
    log_id: int
    job_id: int
    wall_ms: int
    boot: str = ""
    code: int = 0


@dataclass(frozen=True)
class History:
    """All records of a harness run."""

    jobs: Sequence[Watched]
    rows: Sequence[Row]
    skips: Sequence[Skip] = ()
    events: Sequence[Event] = ()
    #: log ids with an alarm
    alarms: Sequence[int] = ()


@dataclass
class Findings:
    """Problems by kind; all lists are empty if all is well."""

    counts: dict[str, int] = field(default_factory=dict)
    #: (job, instant) due, with neither a row nor a skip
    missing: list[Any] = field(default_factory=list)
    #: (job, instant, shard) with more than one row, or with a row and a skip
    doubled: list[Any] = field(default_factory=list)
    #: (job, instant) with a row that no schedule explains
    unexpected: list[Any] = field(default_factory=list)
    #: log ids received before their instant
    early: list[Any] = field(default_factory=list)
    #: skips with a wrong count or recorded too early
    wrong_skips: list[Any] = field(default_factory=list)
    #: log ids that started more than once
    started_twice: list[Any] = field(default_factory=list)
    #: log ids of a journal that the log lacks
    unknown_starts: list[Any] = field(default_factory=list)
    #: log ids without an end
    unfinished: list[Any] = field(default_factory=list)
    #: log ids whose row has another result than the executor reported
    wrong_results: list[Any] = field(default_factory=list)
    #: missing or superfluous children, retries and alarms
    successors: list[Any] = field(default_factory=list)
    #: further conditions of a scenario that were violated
    violations: list[Any] = field(default_factory=list)

    @property
    def problems(self) -> dict[str, int]:
        """Number of findings per kind; empty if all is well."""
        return {name: len(found) for name, found in asdict(self).items() if name != "counts" and found}

    def report(self) -> dict[str, Any]:
        """Return counts and the first findings of each kind."""
        listed = {
            name: found[:LISTED_MAX] for name, found in asdict(self).items() if name != "counts" and found
        }
        return {"counts": self.counts, "problems": self.problems, **listed}


def check(history: History) -> Findings:
    """Judge a history."""
    found = Findings()
    for job in history.jobs:
        rows = [row for row in history.rows if row.job_id == job.job_id]
        _check_instants(job, rows, [skip for skip in history.skips if skip.job_id == job.job_id], found)
        _check_successors(job, history, rows, found)
    _check_starts(history, found)
    _check_ends(history, found)
    _check_alarms(history, found)
    found.counts |= {
        "rows": len(history.rows),
        "skips": sum(skip.count for skip in history.skips),
        "starts": sum(event.event == "start" for event in history.events),
    }
    return found


def instants(job: Watched, first: int | None, after_ms: int, until_ms: int) -> list[int]:
    """Return the instants in ``(after, until]``; a fixed rate counts from ``first``, the earliest known."""
    if job.schedule_type == "CRON":
        return quartz_fires(job.schedule_conf, ZoneInfo(job.time_zone), after_ms, until_ms)
    period_ms = int(job.schedule_conf) * 1000
    begin = first if first is not None else job.start[1] + period_ms
    steps = max(0, (after_ms - begin) // period_ms + 1) if after_ms >= begin else 0
    return list(range(begin + steps * period_ms, until_ms + 1, period_ms))


def _check_instants(job: Watched, rows: Sequence[Row], skips: Sequence[Skip], found: Findings) -> None:
    scheduled = Counter((row.instant, row.shard) for row in rows if row.instant is not None)
    fired = {instant for instant, _ in scheduled}
    known = [*fired, *(skip.from_ms for skip in skips)]
    first = min(known, default=None)
    if job.schedule_type == "FIX_RATE" and first is not None and not _rate_starts_well(job, first):
        found.unexpected.append((job.job_id, first))
    possible = set(instants(job, first, job.start[0], job.stop[1]))
    certain = {instant for instant in possible if job.start[1] < instant <= job.stop[0]}
    found.counts["expected"] = found.counts.get("expected", 0) + len(certain)
    skipped = _check_skips(job, skips, possible, fired, found)
    found.missing += [(job.job_id, instant) for instant in sorted(certain - fired - skipped)]
    found.unexpected += [(job.job_id, instant) for instant in sorted(fired - possible)]
    found.doubled += [(job.job_id, *key) for key, count in scheduled.items() if count > 1]
    if job.shards > 1:
        every = {(instant, f"{index}/{job.shards}") for instant in fired for index in range(job.shards)}
        found.missing += [(job.job_id, *key) for key in sorted(every - set(scheduled))]
    else:
        complete = Counter(row.instant for row in rows if row.instant is not None)
        found.doubled += [
            (job.job_id, instant)
            for instant, count in complete.items()
            if count > 1 and scheduled[instant, None] < 2
        ]


def _rate_starts_well(job: Watched, first: int) -> bool:
    period_ms = int(job.schedule_conf) * 1000
    return job.start[0] + period_ms <= first <= job.start[1] + period_ms


def _check_skips(
    job: Watched, skips: Iterable[Skip], possible: set[int], fired: set[int], found: Findings
) -> set[int]:
    """Return the skipped instants; a skip must count exactly the instants from its first to its last."""
    skipped: set[int] = set()
    for skip in skips:
        inside = {instant for instant in possible if skip.from_ms <= instant <= skip.to_ms}
        found.doubled += [(job.job_id, instant, "skip") for instant in sorted(inside & (fired | skipped))]
        hasty = skip.reason == "misfire" and skip.recorded_ms - skip.from_ms <= MISFIRE_MS
        if len(inside) != skip.count or hasty:
            found.wrong_skips.append(
                (job.job_id, skip.from_ms, skip.to_ms, skip.count, skip.reason, skip.recorded_ms)
            )
        skipped |= inside
    return skipped


def _check_successors(job: Watched, history: History, rows: Sequence[Row], found: Findings) -> None:
    """Each success needs one run of each child, each failure with retries left one retry with one less."""
    for child_id in job.child_ids:
        runs = sum(row.job_id == child_id and row.instant is None for row in history.rows)
        parent_ids = {other.job_id for other in history.jobs if child_id in other.child_ids}
        parents = sum(row.job_id in parent_ids and row.handle_code == 200 for row in history.rows)
        if runs != parents:
            found.successors.append(
                (job.job_id, f"{runs} runs of child {child_id}, {parents} successes of its parents")
            )
    for left in {row.retries_left for row in rows if row.retries_left > 0}:
        failed = sum(row.retries_left == left and row.may_retry for row in rows)
        retried = sum(row.retries_left == left - 1 and row.instant is None for row in rows)
        if failed != retried:
            found.successors.append(
                (job.job_id, f"{retried} retries of {failed} failures with {left} retries left")
            )


def _check_starts(history: History, found: Findings) -> None:
    rows = {row.log_id: row for row in history.rows}
    repeating = {job.job_id for job in history.jobs if job.may_repeat}
    starts = Counter(
        event.log_id for event in history.events if event.event == "start" and event.job_id not in repeating
    )
    found.started_twice += [(log_id, count) for log_id, count in starts.items() if count > 1]
    for event in history.events:
        row = rows.get(event.log_id)
        if event.event not in ("recv", "start"):
            continue
        if row is None:
            found.unknown_starts.append(event.log_id)
        elif row.instant is not None and event.wall_ms < row.instant - CLOCK_MS:
            found.early.append((event.log_id, event.event, event.wall_ms - row.instant))


def _check_ends(history: History, found: Findings) -> None:
    ends: dict[int, set[int]] = defaultdict(set)
    for event in history.events:
        if event.event == "finish":
            ends[event.log_id].add(event.code)
    acknowledged = {event.log_id for event in history.events if event.event == "acked"}
    for row in history.rows:
        if not row.is_final:
            found.unfinished.append(row.log_id)
        elif row.log_id in acknowledged and row.handle_code not in ends[row.log_id]:
            found.wrong_results.append(
                (row.log_id, row.trigger_code, row.handle_code, sorted(ends[row.log_id]))
            )


def _check_alarms(history: History, found: Findings) -> None:
    alarms = Counter(history.alarms)
    failed = {row.log_id for row in history.rows if row.has_failed}
    found.successors += [(log_id, f"{count} alarms") for log_id, count in alarms.items() if count > 1]
    found.successors += [(log_id, "failed without an alarm") for log_id in sorted(failed - set(alarms))]
