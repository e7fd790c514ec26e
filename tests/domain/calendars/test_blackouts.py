"""Blackouts: when they are on, together and again and again."""

from app.clock import DAY_MS, HOUR_MS, Millis
from app.domain.calendars.blackouts import (
    Afterwards,
    Blackout,
    closure_at,
    closure_of_hour,
    closures,
    closures_shared,
)
from tests.support.domain_calendars import text_of
from tests.support.domain_schedules import BERLIN, LORD_HOWE, NEW_YORK, ms
from tests.support.truth_table import truth_table

ONCE = Afterwards.RUN_ONCE


def once(from_text: str, until_text: str | None, afterwards: Afterwards = Afterwards.SKIP) -> Blackout:
    """Return a blackout on one time, given as "06-01 10:00"."""
    until_ms = None if until_text is None else ms(f"2026-{until_text}", "UTC")
    return Blackout(1, ms(f"2026-{from_text}", "UTC"), until_ms, afterwards=afterwards)


def again(
    cron: str, hours: float, *, zone: str = "UTC", cut: tuple[str, str | None] = ("01-01 00:00", None)
) -> Blackout:
    """Return a recurring blackout."""
    return once(*cut)._replace(cron=cron, duration_s=int(hours * 3_600), zone=zone)


def spans_of(blackouts: list[Blackout], from_ms: Millis, until_ms: Millis, zone: str = "UTC") -> list[str]:
    """Write the closures that reach into a time; "!" after those that run the latest instant."""
    return [
        f"{text_of(each.from_ms, zone)} - "
        + ("open" if each.until_ms is None else text_of(each.until_ms, zone))
        + "!" * each.runs_once
        for each in closures(blackouts, from_ms, until_ms)
    ]


@truth_table(
    "at, is_covered",
    [
        ("09:59:59.999", False),
        ("10:00:00.000", True),
        ("10:59:59.999", True),
        ("11:00:00.000", False),
    ],
)
def test_a_blackout_is_on_from_its_beginning_to_before_its_end(at: str, is_covered: bool) -> None:
    at_ms = ms(f"2026-06-01 {at}", "UTC")
    for blackout in (once("06-01 10:00", "06-01 11:00"), again("0 0 10 * * ?", 1)):
        closure = closure_at([blackout], at_ms)
        assert (closure is not None and closure.covers(at_ms)) is is_covered
        assert closure is None or closure.until_ms == ms("2026-06-01 11:00", "UTC")


