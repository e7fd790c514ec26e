"""Upcoming times: the planned instant first, then those of the schedule."""

from typing import Any

import pytest

from app.errors import InvalidInput
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.services.jobs.details import planned_ms, upcoming
from tests.support.factories import T0

#: calendars and blackouts are read
pytestmark = pytest.mark.usefixtures("database")

MINUTE = 60_000
HOUR = 60 * MINUTE
#: the first minute after T0
NEXT = 1_714_532_700_000


def job(kind: str, conf: str, **columns: Any) -> Job:
    values = {"trigger_status": 0, "trigger_next_time": 0, "last_fire_ms": 0, "time_zone": "UTC"}
    bounds = {"not_before_ms": 0, "not_after_ms": 0}
    return Job(schedule_type=kind, schedule_conf=conf, **{**values, **bounds, **columns})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (job("CRON", "0 * * * * ?"), [NEXT, NEXT + MINUTE, NEXT + 2 * MINUTE]),
        (
            job("CRON", "0 * * * * ?", last_fire_ms=NEXT),
            [NEXT + MINUTE, NEXT + 2 * MINUTE, NEXT + 3 * MINUTE],
        ),
        (job("CRON", "0 * * * * ?", not_after_ms=NEXT), [NEXT]),
        (job("FIX_RATE", "60"), [T0 + MINUTE, T0 + 2 * MINUTE, T0 + 3 * MINUTE]),
        (
            job("FIX_RATE", "60", trigger_status=1, trigger_next_time=T0 + 5_000),
            [T0 + 5_000, T0 + 65_000, T0 + 125_000],
        ),
        (job("FIX_DELAY", "60"), []),
        (job("FIX_DELAY", "60", trigger_status=1, trigger_next_time=T0 + 5_000), [T0 + 5_000]),
        (job("FIX_DELAY", "60", trigger_status=1, trigger_next_time=AFTER_THE_CURRENT_RUN), []),
        (job("AT", "2024-05-01 03:05:00"), [NEXT]),
        (job("NONE", ""), []),
    ],
    ids=lambda value: f"{value.schedule_type} {value.trigger_status}" if isinstance(value, Job) else "",
)
def test_the_next_instants_of_a_job(given: Job, expected: list[int]) -> None:
    assert upcoming(given, 3, now_ms=T0) == expected


def test_an_invalid_schedule_of_an_adopted_job_names_its_field() -> None:
    with pytest.raises(InvalidInput) as caught:
        upcoming(job("CRON", "every day"), 3, now_ms=T0)
    assert caught.value.field == "scheduleConf"


def test_a_schedule_that_is_off_has_no_planned_instant() -> None:
    assert planned_ms(job("CRON", "0 * * * * ?", trigger_next_time=NEXT)) is None
    assert planned_ms(job("CRON", "0 * * * * ?", trigger_next_time=NEXT, trigger_status=1)) == NEXT
