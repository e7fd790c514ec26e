"""Clock changes: times that do not exist or occur twice, compared with the fires of a year."""

from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.domain.enums import ScheduleType
from app.domain.schedules.clock_changes import ClockChange, Silence, clock_changes, silence_of
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.domain_schedules import BERLIN, LORD_HOWE, NEW_YORK, SHANGHAI, ms
from tests.support.truth_table import truth_table

NOW = ms("2026-07-01 12:00", "UTC")
CRON, AT = ScheduleType.CRON, ScheduleType.AT


def text_of(change: ClockChange, zone: str) -> str:
    """Write a change as "2027-03-28 02:30 none", or "twice" and the local times of its runs."""
    runs = [f"{datetime.fromtimestamp(at / 1000, ZoneInfo(zone)):%H:%M%z}" for at in change.runs_ms]
    kind = "none" if change.is_gap else "twice"
    times = ",".join(f"{local:%H:%M}" for local in change.local_times) + ("…" if change.has_more else "")
    return " ".join([f"{change.local_times[0]:%Y-%m-%d}", times, kind, *runs])


@truth_table(
    "zone, type_, conf, expected",
    [
        (BERLIN, CRON, "0 30 2 * * ?", ["2026-10-25 02:30 twice 02:30+0100", "2027-03-28 02:30 none"]),
        (
            BERLIN,
            CRON,
            "30 2 * * *",
            ["2026-10-25 02:30 twice 02:30+0200", "2027-03-28 02:30 none 03:00+0200"],
        ),
        (BERLIN, CRON, "0 30 2 26-31 3 ?", ["2027-03-28 02:30 none"]),
        (BERLIN, CRON, "0 30 2 ? * MON-FRI", []),
        (BERLIN, CRON, "0 30 3 * * ?", []),
        (BERLIN, CRON, "0 0/5 * * * ?", []),
        (BERLIN, CRON, "*/5 * * * *", []),
        (BERLIN, CRON, "0 0 0/2 * * ?", ["2026-10-25 02:00 twice 02:00+0100", "2027-03-28 02:00 none"]),
        (
            BERLIN,
            CRON,
            "0 */2 * * *",
            ["2026-10-25 02:00 twice 02:00+0200 02:00+0100", "2027-03-28 02:00 none 03:00+0200"],
        ),
        (
            BERLIN,
            CRON,
            "0 0/10 2 * * ?",
            ["2026-10-25 02:00,02:10,02:20… twice 02:00+0100", "2027-03-28 02:00,02:10,02:20… none"],
        ),
        (BERLIN, CRON, "0 0 2,3 * * ?", ["2026-10-25 02:00 twice 02:00+0100", "2027-03-28 02:00 none"]),
        (NEW_YORK, CRON, "0 30 2 * * ?", ["2027-03-14 02:30 none"]),
        (NEW_YORK, CRON, "0 30 1 * * ?", ["2026-11-01 01:30 twice 01:30-0500"]),
        (LORD_HOWE, CRON, "0 15 2 * * ?", ["2026-10-04 02:15 none"]),
        (LORD_HOWE, CRON, "0 45 1 * * ?", ["2027-04-04 01:45 twice 01:45+1030"]),
        (LORD_HOWE, CRON, "0 45 2 * * ?", []),
        (SHANGHAI, CRON, "0 30 2 * * ?", []),
        ("UTC", CRON, "30 2 * * *", []),
        (BERLIN, AT, "2027-03-28 02:30:00", ["2027-03-28 02:30 none 03:00+0200"]),
        (BERLIN, AT, "2026-10-25 02:30:00", ["2026-10-25 02:30 twice 02:30+0200"]),
        (BERLIN, ScheduleType.FIX_RATE, "3600", []),
        (BERLIN, ScheduleType.NONE, "", []),
    ],
)
def test_changes_of_a_year(zone: str, type_: ScheduleType, conf: str, expected: list[str]) -> None:
    changes = clock_changes(Schedule(type_, conf, zone), now_ms=NOW)
    assert [text_of(change, zone) for change in changes] == expected


def test_changes_outside_the_window_are_left_out() -> None:
    winter = Schedule(CRON, "0 30 2 * * ?", BERLIN, ms("2026-11-01 00:00"), ms("2027-03-01 00:00"))
    assert clock_changes(winter, now_ms=NOW) == []


#: zones at whose changes a year of fires is compared; the others repeat the proof in ``--all``
COMPARED = pytest.mark.parametrize(
    "zone",
    [
        LORD_HOWE,
        *(pytest.param(zone, marks=pytest.mark.extensive) for zone in (BERLIN, NEW_YORK, SHANGHAI)),
    ],
)


@COMPARED
def test_changes_are_what_the_fires_of_a_year_show(zone: str) -> None:
    """The local times that are missing, doubled or added are those of the changes, and no others."""
    for minute in (0, 45):
        for hour in ("1-2", "*/2"):
            for conf in (f"{minute} {hour} * * *", f"0 {minute} {hour.replace('*', '0')} * * ?"):
                schedule = Schedule(CRON, conf, zone)
                planned, fires = Counter(local_times(schedule, "UTC")), Counter(local_times(schedule, zone))
                changes = clock_changes(schedule, now_ms=NOW)
                gaps = {each for change in changes if change.is_gap for each in change.local_times}
                moved = [run for change in changes if change.is_gap for run in change.runs_ms]
                assert set((planned - fires).elements()) == gaps, conf
                added = Counter(local_of(run, zone) for run in moved)
                for change in changes:
                    if not change.is_gap and len(change.runs_ms) > 1:
                        added.update(change.local_times)
                assert fires - planned == added, conf


def local_of(at_ms: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def local_times(schedule: Schedule, zone: str) -> list[datetime]:
    """Return the local times of a year's fires in a zone."""
    in_zone = Schedule(schedule.type, schedule.conf, zone)
    # The same days in each zone: from one local midnight to another.
    at_ms, end_ms = (ms(f"{year}-07-02 00:00", zone) - 1 for year in (2026, 2027))
    times = []
    while (next_ms := next_after_ms(in_zone, at_ms)) is not None and next_ms < end_ms:
        times.append(local_of(next_ms, zone))
        at_ms = next_ms
    return times


@truth_table(
    "conf, bounds, expected",
    [
        ("0 30 2 * * ?", {}, None),
        ("0 30 2 ? 3 1L", {}, Silence.CLOCKS),
        ("0 30 2 * * ? 2020", {}, Silence.PAST),
        ("0 0 0 30 2 ?", {}, Silence.PAST),
        ("0 30 2 * * ?", {"not_after_ms": NOW + 1}, Silence.WINDOW),
    ],
)
def test_reason_why_nothing_fires_again(conf: str, bounds: dict[str, int], expected: Silence | None) -> None:
    assert silence_of(Schedule(CRON, conf, BERLIN, **bounds), now_ms=NOW) is expected
