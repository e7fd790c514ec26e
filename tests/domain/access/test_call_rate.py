"""Rate of calls: a burst, then an average, for each caller by the given clock."""

from app.clock import MINUTE_MS
from app.domain.access.call_rate import CALLERS_MAX, CallRate

A_MINUTE, BURST = 20, 5
ONE_MS = MINUTE_MS // A_MINUTE


def test_a_burst_is_followed_by_the_average() -> None:
    rate = CallRate(A_MINUTE, MINUTE_MS, burst=BURST)
    assert [rate.take(at_ms=0) for _ in range(BURST + 1)] == [0] * BURST + [ONE_MS]
    assert 0 < rate.take(at_ms=ONE_MS - 1) < 2
    assert not rate.take(at_ms=ONE_MS)
    assert rate.take(at_ms=ONE_MS) == ONE_MS
    assert [rate.take(at_ms=10 * MINUTE_MS) for _ in range(BURST + 1)] == [0] * BURST + [ONE_MS]


def test_each_caller_has_its_own_rate() -> None:
    rate = CallRate(A_MINUTE, MINUTE_MS, burst=1)
    assert not rate.take(1, at_ms=0)
    assert rate.take(1, at_ms=0)
    assert not rate.take(2, at_ms=0)


def test_the_caller_that_called_least_recently_is_forgotten_first() -> None:
    rate = CallRate(A_MINUTE, MINUTE_MS, burst=1)
    for caller in range(CALLERS_MAX + 1):
        rate.take(caller, at_ms=0)
    assert rate.take(1, at_ms=0)
    assert not rate.take(0, at_ms=0)
