"""Schedules in words, for the lists: ``every 90 seconds``."""

from app.console.web.language import _
from app.console.web.languages import language_of_request
from app.domain.cron_words import describe
from app.domain.enums import ScheduleType
from app.models.job import Job


def schedule_words(job: Job) -> str:
    """Return what a job's schedule means in the reader's language; empty if there are no words for it."""
    conf = job.schedule_conf or ""
    match job.schedule_type:
        case ScheduleType.CRON:
            words = describe(conf, language_of_request())
            return words if words != conf else ""
        case ScheduleType.FIX_RATE:
            return _("every %(n)s seconds", n=conf)
        case ScheduleType.FIX_DELAY:
            return _("%(n)s seconds after each run", n=conf)
        case ScheduleType.AT:
            return _("once")
        case _:
            return ""
