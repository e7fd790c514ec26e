"""Promises of a job: their kinds, the defaults of its group, and by when an instant has to keep one.

docs/reference/promises.md. ``app.domain.promises.document`` has their form in JSON and its limits.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from app.clock import DAY_MS, SECOND_MS, Millis
from app.domain.enums import PromiseKind, ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms, zone

#: promises of one job, its group's defaults included
PROMISES_MAX: Final = 10
#: judged at a time that follows from an instant of the schedule
INSTANT_KINDS: Final = frozenset(
    {PromiseKind.STARTS_WITHIN, PromiseKind.FINISHES_WITHIN, PromiseKind.FINISHES_BY}
)
#: judged while a run is in progress, too
RUNNING_KINDS: Final = frozenset({PromiseKind.TAKES_AT_MOST, PromiseKind.TAKES_USUAL_TIMES})
#: judged when a run ends
END_KINDS: Final = RUNNING_KINDS | {PromiseKind.TAKES_AT_LEAST, PromiseKind.FAILS_AT_MOST}
#: their jobs have no instants that follow from the schedule alone
WITHOUT_INSTANTS: Final = frozenset({ScheduleType.NONE, ScheduleType.FIX_DELAY})
#: kind -> member with its number; that of the others is ``s``
_MEMBER_OF: Final = {
    PromiseKind.FINISHES_BY: "at",
    PromiseKind.TAKES_USUAL_TIMES: "times",
    PromiseKind.FAILS_AT_MOST: "n",
}
ALARM: Final = "alarm"
#: wall-clock time, perhaps of a later day
CLOCK: Final = re.compile(r"^([01]\d|2[0-3]):[0-5]\d(\+[1-9]d)?$")
SWITCH_OFF: Final = "switch_off"
#: seconds of a promise, a year; multiple of the usual duration, and failures in a row
SECONDS_MAX: Final = 366 * 86_400
NUMBER_MAX: Final = 1_000
#: minutes until an escalation, a week
ESCALATION_MAX: Final = 10_080


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise; which of its numbers counts depends on the kind."""

    kind: PromiseKind
    #: seconds
    s: int = 0
    #: wall-clock time ``06:00``, or ``06:00+1d`` of a later day
    at: str = ""
    #: multiple of the usual duration
    times: float = 0
    #: failures in a row
    n: int = 0
    #: ``alarm``, or ``switch_off`` as well
    then: str = ALARM

    def __post_init__(self) -> None:
        """Refuse what another program may have stored: one such job must not stop the planning of all."""
        numbers = ((self.s, SECONDS_MAX), (self.n, NUMBER_MAX), (self.times, NUMBER_MAX))
        if not all(isinstance(number, int | float) and 0 <= number <= most for number, most in numbers):
            raise ValueError("a number of this range is expected")
        if self.then not in (ALARM, SWITCH_OFF):
            raise ValueError("what follows is not known")
        is_clock = isinstance(self.at, str) and CLOCK.fullmatch(self.at) is not None
        if not is_clock and (self.at != "" or self.kind is PromiseKind.FINISHES_BY):
            raise ValueError("a wall-clock time is expected")

    @property
    def definition(self) -> str:
        """The promise as JSON text, by which a stored one is recognised."""
        return _definition(self)

    @property
    def members(self) -> dict[str, Any]:
        """The promise as jobs and answers have it: the number of its kind, and what follows."""
        name = member_of(self.kind)
        return {"kind": self.kind.value, name: getattr(self, name), "then": self.then}

    @property
    def limit_ms(self) -> Millis:
        """Its seconds, in milliseconds."""
        return self.s * SECOND_MS


def member_of(kind: PromiseKind) -> str:
    """Return the member that has the number of a kind, such as ``s``."""
    return _MEMBER_OF.get(kind, "s")


@lru_cache(maxsize=4_096)
def _definition(promise: Promise) -> str:
    members = {name: value for name, value in asdict(promise).items() if value not in (0, "", ALARM)}
    return json.dumps(members, separators=(",", ":"))


def promise_of(members: dict[str, Any]) -> Promise:
    """Return a promise from its valid JSON value."""
    return Promise(**{**members, "kind": PromiseKind(members["kind"])})


@lru_cache(maxsize=4_096)
def read_promises(text: str | None) -> tuple[Promise, ...]:
    """Return the promises of a stored JSON text; null, and what another program has stored: none."""
    try:
        return tuple(map(promise_of, json.loads(text or "[]")))
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()


def find_promise(definition: str) -> Promise | None:
    """Return a promise from its definition; None for what another program has stored."""
    return next(iter(read_promises(f"[{definition}]")), None)