@truth_table(
    "blackouts, expected",
    [
        ([], []),
        ([once("06-01 10:00", "06-01 11:00")], ["06-01 10:00 - 06-01 11:00"]),
        ([once("05-20 00:00", "05-21 00:00"), once("06-02 00:00", None)], []),
        ([once("05-20 00:00", None)], ["05-20 00:00 - open"]),
        ([once("05-20 00:00", "06-01 00:00")], []),
        ([once("05-20 00:00", "06-01 00:01")], ["05-20 00:00 - 06-01 00:01"]),
        (
            [once("06-01 10:00", "06-01 11:00"), once("06-01 11:01", "06-01 12:00")],
            ["06-01 10:00 - 06-01 11:00", "06-01 11:01 - 06-01 12:00"],
        ),
        # one that was ended before it began
        ([once("06-01 10:00", "06-01 10:00"), once("06-01 10:00", "06-01 09:00")], []),
        ([once("06-01 10:00", "06-01 10:00"), once("06-01 09:00", None)], ["06-01 09:00 - open"]),
        # one that begins when another ends
        (
            [once("06-01 11:00", "06-01 12:00"), once("06-01 10:00", "06-01 11:00")],
            ["06-01 10:00 - 06-01 12:00"],
        ),
        # overlapping, and within
        (
            [once("06-01 10:00", "06-01 12:00"), once("06-01 11:00", "06-01 13:00")],
            ["06-01 10:00 - 06-01 13:00"],
        ),
        (
            [once("06-01 10:00", "06-01 14:00"), once("06-01 11:00", "06-01 12:00")],
            ["06-01 10:00 - 06-01 14:00"],
        ),
        ([once("06-01 10:00", "06-01 14:00"), once("06-01 14:00", None)], ["06-01 10:00 - open"]),
        # any that runs the latest instant makes all of them do so
        (
            [once("06-01 10:00", "06-01 12:00", ONCE), once("06-01 11:00", "06-01 13:00")],
            ["06-01 10:00 - 06-01 13:00!"],
        ),
        (
            [once("06-01 10:00", "06-01 14:00"), once("06-01 11:00", "06-01 12:00", ONCE)],
            ["06-01 10:00 - 06-01 14:00!"],
        ),
        (
            [
                once("06-01 10:00", "06-01 11:00"),
                once("06-01 11:00", "06-01 14:00"),
                once("06-01 12:00", "06-01 13:00", ONCE),
            ],
            ["06-01 10:00 - 06-01 14:00!"],
        ),
        (
            [once("06-01 10:00", "06-01 11:00", ONCE), once("06-01 12:00", "06-01 13:00")],
            ["06-01 10:00 - 06-01 11:00!", "06-01 12:00 - 06-01 13:00"],
        ),
        ([once("06-01 10:00", "06-01 14:00", ONCE), once("06-01 14:00", None)], ["06-01 10:00 - open"]),
        # again and again
        (
            [again("0 0 2,22 * * ?", 1)],
            ["06-01 02:00 - 06-01 03:00", "06-01 22:00 - 06-01 23:00"],
        ),
        ([again("0 2 * * *", 1)], ["06-01 02:00 - 06-01 03:00"]),
        ([again("0 30 23 * * ?", 1)], ["05-31 23:30 - 06-01 00:30", "06-01 23:30 - 06-02 00:30"]),
        ([again("0 0 0/2 * * ?", 3, cut=("05-30 08:00", "06-05 13:30"))], ["05-30 08:00 - 06-05 13:30"]),
        # from and until cut windows, and none begins after the end
        (
            [again("0 0 0/12 * * ?", 2, cut=("06-01 01:00", None))],
            ["06-01 01:00 - 06-01 02:00", "06-01 12:00 - 06-01 14:00"],
        ),
        (
            [again("0 0 0/12 * * ?", 2, cut=("05-01 00:00", "06-01 13:00"))],
            ["06-01 00:00 - 06-01 02:00", "06-01 12:00 - 06-01 13:00"],
        ),
        ([again("0 0 0/12 * * ?", 2, cut=("05-01 00:00", "06-01 12:00"))], ["06-01 00:00 - 06-01 02:00"]),
        ([again("0 0 0/12 * * ?", 2, cut=("06-01 02:00", None))], ["06-01 12:00 - 06-01 14:00"]),
        # a window that begins while another one is on
        (
            [again("0 0,30 10 * * ?", 1), once("06-01 11:30", "06-01 12:00")],
            ["06-01 10:00 - 06-01 12:00"],
        ),
        # without a gap between them for two years
        ([again("0 0 0 * * ?", 24, cut=("06-01 05:00", None))], ["06-01 05:00 - open"]),
    ],
)
def test_blackouts_count_as_their_union(blackouts: list[Blackout], expected: list[str]) -> None:
    from_ms, until_ms = ms("2026-06-01 00:00", "UTC"), ms("2026-06-02 00:00", "UTC")
    assert spans_of(blackouts, from_ms, until_ms) == expected
    # the same from each instant within
    for closure in closures(blackouts, from_ms, until_ms):
        last_ms = until_ms if closure.until_ms is None else closure.until_ms
        for at_ms in range(closure.from_ms, min(last_ms, closure.from_ms + DAY_MS), HOUR_MS // 2):
            assert closure_at(blackouts, at_ms) == closure_of_hour((*blackouts,), at_ms) == closure


@truth_table(
    "zone, day, cron, hours, expected",
    [
        # the clocks go forward: a window has its length, and none begins at a time that does not exist
        (BERLIN, "2026-03-29", "0 0 1 * * ?", 2, ["03-29 01:00 - 03-29 04:00"]),
        (BERLIN, "2026-03-29", "0 30 2 * * ?", 1, []),
        (BERLIN, "2026-03-29", "30 2 * * *", 1, ["03-29 03:00 - 03-29 04:00"]),
        # they go back: six fields mean the second of two times, five the first
        (BERLIN, "2026-10-25", "0 30 1 * * ?", 2, ["10-25 01:30 - 10-25 02:30"]),
        (BERLIN, "2026-10-25", "0 0 2 ? * SUN", 0.25, ["10-25 02:00 - 10-25 02:15"]),
        (
            BERLIN,
            "2026-10-25",
            "0 15 1,2 * * ?",
            0.5,
            ["10-25 01:15 - 10-25 01:45", "10-25 02:15 - 10-25 02:45"],
        ),
        (BERLIN, "2026-10-25", "0 0 3 * * ?", 1, ["10-25 03:00 - 10-25 04:00"]),
        (NEW_YORK, "2026-03-08", "0 0 1 * * ?", 2, ["03-08 01:00 - 03-08 04:00"]),
        (NEW_YORK, "2026-11-01", "30 0 * * *", 2, ["11-01 00:30 - 11-01 01:30"]),
        (LORD_HOWE, "2026-10-04", "0 0 1 * * ?", 2, ["10-04 01:00 - 10-04 03:30"]),
        (LORD_HOWE, "2026-04-05", "0 0 1 * * ?", 2, ["04-05 01:00 - 04-05 02:30"]),
    ],
)
def test_a_window_begins_by_the_clock_and_lasts_its_time(
    zone: str, day: str, cron: str, hours: float, expected: list[str]
) -> None:
    from_ms, until_ms = ms(f"{day} 00:00", zone), ms(f"{day} 23:00", zone)
    assert spans_of([again(cron, hours, zone=zone)], from_ms, until_ms, zone) == expected


def test_windows_that_meet_have_no_end_although_they_are_many() -> None:
    closure = closure_at([again("0 * * * * ?", 1)], ms("2026-06-01 00:00", "UTC"))
    assert closure is not None
    assert closure.until_ms is None


def test_the_blackout_of_a_closure_is_the_one_that_begins_it() -> None:
    first = once("06-01 10:00", "06-01 12:00")._replace(id=7, reason="stocktaking")
    closure = closure_at([once("06-01 11:00", "06-01 13:00"), first], ms("2026-06-01 12:30", "UTC"))
    assert closure is not None
    assert closure.blackout == first


def test_closures_that_are_kept_by_hours_are_the_same() -> None:
    blackouts = (
        again("0 50 * * * ?", 0.25),
        again("0 30 9 * * ?", 1.5),
        once("06-01 12:00", "06-01 12:20"),
        once("06-01 14:00", None),
    )
    begin_ms = ms("2026-06-01 07:00", "UTC")
    wrong = [
        (from_ms, until_ms)
        for from_ms in range(begin_ms, begin_ms + 8 * HOUR_MS, 25 * 60_000)
        for until_ms in range(from_ms + 1, from_ms + 8 * HOUR_MS, 47 * 60_000)
        if [*closures_shared(blackouts, from_ms, until_ms)] != [*closures(blackouts, from_ms, until_ms)]
    ]
    assert wrong == []
