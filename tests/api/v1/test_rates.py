"""The rate limit of the API."""

import pytest

from app.api.v1.access import check_access
from app.api.v1.endpoint import Resource
from app.api.v1.resources import own_token
from app.clock import SECOND_MS
from app.domain.access.call_rate import CallRate
from app.domain.access.permissions import Actor
from app.errors import RetryLater
from app.services.accounts.api_tokens import ApiCaller

RESOURCE: Resource = own_token.resource


def test_a_token_above_its_rate_waits_and_others_do_not() -> None:
    rate = CallRate(1, 90 * SECOND_MS, burst=1)
    actor = Actor(user_id=1, username="ann", is_admin=True, address="")
    first, second = (ApiCaller(token_id, "", actor, 0, 0) for token_id in (1, 2))
    (operation,) = RESOURCE.operations
    check_access(operation, first, rate)
    with pytest.raises(RetryLater) as refused:
        check_access(operation, first, rate)
    assert refused.value.retry_after_s == 90
    check_access(operation, second, rate)
