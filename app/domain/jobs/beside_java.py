"""Schedules that a Java admin on the same database can read (XXL_JOB_SHARED_WITH_JAVA)."""

from app.domain.enums import ScheduleType
from app.domain.jobs.fields import JobDraft
from app.domain.schedules.schedule import Schedule, has_day_rules_listed
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: numbers of cron fields that XXL-JOB reads
QUARTZ_FIELDS = (6, 7)


def check_readable_by_java(draft: JobDraft, schedule: Schedule) -> None:
    """Raise InvalidInput for what a Java admin cannot read of a schedule."""
    is_foreign = schedule.type in {ScheduleType.FIX_DELAY, ScheduleType.AT}
    if schedule.type is ScheduleType.CRON:
        is_foreign = len(schedule.conf.split()) not in QUARTZ_FIELDS or has_day_rules_listed(schedule.conf)
    if is_foreign:
        raise InvalidInput(
            "scheduleConf",
            N_("A Java admin on the same database cannot read this schedule (XXL_JOB_SHARED_WITH_JAVA)"),
        )
    if draft.time_zone or draft.not_before_ms or draft.not_after_ms:
        raise InvalidInput(
            "timeZone",
            N_(
                "A Java admin on the same database supports neither a time zone nor a validity period"
                " (XXL_JOB_SHARED_WITH_JAVA)"
            ),
        )
