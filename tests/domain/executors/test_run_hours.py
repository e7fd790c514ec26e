"""Runs of instances by hour."""

from app.clock import MINUTE_MS
from app.domain.executors.run_hours import HOURS, Hour, run_hours

NOW_MS = 1_800_000_000_000


def test_runs_are_counted_in_the_hour_before_now_in_which_they_were() -> None:
    runs = [
        ("http://10.0.0.1:9999/", NOW_MS, 0),
        ("http://10.0.0.1:9999", NOW_MS - 60 * MINUTE_MS + 1, 1),
        ("http://10.0.0.1:9999", NOW_MS - 60 * MINUTE_MS, 0),
        ("http://10.0.0.2:9999", NOW_MS - HOURS * 60 * MINUTE_MS + 1, 1),
    ]
    hours = run_hours(runs, now_ms=NOW_MS)
    first, second = hours.values()
    assert first[-2:] == [Hour(1, 0), Hour(2, 1)]
    assert second == [Hour(1, 1), *[Hour()] * (HOURS - 1)]
    assert len(first) == HOURS


def test_runs_of_another_time_or_without_an_instance_count_nowhere() -> None:
    runs = [
        (None, NOW_MS, 1),
        ("", NOW_MS, 1),
        ("http://10.0.0.1:9999", NOW_MS + 1, 0),
        ("http://10.0.0.1:9999", NOW_MS - HOURS * 60 * MINUTE_MS, 0),
    ]
    assert run_hours(runs, now_ms=NOW_MS) == {}
