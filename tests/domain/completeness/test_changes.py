"""Dates of changes by another program: the instants that were planned tell when a schedule changed."""

import pytest

from app.clock import Millis
from app.domain.completeness.changes import date_change
from app.domain.completeness.expected_instants import Interval, expected_instants
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule

#: 2024-05-01 00:00:00 UTC
T0: Millis = 1_714_521_600_000


def span(kind: str, conf: str = "", *, is_on: bool = True, anchor: float = 0) -> Span:
    schedule = Schedule(ScheduleType(kind), conf, "UTC", 0, 0)
    return Span(1, 1, is_on, T0 - 60_000, None, schedule, int(T0 + anchor * 1_000) if anchor else 0)


EACH_SECOND, EACH_FIFTH = span("CRON", "* * * * * ?"), span("CRON", "0/5 * * * * ?")
OFF = span("CRON", "* * * * * ?", is_on=False)


@pytest.mark.parametrize(
    ("former", "now", "planned"),
    [
        pytest.param(EACH_SECOND, OFF, [1, 2, 3, 4], id="switched off"),
        pytest.param(OFF, EACH_SECOND, [8, 9, 10, 11], id="switched on, planned five seconds later"),
        pytest.param(None, EACH_SECOND, [8, 9, 10, 11], id="added"),
        pytest.param(EACH_SECOND, EACH_FIFTH, [1, 2, 3, 5, 10], id="less often"),
        pytest.param(EACH_SECOND, EACH_FIFTH, [1, 2, 3, 4, 15], id="less often, by a Java admin"),
        pytest.param(EACH_SECOND, EACH_FIFTH, [1, 2, 3, 4, 25], id="less often, next one far"),
        pytest.param(EACH_FIFTH, EACH_SECOND, [5, 10, 11, 12, 13], id="more often"),
        pytest.param(EACH_FIFTH, EACH_SECOND, [5, 11, 12, 13], id="more often, by a Java admin"),
        pytest.param(
            span("FIX_RATE", "1", anchor=1),
            span("FIX_RATE", "3", anchor=13),
            [1, 2, 3, 4, 7, 10, 13],
            id="rate",
        ),
        pytest.param(
            span("FIX_RATE", "1", anchor=1.2),
            span("FIX_RATE", "2", anchor=11.7),
            [1.2, 2.2, 3.2, 7.7, 9.7, 11.7],
            id="rate, by a Java admin",
        ),
        pytest.param(span("FIX_DELAY", "1"), EACH_SECOND, [0.3, 1.5, 3, 4, 5], id="from a fixed delay"),
        pytest.param(EACH_SECOND, span("FIX_DELAY", "1"), [1, 2, 3.1, 4.2], id="to a fixed delay"),
        pytest.param(EACH_SECOND, EACH_SECOND, [1, 2, 3, 4], id="moved"),
    ],
)
def test_nothing_is_missing_or_doubled_around_a_change(
    former: Span | None, now: Span, planned: list[float]
) -> None:
    instants = [int(T0 + at * 1_000) for at in planned]
    change = date_change(former, now, instants, Interval(T0, T0 + 20_000))
    following = change.following
    spans = [following]
    if former is not None:
        spans = [
            Span(1, 1, former.is_on, former.from_ms, change.until_ms, former.schedule, former.anchor_ms),
            following,
        ]
    assert change.until_ms <= following.from_ms
    found = set(expected_instants(spans, Interval(T0 + 1, min(instants[-1], T0 + 19_999) + 1)))
    delays = [each for each in spans if each.schedule.type is ScheduleType.FIX_DELAY]
    found |= {instant for instant in instants if any(delay.covers(instant) for delay in delays)}
    assert found == {instant for instant in instants if instant < T0 + 20_000}
