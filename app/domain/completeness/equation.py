"""Equation of completeness: what became of each expected instant, and the numbers that follow.

expected = on time + late + not started + skipped + waiting + unexplained. Each instant has one term.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from app.clock import SECOND_MS, Millis
from app.domain.completeness.expected_instants import Interval, expected_instants, find_exclusions
from app.domain.completeness.rule_instants import BLACKOUT, CALENDAR, Exclusion
from app.domain.completeness.spans import Span, in_order
from app.domain.enums import EndReason, NotStarted, ScheduleType
from app.domain.schedules.schedule import next_after_ms
from app.errors import InvalidInput

#: a run sent up to this long after its instant is on time
ON_TIME_MS: Final[Millis] = 1_000
#: a run of a Java admin stands for the instant that it began so long after at most
JAVA_MS: Final[Millis] = 60_000
#: a fixed delay is overdue so long after its next run was due
OVERDUE_MS: Final[Millis] = 60_000
#: reason of instants whose fires went with their job
DELETED: Final = "deleted"
#: reason of instants that no scheduler has looked for yet
SCHEDULER: Final = "scheduler"


class Term(StrEnum):
    """Summand of the equation."""

    ON_TIME = "on_time"
    LATE = "late"
    NOT_STARTED = "not_started"
    SKIPPED = "skipped"
    WAITING = "waiting"
    UNEXPLAINED = "unexplained"


class Outcome(StrEnum):
    """How the last run for an instant ended."""

    FINISHED = "finished"
    FAILED = "failed"
    UNRESOLVED = "unresolved"
    RUNNING = "running"


class InstantRuns(NamedTuple):
    """Scheduled runs of one instant, with their retries."""

    term: Term
    outcome: Outcome
    #: of one of them
    log_id: int
    #: NotStarted; empty: an executor has taken one
    not_started: str = ""
    #: how many the schedule has started; the shards of a broadcast are one
    start_count: int = 1


class SkippedTimes(NamedTuple):
    """Instants that were skipped, both ends inclusive."""

    from_ms: Millis
    to_ms: Millis
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the database has on the instants of one job."""

    runs: Mapping[Millis, InstantRuns] = field(default_factory=dict)
    #: instants of fires without a run
    waiting: Collection[Millis] = ()
    skips: Sequence[SkippedTimes] = ()
    #: when runs of a Java admin began, ascending
    java: Sequence[Millis] = ()
    #: of a fixed delay that has neither a fire nor an open run: when its last run ended; None: it has one
    idle_since_ms: Millis | None = None
    #: term, or term and reason as ``skipped:misfire`` -> number of instants whose rows were deleted
    deleted_runs: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Numbers of instants, and of the runs for them."""

    expected: int = 0
    on_time: int = 0
    late: int = 0
    #: by NotStarted
    not_started: Counter[str] = field(default_factory=Counter)
    #: by reason of the skip
    skipped: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    unexplained: int = 0
    #: scheduled runs of instants that were not expected, or that had one already
    unexpected: int = 0
    #: scheduled runs from before the history of their job
    unknown: int = 0
    #: instants of which a Java admin started the run; they are on time or late, too
    java: int = 0
    finished: int = 0
    failed: int = 0
    unresolved: int = 0
    running: int = 0

    def add(self, other: Self) -> None:
        """Add the numbers of another tally."""
        for member in fields(self):
            value = getattr(self, member.name)
            if isinstance(value, Counter):
                value.update(getattr(other, member.name))
            else:
                setattr(self, member.name, value + getattr(other, member.name))

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name, those by reason in the order of the reasons.

        ``dataclasses.asdict`` counts the items of a Counter.
        """
        numbers = {member.name: getattr(self, member.name) for member in fields(self)}
        return {
            name: dict(sorted(value.items())) if isinstance(value, Counter) else value
            for name, value in numbers.items()
        }

    @property
    def excluded(self) -> int:
        """Instants that a calendar or a blackout excludes, if their reasons are known."""
        return self.skipped.get(CALENDAR, 0) + self.skipped.get(BLACKOUT, 0)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is unexplained, and nothing ran that should not have."""
        return not self.unexplained and not self.unexpected


def tally_of(numbers: Mapping[str, Any]) -> Tally:
    """Return a tally from its numbers by name; other names are ignored."""
    tally = Tally()
    for member in fields(tally):
        if member.name in numbers:
            value = numbers[member.name]
            setattr(tally, member.name, Counter(value) if isinstance(value, Mapping) else value)
    return tally


class Irregular(NamedTuple):
    """An instant that was not on time."""

    instant: Millis
    term: Term
    reason: str
    #: 0: there is no run
    log_id: int


@dataclass(frozen=True, slots=True)
class Account:
    """Tally of a job in an interval, and the instants that were not on time."""

    tally: Tally
    irregular: Sequence[Irregular]
    #: earliest instant that waits or whose last run is open; None: there is none
    open_ms: Millis | None = None
    #: what is left of ``Evidence.removed``
    deleted_runs: Mapping[str, int] = field(default_factory=dict)
    #: instants that a calendar or a blackout excludes; they are no irregular ones
    exclusions: Sequence[Exclusion] = ()


def account(spans: Sequence[Span], evidence: Evidence, interval: Interval, *, scanned_ms: Millis) -> Account:
    """Give each instant that was expected of a job in an interval its term.

    ``spans``: its history in the order of writing. ``scanned_ms``: up to there a scheduler has looked for due
    instants.
    """
    spans = in_order(spans)
    instants = sorted({*expected_instants(spans, interval), *_of_delays(spans, evidence, interval)})
    left_out = list(find_exclusions(spans, interval))
    tally, irregular = Tally(expected=len(instants)), list[Irregular]()
    for part in left_out:
        tally.expected += len(part.instants)
        tally.skipped[part.reason] += len(part.instants)
    skips, java = _Skips(evidence.skips), _JavaRuns(evidence.java)
    deleted_until_ms, deleted_runs = _deleted_until(spans), Counter(evidence.deleted_runs)
    for instant in instants:
        runs = evidence.runs.get(instant)
        term, reason = Term.UNEXPLAINED, ""
        if runs is not None:
            term, reason = runs.term, runs.not_started
        elif instant in evidence.waiting:
            term = Term.WAITING
        elif skip_reason := skips.reason_of(instant):
            term, reason = Term.SKIPPED, skip_reason
        elif (late_ms := java.take(instant)) is not None:
            term = Term.ON_TIME if late_ms <= ON_TIME_MS else Term.LATE
            tally.java += 1
        elif deleted_runs:
            term, reason = _take(deleted_runs)
        elif instant <= deleted_until_ms:
            term, reason = Term.SKIPPED, DELETED
        elif instant > scanned_ms:
            term, reason = Term.WAITING, SCHEDULER
        _count(tally, term, reason)
        if term is not Term.ON_TIME:
            irregular.append(Irregular(instant, term, reason, runs.log_id if runs is not None else 0))
    _count_runs(tally, evidence, interval, frozenset(instants), spans)
    waiting = [entry.instant for entry in irregular if entry.term is Term.WAITING]
    open_runs = (
        instant
        for instant in instants
        if (runs := evidence.runs.get(instant)) and runs.outcome is Outcome.RUNNING
    )
    return Account(tally, irregular, min([*waiting, *open_runs], default=None), deleted_runs, left_out)


def key_of(term: Term, reason: str) -> str:
    """Return a term, with its reason if it has one, as numbers of deleted rows name it."""
    return f"{term}:{reason}" if term in (Term.NOT_STARTED, Term.SKIPPED) else term.value


def _take(deleted_runs: Counter[str]) -> tuple[Term, str]:
    """Take the term of one instant whose row was deleted."""
    key = next(iter(deleted_runs))
    deleted_runs[key] -= 1
    if deleted_runs[key] <= 0:
        del deleted_runs[key]
    term, _, reason = key.partition(":")
    return Term(term), reason


def _count(tally: Tally, term: Term, reason: str) -> None:
    match term:
        case Term.ON_TIME:
            tally.on_time += 1
        case Term.LATE:
            tally.late += 1
        case Term.NOT_STARTED:
            tally.not_started[reason or NotStarted.REFUSED] += 1
        case Term.SKIPPED:
            tally.skipped[reason] += 1
        case Term.WAITING:
            tally.waiting += 1
        case Term.UNEXPLAINED:
            tally.unexplained += 1


def _count_runs(
    tally: Tally, evidence: Evidence, interval: Interval, instants: Collection[Millis], spans: Sequence[Span]
) -> None:
    """Count the outcomes of the instants' runs, and the runs that were not expected."""
    known_ms = spans[0].from_ms if spans else interval.until_ms
    for instant, runs in evidence.runs.items():
        if not interval.from_ms <= instant < interval.until_ms:
            continue
        if instant in instants:
            name = runs.outcome.value
            setattr(tally, name, getattr(tally, name) + 1)
            tally.unexpected += runs.start_count - 1
        elif instant <= known_ms:
            tally.unknown += 1
        else:
            tally.unexpected += runs.start_count


