"""Judgement: whether a promise was kept, from the runs that there are. Pure rules, without a clock."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from statistics import median
from typing import Any, Final, NamedTuple

from app.clock import SECOND_MS, Millis
from app.domain.enums import HandleCode, KillReason, PromiseKind, TriggerCode
from app.domain.promises.promise import Promise
from app.domain.runs.sharding import parse_shard

#: outcomes are written up to a second after they arrived, and times of runs are whole seconds
GRACE_MS: Final[Millis] = 2 * SECOND_MS
#: successes that a usual duration needs, and that it is the median of at most
USUAL_MIN: Final = 20
USUAL_MAX: Final = 200
ALL_HOURS: Final = "all"


class ChainRun(NamedTuple):
    """A scheduled run of an instant, or a retry of one."""

    log_id: int
    trigger_ms: Millis
    #: None: it has not ended
    handle_ms: Millis | None
    trigger_code: int
    handle_code: int
    #: ``index/total`` of a broadcast
    shard: str | None = None
    #: Killed
    killed: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether an executor has taken it."""
        return self.trigger_code == TriggerCode.ACCEPTED or self.handle_code != HandleCode.NONE

    @property
    def is_success(self) -> bool:
        """Whether it has succeeded."""
        return self.handle_code == HandleCode.SUCCESS


def is_kept(promise: Promise, due_ms: Millis, chain: Sequence[ChainRun]) -> bool:
    """Whether the runs of an instant keep a promise that is due; of the kinds that have an instant.

    A run that was killed for a newer one has not failed.
    """
    if promise.kind is PromiseKind.STARTS_WITHIN:
        return any(run.is_accepted and run.trigger_ms <= due_ms for run in chain)
    finished_runs = [run for run in chain if run.handle_ms is not None and run.handle_ms <= due_ms]
    return has_succeeded(finished_runs) or any(run.killed >= KillReason.REPLACED for run in finished_runs)


def has_succeeded(chain: Iterable[ChainRun]) -> bool:
    """Whether these runs of an instant have a success; of a broadcast every shard."""
    successes = [run for run in chain if run.is_success]
    shards = [shard for run in successes if (shard := parse_shard(run.shard)) is not None]
    if not shards:
        return bool(successes)
    return len({shard.index for shard in shards}) >= max(shard.total for shard in shards)


def longest_ms_of(promise: Promise, usual_ms: Millis | None) -> Millis | None:
    """Return how long a run may take by a promise; None: it has no such limit, or nothing is usual yet."""
    if promise.kind is PromiseKind.TAKES_AT_MOST:
        return promise.limit_ms
    if promise.kind is PromiseKind.TAKES_USUAL_TIMES and usual_ms is not None:
        return int(promise.times * usual_ms)
    return None


def keeps_duration(
    promise: Promise, duration_ms: Millis, *, is_success: bool, usual_ms: Millis | None
) -> bool:
    """Whether a run that has ended keeps a promise about its duration."""
    if promise.kind is PromiseKind.TAKES_AT_LEAST:
        return not is_success or duration_ms >= promise.limit_ms
    longest_ms = longest_ms_of(promise, usual_ms)
    return longest_ms is None or duration_ms <= longest_ms


class UsualRun(NamedTuple):
    """Beginning and duration of a success."""

    began_ms: Millis
    duration_ms: Millis


def usual_of(newest_first: Iterable[UsualRun], tz: tzinfo) -> dict[str, Millis]:
    """Return hour of the day -> median of the latest successes that began in it; ``all``: of all hours.

    Hours with too few successes are left out.
    """
    by_hour: dict[str, list[Millis]] = {}
    for run in newest_first:
        hour = str(datetime.fromtimestamp(run.began_ms / 1000, tz).hour)
        for key in (hour, ALL_HOURS):
            durations = by_hour.setdefault(key, [])
            if len(durations) < USUAL_MAX:
                durations.append(run.duration_ms)
    return {
        key: round(median(durations)) for key, durations in by_hour.items() if len(durations) >= USUAL_MIN
    }


def usual_at(usual: str | None, began_ms: Millis, tz: tzinfo) -> Millis | None:
    """Return the usual duration of a run that began then, from the stored ones; None: nothing is usual."""
    durations = _members(usual)
    hour = str(datetime.fromtimestamp(began_ms / 1000, tz).hour)
    usual_ms = durations.get(hour, durations.get(ALL_HOURS))
    return usual_ms if isinstance(usual_ms, int) else None


def read_days(text: str | None) -> dict[str, list[int]]:
    """Return day -> how often a promise was kept, broken and excused, without what another program stored."""
    return {
        day: numbers
        for day, numbers in _members(text).items()
        if isinstance(numbers, list) and [*map(type, numbers)] == [int] * 3
    }


def _members(text: str | None) -> Mapping[str, Any]:
    """Return the members of a stored JSON text; none of one that another program has stored."""
    try:
        members = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


class Series(NamedTuple):
    """Instants in a row that ended without a success."""

    length: int
    #: 0: there is none
    first_log_id: int
    #: the first of them
    since_ms: Millis


def failures_in_a_row(newest_first: Sequence[tuple[Millis, Sequence[ChainRun]]]) -> Series:
    """Return the failures since the last success, from instants that have ended, with their runs."""
    failed: list[tuple[Millis, Sequence[ChainRun]]] = []
    for instant, chain in newest_first:
        if has_succeeded(chain):
            break
        if any(run.killed >= KillReason.REPLACED for run in chain):
            continue
        failed.append((instant, chain))
    if not failed:
        return Series(0, 0, 0)
    since_ms, chain = failed[-1]
    return Series(len(failed), min(run.log_id for run in chain), since_ms)
