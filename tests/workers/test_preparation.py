"""Fires that wait to be prepared between claims."""

from typing import Any, cast

import pytest

from app.domain.planning import DueFire
from tests.factories import T0
from workers import preparation
from workers.preparation import LEAST_AHEAD_MS, Preparation


def test_fires_that_could_not_be_prepared_in_time_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While fires are due all the time, claims leave no time for it."""
    waiting = Preparation(cast("Any", None), cast("Any", None), lambda: True)
    for number in range(100):
        monkeypatch.setattr(preparation, "now_ms", lambda at_ms=T0 + number * 250: at_ms)
        waiting.add(DueFire(number * 10 + place, 1, T0 + number * 250 + 300) for place in range(10))
    last_ms = T0 + 99 * 250
    assert all(fire.due_time > last_ms + LEAST_AHEAD_MS for fire in waiting.waiting)
    assert len(waiting.waiting) == 10