def read_kinds(text: str) -> dict[str, dict[str, Any]]:
    """Return number -> JSON value of the promises of an incident, without what another program has stored."""
    try:
        kinds = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(kinds, dict):
        return {}
    return {
        number: members
        for number, members in kinds.items()
        if number.isdecimal() and find_promise(json.dumps(members)) is not None
    }


@dataclass(frozen=True, slots=True)
class Escalation:
    """Further channel for incidents that are not acknowledged."""

    #: name of an alarm channel
    channel: str
    after_minutes: int

    def __post_init__(self) -> None:
        """Refuse what another program may have stored: one such job must not stop the evaluation of all."""
        if not isinstance(self.channel, str) or not isinstance(self.after_minutes, int):
            raise TypeError("a name and a number are expected")
        if not 0 <= self.after_minutes <= ESCALATION_MAX:
            raise ValueError("a number of this range is expected")


def read_escalation(text: str | None) -> Escalation | None:
    """Return the escalation of a stored JSON text; null, and what another program has stored: none."""
    try:
        members = json.loads(text or "null")
        return Escalation(**members) if members else None
    except (ValueError, TypeError, RecursionError):
        return None


def applies(kind: PromiseKind, schedule_type: str) -> bool:
    """Whether a job with this schedule may have a promise of a kind."""
    return schedule_type not in WITHOUT_INSTANTS or kind not in INSTANT_KINDS


@lru_cache(maxsize=4_096)
def effective_promises(own: str | None, of_group: str | None, schedule_type: str) -> tuple[Promise, ...]:
    """Return the promises that hold for a job: its own, and its group's of the kinds it has none of.

    ``own`` and ``of_group``: as stored. Defaults that the schedule cannot have are left out.
    """
    promises = read_promises(own)
    applicable = [promise for promise in promises if applies(promise.kind, schedule_type)]
    applicable += group_defaults(promises, of_group, schedule_type)
    return tuple(dict.fromkeys(applicable))[:PROMISES_MAX]


def group_defaults(own: Iterable[Promise], of_group: str | None, schedule_type: str) -> list[Promise]:
    """Return the promises of a group that hold for a job: of kinds that it has none of, and may have."""
    own_kinds = {promise.kind for promise in own}
    return [
        promise
        for promise in read_promises(of_group)
        if promise.kind not in own_kinds and applies(promise.kind, schedule_type)
    ]


def due_ms_of(promise: Promise, instant: Millis, time_zone: str) -> Millis:
    """Return by when an instant has to keep a promise; of other kinds: the instant itself."""
    if promise.kind is PromiseKind.FINISHES_BY:
        return _wall_time_after(instant, promise.at, time_zone)
    return instant + promise.limit_ms if promise.kind in INSTANT_KINDS else instant


def longest_delay_ms(promise: Promise) -> Millis:
    """Return how long after an instant it is due at the latest."""
    if promise.kind is not PromiseKind.FINISHES_BY:
        return promise.limit_ms
    days = int(promise.at.partition("+")[2].removesuffix("d") or 0)
    return (days + 2) * DAY_MS  # A change of clocks makes a day longer.


def _wall_time_after(instant: Millis, at: str, time_zone: str) -> Millis:
    """Return the first ``06:00`` after an instant, of ``06:00+1d`` the one a day later.

    A time that a change of clocks leaves out: the first instant after it. One that it repeats: the first.
    """
    clock, _, days = at.partition("+")
    local = datetime.fromtimestamp(instant / 1000, zone(time_zone))
    for ahead in range(3):
        day = (local + timedelta(days=ahead)).date()
        first = _wall_time(day, clock, time_zone)
        if first <= instant:
            continue
        return _wall_time(day + timedelta(days=int(days[:-1])), clock, time_zone) if days else first
    raise ValueError(f"no {at} after {instant}")


@lru_cache(maxsize=4_096)
def _wall_time(day: date, clock: str, time_zone: str) -> Millis:
    """Return a wall-clock time of a day; of one that a change of clocks leaves out, the first after it."""
    schedule = Schedule(ScheduleType.AT, f"{day.isoformat()} {clock}:00", time_zone)
    return next_after_ms(schedule, 0) or 0


def assign_numbers(
    promises: Sequence[Promise], number_by_definition: dict[str, int], used: Collection[int]
) -> dict[int, Promise]:
    """Return number -> promise: a known one keeps its number, by definition; others get unused ones."""
    numbers, free = dict[int, Promise](), iter(n for n in range(1, 10_000) if n not in used)
    for promise in promises:
        number = number_by_definition.get(promise.definition)
        numbers[next(free) if number is None else number] = promise
    return numbers
