"""Health of alarm channels: when one is broken, since when, and how many messages were lost."""

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.domain.alarms.channel_health import (
    BROKEN_AFTER_MS,
    ChannelState,
    DayCount,
    MessageResult,
    health_of,
)
from tests.support.truth_table import truth_table

NOW: Millis = 1_714_532_645_000


def ok(minutes: int, *, is_test: bool = False) -> MessageResult:
    return MessageResult(NOW - minutes * MINUTE_MS, is_test=is_test)


def lost(minutes: int) -> MessageResult:
    return MessageResult(NOW - minutes * MINUTE_MS, "HTTP 500")


def retried(minutes: int) -> MessageResult:
    return MessageResult(NOW - minutes * MINUTE_MS, "HTTP 500", is_final=False)


def failed_test(minutes: int) -> MessageResult:
    return MessageResult(NOW - minutes * MINUTE_MS, "refused", is_test=True)


HEALTHY, FAILING, BROKEN, QUIET = (
    ChannelState.HEALTHY,
    ChannelState.FAILING,
    ChannelState.BROKEN,
    ChannelState.QUIET,
)


@truth_table(
    "results, state, since, lost_count",
    [
        ([], QUIET, None, 0),
        ([ok(5)], HEALTHY, None, 0),
        ([lost(9), lost(8), ok(5)], HEALTHY, None, 0),
        ([ok(5), retried(1)], FAILING, 1, 0),
        ([ok(5), lost(1)], FAILING, 1, 1),
        ([ok(5), retried(2), retried(1)], FAILING, 2, 0),
        ([ok(9), lost(2), lost(1)], BROKEN, 2, 2),
        ([lost(1), ok(9), lost(2)], BROKEN, 2, 2),
        ([ok(30), lost(10)], BROKEN, 10, 1),
        ([ok(30), retried(10)], BROKEN, 10, 0),
        ([lost(10)], BROKEN, 10, 1),
        ([ok(60), lost(30), ok(20), lost(3)], FAILING, 3, 1),
        # A test proves as much as a message, but nothing was lost with it.
        ([lost(30), lost(20), ok(1, is_test=True)], HEALTHY, None, 0),
        ([ok(30), failed_test(12), failed_test(11)], BROKEN, 12, 0),
        ([ok(30), failed_test(2), failed_test(1)], FAILING, 2, 0),
    ],
)
def test_a_channel_is_broken_while_nothing_arrives(
    results: list[MessageResult], state: ChannelState, since: int | None, lost_count: int
) -> None:
    health = health_of(results, now_ms=NOW)
    since_ms = None if since is None else NOW - since * MINUTE_MS
    assert (health.state, health.since_ms, health.lost) == (state, since_ms, lost_count)
    assert bool(health.problem) is (since is not None)


def test_a_single_failure_is_broken_after_ten_minutes() -> None:
    result = MessageResult(NOW, "HTTP 500")
    ages = (BROKEN_AFTER_MS - 1, BROKEN_AFTER_MS)
    assert [health_of([result], now_ms=NOW + age).is_broken for age in ages] == [False, True]


def test_failures_before_a_change_of_the_channel_do_not_count() -> None:
    results = [ok(60), lost(30), lost(20)]
    health = health_of(results, now_ms=NOW, changed_ms=NOW - 10 * MINUTE_MS)
    assert (health.state, health.last_ok_ms) == (HEALTHY, NOW - 60 * MINUTE_MS)
    assert health_of([lost(30)], now_ms=NOW, changed_ms=NOW - MINUTE_MS).state is QUIET
    assert health_of([*results, lost(5), lost(4)], now_ms=NOW, changed_ms=NOW - 10 * MINUTE_MS).lost == 2


def test_messages_are_counted_by_day_without_tests() -> None:
    days = [NOW - 2 * DAY_MS, NOW - DAY_MS, NOW]
    results = [
        MessageResult(days[0] - 1),
        MessageResult(days[0]),
        MessageResult(days[1] - 1, "HTTP 500"),
        MessageResult(days[1], is_test=True),
        MessageResult(days[2], "HTTP 500", is_final=False),
        MessageResult(days[2]),
    ]
    health = health_of(results, now_ms=NOW, days=days)
    assert health.days == (DayCount(1, 1), DayCount(), DayCount(1, 1))
    assert (health.sent, health.failed) == (2, 2)
