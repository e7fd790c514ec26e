"""API: previews of schedules without a job."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from app.api.v1.endpoint import ANY_TOKEN, Call, Resource
from app.api.v1.schemas.jobs import NextInstant, NextTime, NextTimes, ScheduleIn
from app.clock import LATEST_MS, Millis
from app.domain.calendars.preview import PreviewInstant, preview
from app.domain.calendars.rules import check_rule
from app.domain.enums import ScheduleType
from app.domain.jobs.members import MEMBER_OF_ERROR
from app.domain.schedules.schedule import Schedule, check_schedule, next_times
from app.services.calendars.lookup import StoredCalendars
from app.services.jobs.details import FATES_MAX

resource = Resource("schedules", "Schedules, without a job.", MEMBER_OF_ERROR)


@resource.post("/schedules/next-times", body=ScheduleIn, answer=NextTimes, right=ANY_TOKEN)
def try_schedule(call: Call, body: ScheduleIn) -> NextTimes:
    """Return the next times of a schedule from now on, by its calendar and the blackouts of all jobs.

    Nothing is stored. A fixed delay has none, because they depend on how long the runs take.
    """
    calendars = StoredCalendars(call.session)
    rule = "" if body.calendar is None else body.calendar.model_dump_json()
    schedule = Schedule(
        ScheduleType(body.schedule_type),
        body.schedule.strip(),
        body.time_zone or call.config.time_zone,
        body.not_before or 0,
        body.not_after or 0,
        rule,
    )
    check_schedule(schedule)
    check_rule(schedule, calendars, now_ms=call.now_ms)
    schedule = replace(schedule, rules=calendars.book().of_job(0, 0, rule))
    if schedule.type is ScheduleType.FIX_DELAY:
        return times_out([], schedule.time_zone)
    fates = preview(schedule, call.now_ms, body.count, most=FATES_MAX) if schedule.rules is not None else []
    return times_out(next_times(schedule, call.now_ms, body.count), schedule.time_zone, fates)


def times_out(times: Iterable[Millis], time_zone: str, fates: Sequence[PreviewInstant] = ()) -> NextTimes:
    """Return instants with their local times in a zone, and what becomes of those of the expression."""
    local = ZoneInfo(time_zone)
    return NextTimes(
        time_zone=time_zone,
        items=[NextTime(at=at_ms, local=_local(at_ms, local)) for at_ms in times],
        instants=[
            NextInstant(
                at=fate.raw_ms,
                local=_local(fate.raw_ms, local),
                fate=fate.fate,
                runs_at=fate.due_ms,
                day_kind=fate.day_kind,
                day_name=fate.day_name,
                is_known=fate.is_known,
                merged_into=fate.into_ms,
                reason=fate.reason,
                has_more=fate.has_more,
            )
            for fate in fates
        ],
    )


def _local(at_ms: Millis, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(min(at_ms, LATEST_MS) // 1000, zone).isoformat()
