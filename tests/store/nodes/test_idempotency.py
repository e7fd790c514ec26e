"""Keys of requests: how long they stand for an answer, or for a request in progress."""

import pytest

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import session_scope
from app.store.nodes import idempotency
from tests.support.factories import T0

pytestmark = pytest.mark.usefixtures("database")


def take(now_ms: Millis) -> bool:
    with session_scope() as session:
        return idempotency.insert_key(
            session, "key", "request", now_ms=now_ms, kept_ms=DAY_MS, open_ms=10 * MINUTE_MS
        )


def test_a_key_whose_answer_never_came_is_free_again() -> None:
    assert take(T0)
    assert not take(T0 + 10 * MINUTE_MS)
    assert take(T0 + 10 * MINUTE_MS + 1)


def test_an_answer_is_kept_longer() -> None:
    assert take(T0)
    with session_scope() as session:
        idempotency.update_answer(session, "key", status=202, location="", body="{}")
    assert not take(T0 + DAY_MS)
    assert take(T0 + DAY_MS + 1)