def _of_delays(spans: Sequence[Span], evidence: Evidence, interval: Interval) -> set[Millis]:
    """Return the instants of a fixed delay: those that there is anything of, and one that is overdue."""
    delays = [span for span in spans if span.is_on and span.schedule.type is ScheduleType.FIX_DELAY]
    if not delays:
        return set()
    present = {*evidence.runs, *evidence.waiting}
    present |= {instant for skip in evidence.skips for instant in (skip.from_ms, skip.to_ms)}
    last = delays[-1]
    if last.until_ms is None and evidence.idle_since_ms is not None:
        present |= _overdue(last, evidence.idle_since_ms, interval)
    return {
        instant
        for instant in present
        if interval.from_ms <= instant < interval.until_ms and any(span.covers(instant) for span in delays)
    }


def _overdue(span: Span, idle_since_ms: Millis, interval: Interval) -> set[Millis]:
    try:
        due_ms = next_after_ms(span.schedule, max(idle_since_ms, span.from_ms))
    except (ValueError, InvalidInput):
        return set()
    return set() if due_ms is None or due_ms + OVERDUE_MS >= interval.until_ms else {due_ms}


def _deleted_until(spans: Sequence[Span]) -> Millis:
    """Return up to which instant fires went with their job; 0: it is still there."""
    last = spans[-1] if spans else None
    if last is None or last.until_ms is None or last.end_reason != EndReason.DELETED:
        return 0
    return last.until_ms


class _Skips:
    """Skips of a job, asked for ascending instants."""

    def __init__(self, skips: Sequence[SkippedTimes]) -> None:
        self._skips = sorted(skips)
        self._next = 0
        self._open: list[SkippedTimes] = []

    def reason_of(self, instant: Millis) -> str:
        """Return why an instant was skipped; empty: it was not."""
        while self._next < len(self._skips) and self._skips[self._next].from_ms <= instant:
            self._open.append(self._skips[self._next])
            self._next += 1
        self._open = [skip for skip in self._open if skip.to_ms >= instant]
        return self._open[0].reason if self._open else ""


class _JavaRuns:
    """Runs of a Java admin, each of which stands for one of ascending instants."""

    def __init__(self, began: Sequence[Millis]) -> None:
        self._began = began
        self._next = 0

    def take(self, instant: Millis) -> Millis | None:
        """Return how late the first run began that is left for an instant; None: there is none."""
        second_ms = instant // SECOND_MS * SECOND_MS
        while self._next < len(self._began) and self._began[self._next] < second_ms:
            self._next += 1
        if self._next == len(self._began) or self._began[self._next] > instant + JAVA_MS:
            return None
        began_ms = self._began[self._next]
        self._next += 1
        return max(0, began_ms - instant)
