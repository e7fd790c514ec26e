"""The rate limit of the API."""

import pytest

from app.api.v1.rates import RateLimit
from app.errors import RetryLater


def test_a_burst_is_followed_by_the_rate() -> None:
    limit = RateLimit(rate=10, burst=3)
    for _ in range(3):
        limit.take(1, at_ms=0)
    with pytest.raises(RetryLater) as refused:
        limit.take(1, at_ms=50)
    assert refused.value.retry_after_s == 1
    limit.take(1, at_ms=110)
    limit.take(2, at_ms=110)
    with pytest.raises(RetryLater):
        limit.take(1, at_ms=150)
