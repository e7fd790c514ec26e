"""Fires that wait to be prepared between claims."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.domain.schedules.planning import DueFire
from app.pipeline.sent_log_ids import SentLogIds
from tests.support.factories import T0
from workers.dispatch import preparation
from workers.dispatch.preparation import FIRST_EACH_MS, GROUP, LEAST_AHEAD_MS, MARGIN, Preparation


def test_the_time_for_many_fires_follows_what_some_took(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer:
        async def write(self, group: Any, _work: Any, **_more: Any) -> list[Any]:
            clock["s"] += 0.002 * len(group) if len(group) > 1 else 0.1
            return [{}]

    clock = {"s": 0.0}
    monkeypatch.setattr(preparation, "now_ms", lambda: T0)
    claimer = cast("Any", SimpleNamespace(sent_log_ids=SentLogIds()))
    waiting = Preparation(claimer, cast("Any", Writer()), lambda: True, lambda: clock["s"])
    assert waiting.preparing_ms(1_000) == 1_000 * FIRST_EACH_MS * MARGIN
    for _ in range(50):
        waiting.add([DueFire(1, 1, T0 + 300)] * (GROUP + 1))  # a group, and one of a single fire
        asyncio.run(waiting.advance())
        asyncio.run(waiting.advance())
    assert waiting.preparing_ms(1_000) == pytest.approx(1_000 * 2 * MARGIN, rel=0.15)


def test_what_was_prepared_with_ids_that_were_sent_before_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer:
        async def write(self, group: Any, _work: Any, **_more: Any) -> list[Any]:
            return [{fire.id: SimpleNamespace(claim=SimpleNamespace(log_id=6 + fire.id)) for fire in group}]

    monkeypatch.setattr(preparation, "now_ms", lambda: T0)
    sent = SentLogIds()
    waiting = Preparation(
        cast("Any", SimpleNamespace(sent_log_ids=sent)), cast("Any", Writer()), lambda: True, lambda: 0.0
    )
    for last_sent, prepared in ((6, {1, 2}), (7, set())):
        assert sent.admit([last_sent], [last_sent])
        waiting.prepared.clear()
        waiting.add([DueFire(1, 1, T0 + 300), DueFire(2, 1, T0 + 300)])
        asyncio.run(waiting.advance())
        assert waiting.prepared.keys() == prepared


def test_fires_that_could_not_be_prepared_in_time_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While fires are due all the time, claims leave no time for it."""
    waiting = Preparation(cast("Any", None), cast("Any", None), lambda: True)
    for number in range(100):
        monkeypatch.setattr(preparation, "now_ms", lambda at_ms=T0 + number * 250: at_ms)
        waiting.add(DueFire(number * 10 + place, 1, T0 + number * 250 + 300) for place in range(10))
    last_ms = T0 + 99 * 250
    assert all(fire.due_time > last_ms + LEAST_AHEAD_MS for fire in waiting.waiting)
    assert len(waiting.waiting) == 10
