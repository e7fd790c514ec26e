"""Logical times in handlers: ``context.scheduled_at`` and ``context.logical_date``."""

from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from executor_client import HandlerRegistry, context
from executor_client.runs.context import JobContext
from executor_client.testing import run_handler
from executor_client.wire.protocol import RunRequest
from executor_client.wire.start_zone import start_zone
from tests.support.eventually import eventually
from tests.support.executor_client import MakeExecutor

#: 2024-05-01 23:30:00.123 in Tokyo
INSTANT_MS = 1_714_573_800_123
TRIGGERED_MS = 1_714_660_200_000


def seen_by(**fields: Any) -> JobContext:
    request = RunRequest(1, "", "", "", 0, 1, TRIGGERED_MS, "", "", 0, 0, 1)._replace(**fields)
    return JobContext(request, lambda line: True)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Asia/Tokyo", "2024-05-01T23:30:00.123000+09:00"),
        ("America/New_York", "2024-05-01T10:30:00.123000-04:00"),
        ("Pacific/Kiritimati", "2024-05-02T04:30:00.123000+14:00"),
    ],
)
def test_the_instant_is_in_the_zone_of_the_job(zone: str, text: str) -> None:
    run = seen_by(logical_time=INSTANT_MS, time_zone=zone)
    assert run.scheduled_at.isoformat() == text
    assert run.logical_date.isoformat() == text[:10]


def test_a_zone_that_the_host_does_not_know_is_utc() -> None:
    run = seen_by(logical_time=INSTANT_MS, time_zone="Moon/Tranquility")
    assert run.scheduled_at.isoformat() == "2024-05-01T14:30:00.123000+00:00"


def test_the_epoch_is_a_time() -> None:
    assert seen_by(logical_time=0, time_zone="UTC").scheduled_at == datetime(1970, 1, 1, tzinfo=timezone.utc)


def test_from_an_older_console_it_is_the_time_of_the_trigger() -> None:
    run = seen_by()
    assert run.scheduled_at == datetime.fromtimestamp(TRIGGERED_MS / 1000, timezone.utc)
    assert run.scheduled_at.tzinfo == start_zone()
    assert run.logical_date == run.scheduled_at.date()


def test_outside_a_run_there_is_none() -> None:
    with pytest.raises(RuntimeError, match="no run here"):
        _ = context.scheduled_at
    with pytest.raises(RuntimeError, match="no run here"):
        _ = context.logical_date


def test_an_executor_hands_it_to_handlers(start: MakeExecutor, handlers: HandlerRegistry) -> None:
    seen: list[datetime] = []
    handlers.job("see")(lambda: seen.append(context.scheduled_at))
    start().accepted(1, executorHandler="see", logicalTime=INSTANT_MS, timeZone="Asia/Tokyo")
    eventually(lambda: len(seen) == 1)
    assert seen[0].isoformat() == "2024-05-01T23:30:00.123000+09:00"


@pytest.mark.parametrize(
    "at",
    [
        datetime(2024, 5, 1, 2, tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime(2024, 5, 1, 2, tzinfo=timezone.utc),
        datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(2024, 5, 1, 2, tzinfo=timezone(-timedelta(hours=3, minutes=30))),
    ],
)
def test_a_test_of_a_handler_can_set_it(at: datetime) -> None:
    seen: list[tuple[datetime, date]] = []
    run_handler(lambda: seen.append((context.scheduled_at, context.logical_date)), scheduled_at=at)
    assert seen == [(at, date(2024, 5, 1))]
    assert seen[0][0].utcoffset() == at.utcoffset()


def test_a_test_cannot_set_one_without_a_zone() -> None:
    with pytest.raises(ValueError, match="needs a time zone"):
        run_handler(lambda: None, scheduled_at=datetime(2024, 5, 1))
