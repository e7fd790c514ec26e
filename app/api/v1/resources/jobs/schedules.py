"""API: previews of schedules without a job."""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from app.api.v1.endpoint import ANY_TOKEN, Call, Resource
from app.api.v1.schemas.jobs import NextTime, NextTimes, ScheduleIn
from app.clock import LATEST_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.jobs.members import MEMBER_OF_ERROR
from app.domain.schedules.schedule import Schedule, check_schedule, next_times

resource = Resource("schedules", "Schedules, without a job.", MEMBER_OF_ERROR)


@resource.post("/schedules/next-times", body=ScheduleIn, answer=NextTimes, right=ANY_TOKEN)
def try_schedule(call: Call, body: ScheduleIn) -> NextTimes:
    """Return the next times of a schedule from now on.

    Nothing is stored. A fixed delay has none, because they depend on how long the runs take.
    """
    schedule = Schedule(
        ScheduleType(body.schedule_type),
        body.schedule.strip(),
        body.time_zone or call.config.time_zone,
        body.not_before or 0,
        body.not_after or 0,
    )
    check_schedule(schedule)
    is_open = schedule.type is ScheduleType.FIX_DELAY
    return times_out([] if is_open else next_times(schedule, call.now_ms, body.count), schedule.time_zone)


def times_out(times: Iterable[Millis], time_zone: str) -> NextTimes:
    """Return instants with their local times in a zone."""
    local = ZoneInfo(time_zone)
    return NextTimes(
        time_zone=time_zone,
        items=[
            NextTime(at=at_ms, local=datetime.fromtimestamp(min(at_ms, LATEST_MS) // 1000, local).isoformat())
            for at_ms in times
        ],
    )
