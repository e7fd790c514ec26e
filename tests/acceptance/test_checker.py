"""Tests of the checker: a correct history passes, and every kind of fault inserted by hand is found."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.faults.checker import Event, History, Row, Skip, Watched, check

#: 2024-05-01 10:20:00 in Shanghai, a whole minute
T0 = 1_714_530_000_000
STOP = (T0 + 20_050, T0 + 20_090)
EVERY_2_S, RATE_3_S, FAILING, CHILD = 1, 2, 3, 4
JOBS = (
    Watched(EVERY_2_S, "CRON", "0/2 * * * * ?", start=(T0 + 100, T0 + 150), stop=STOP, child_ids=(CHILD,)),
    Watched(RATE_3_S, "FIX_RATE", "3", start=(T0 + 100, T0 + 150), stop=STOP, misfire="FIRE_ONCE_NOW"),
    Watched(FAILING, "CRON", "0/10 * * * * ?", start=(T0 + 100, T0 + 150), stop=STOP),
)
#: first instant of the fixed rate: the start by the product's own clock plus a period
RATE_FIRST = T0 + 120 + 3_000


def ends(row: Row, lag_ms: int = 40) -> list[Event]:
    """Return the events an executor records of an accepted run with an acknowledged result."""
    begin = (row.instant or T0 + 1_000) + lag_ms
    recorded_events = [("recv", 0), ("accept", 1), ("start", 2), ("finish", 9), ("acked", 30)]
    return [
        Event(event, row.log_id, row.job_id, begin + later, code=row.handle_code)
        for event, later in recorded_events
    ]


def correct_history() -> History:
    """A history without a fault."""
    instants = [(EVERY_2_S, T0 + second * 1000) for second in range(2, 21, 2)]
    instants += [(RATE_3_S, RATE_FIRST + number * 3_000) for number in range(6)]
    instants += [(FAILING, T0 + 10_000), (FAILING, T0 + 20_000)]
    rows = []
    for log_id, (job_id, instant) in enumerate(sorted(instants, key=lambda pair: pair[1]), 100):
        failing = job_id == FAILING
        rows.append(
            Row(log_id, job_id, instant, 200, 500 if failing else 200, retries_left=1 if failing else 0)
        )
    children = [Row(row.log_id + 100, CHILD, None, 200, 200) for row in rows if row.job_id == EVERY_2_S]
    retries = [Row(row.log_id + 100, FAILING, None, 200, 200) for row in rows if row.job_id == FAILING]
    every = [*rows, *children, *retries]
    alarms = [row.log_id for row in rows if row.job_id == FAILING]
    return History(JOBS, every, events=[event for row in every for event in ends(row)], alarms=alarms)


def of(history: History, job_id: int, number: int = 0) -> Row:
    return [row for row in history.rows if row.job_id == job_id][number]


def without(history: History, row: Row) -> History:
    events = [event for event in history.events if event.log_id != row.log_id]
    return replace(history, rows=[other for other in history.rows if other != row], events=events)


def changed(history: History, row: Row, **values: object) -> History:
    return replace(
        history, rows=[replace(other, **values) if other == row else other for other in history.rows]
    )


def one_second_early(history: History, kind: str) -> History:
    row = of(history, EVERY_2_S, 3)
    early = [
        replace(e, wall_ms=e.wall_ms - 1_000) if (e.log_id, e.event) == (row.log_id, kind) else e
        for e in history.events
    ]
    return replace(history, events=early)


def skipping(history: History, *, count: int = 2, late_ms: int = 6_000, keep: bool = False) -> History:
    """Skip the second and third instant of the first job as a misfire."""
    left_out = [of(history, EVERY_2_S, 1), of(history, EVERY_2_S, 2)]
    children = [of(history, CHILD, 1), of(history, CHILD, 2)]
    skip = Skip(EVERY_2_S, T0 + 4_000, T0 + 6_000, count, "misfire", T0 + 4_000 + late_ms)
    for row in [] if keep else [*left_out, *children]:
        history = without(history, row)
    return replace(history, skips=[skip])


def test_a_correct_history_passes() -> None:
    found = check(correct_history())
    assert found.problems == {}
    assert (found.counts["expected"], found.counts["rows"]) == (18, 30)


def test_a_recorded_misfire_passes() -> None:
    found = check(skipping(correct_history()))
    assert (found.problems, found.counts["skips"]) == ({}, 2)


def test_instants_during_a_start_or_stop_request_may_fire_or_not() -> None:
    jobs = (replace(JOBS[0], stop=(T0 + 19_990, T0 + 20_090)), *JOBS[1:])
    history = replace(correct_history(), jobs=jobs)
    last, child = of(history, EVERY_2_S, 9), of(history, CHILD, 9)
    assert check(history).problems == {}
    assert check(without(without(history, last), child)).problems == {}


def stopped(history: History, *skips: tuple[int, int, int]) -> History:
    """Omit instants of the first job at 16 s and 20 s, with skips as first second, last second, count."""
    for number in (9, 7):
        history = without(without(history, of(history, EVERY_2_S, number)), of(history, CHILD, number))
    recorded = [
        Skip(EVERY_2_S, T0 + first * 1000, T0 + last * 1000, count, "stopped", T0 + 20_060)
        for first, last, count in skips
    ]
    return replace(history, skips=recorded)


def test_a_stop_records_waiting_instants_around_a_running_one() -> None:
    assert check(stopped(correct_history(), (16, 16, 1), (20, 20, 1))).problems == {}


Doctored = Callable[[History], History]
DISORDER: dict[str, tuple[str, Doctored]] = {
    "a row is gone": ("missing", lambda h: without(without(h, of(h, EVERY_2_S, 4)), of(h, CHILD, 4))),
    "a row of a fixed rate is gone": ("missing", lambda h: without(h, of(h, RATE_3_S, 2))),
    "an instant has two rows": (
        "doubled",
        lambda h: replace(h, rows=[*h.rows, replace(of(h, RATE_3_S, 1), log_id=900)]),
    ),
    "an instant has a row and a skip": ("doubled", lambda h: skipping(h, count=0, keep=True)),
    "a row after the stop": (
        "unexpected",
        lambda h: replace(h, rows=[*h.rows, Row(900, RATE_3_S, RATE_FIRST + 18_000, 200, 200)]),
    ),
    "a row between two instants": (
        "unexpected",
        lambda h: replace(h, rows=[*h.rows, Row(900, RATE_3_S, RATE_FIRST + 1, 200, 200)]),
    ),
    "a start is a second early": ("early", lambda h: one_second_early(h, "start")),
    "a request is a second early": ("early", lambda h: one_second_early(h, "recv")),
    "a skip counts too many": ("wrong_skips", lambda h: skipping(h, count=3)),
    "a skip counts too few": ("wrong_skips", lambda h: skipping(h, count=1)),
    "a skip spans an instant that fired": ("doubled", lambda h: stopped(h, (16, 20, 2))),
    "an instant is skipped twice": ("doubled", lambda h: stopped(h, (16, 16, 1), (16, 16, 1), (20, 20, 1))),
    "a skip comes too soon": ("wrong_skips", lambda h: skipping(h, late_ms=4_000)),
    "a run starts twice": (
        "started_twice",
        lambda h: replace(h, events=[*h.events, *ends(of(h, RATE_3_S), 900)]),
    ),
    "a run is in no row": (
        "unknown_starts",
        lambda h: replace(h, events=[*h.events, Event("start", 900, RATE_3_S, T0 + 9_000)]),
    ),
    "a run never ends": ("unfinished", lambda h: changed(h, of(h, RATE_3_S), handle_code=0)),
    "a result differs from the reported one": (
        "wrong_results",
        lambda h: changed(h, of(h, RATE_3_S), handle_code=502),
    ),
    "a child has no parent": (
        "successors",
        lambda h: replace(h, rows=[*h.rows, Row(900, CHILD, None, 200, 200)]),
    ),
    "a child is missing": ("successors", lambda h: without(h, of(h, CHILD, 5))),
    "a retry is missing": ("successors", lambda h: without(h, of(h, FAILING, 2))),
    "a retry came twice": (
        "successors",
        lambda h: replace(h, rows=[*h.rows, Row(900, FAILING, None, 200, 200)]),
    ),
    "an alarm is missing": ("successors", lambda h: replace(h, alarms=h.alarms[1:])),
    "an alarm was raised twice": ("successors", lambda h: replace(h, alarms=[*h.alarms, h.alarms[0]])),
}


@pytest.mark.parametrize("name", DISORDER)
def test_every_fault_is_found(name: str) -> None:
    kind, doctor = DISORDER[name]
    assert kind in check(doctor(correct_history())).problems


def test_one_fault_is_one_kind_of_finding() -> None:
    assert check(without(correct_history(), of(correct_history(), RATE_3_S, 2))).problems == {"missing": 1}
    assert check(one_second_early(correct_history(), "start")).problems == {"early": 1}


def test_a_fixed_rate_that_does_not_start_one_period_after_its_start_is_found() -> None:
    history = correct_history()
    shifted = [
        replace(row, instant=row.instant + 500) if row.job_id == RATE_3_S and row.instant else row
        for row in history.rows
    ]
    assert "unexpected" in check(replace(history, rows=shifted, events=[])).problems


def test_rows_of_shards_are_distinguished() -> None:
    job = Watched(5, "CRON", "0/10 * * * * ?", start=(T0 + 100, T0 + 150), stop=STOP, shards=2)
    rows = [
        Row(400 + 2 * n + i, 5, T0 + 10_000 * (n + 1), 200, 200, shard=f"{i}/2")
        for n in range(2)
        for i in range(2)
    ]
    assert check(History([job], rows)).problems == {}
    again = replace(rows[0], log_id=900)
    assert check(History([job], [*rows, again])).problems == {"doubled": 1}
    assert check(History([job], rows[1:])).problems == {"missing": 1}


def test_findings_are_summarized() -> None:
    history = correct_history()
    bare = replace(
        history, rows=[row for row in history.rows if row.job_id not in (EVERY_2_S, CHILD)], events=[]
    )
    report = check(bare).report()
    assert report["problems"] == {"missing": 10}
    assert len(report["missing"]) == 10
