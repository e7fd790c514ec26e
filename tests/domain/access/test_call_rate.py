"""Rate of calls: a burst, then an average, by the given clock."""

from app.clock import MINUTE_MS
from app.domain.access.call_rate import A_MINUTE, BURST, CallRate


def test_a_burst_is_followed_by_the_average() -> None:
    rate = CallRate()
    assert [rate.take(at_ms=0) for _ in range(BURST + 1)] == [True] * BURST + [False]
    one_ms = MINUTE_MS // A_MINUTE
    assert not rate.take(at_ms=one_ms - 1)
    assert rate.take(at_ms=one_ms)
    assert not rate.take(at_ms=one_ms)
    assert [rate.take(at_ms=10 * MINUTE_MS) for _ in range(BURST + 1)] == [True] * BURST + [False]
