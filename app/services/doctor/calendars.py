"""Check of calendars: those in use that do not know the coming days. Reads only."""

from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, now_ms
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.calendars.calendars import list_ending, list_names, list_naming


@check("calendars")
def check_calendars(session: Session, config: Config) -> Findings:
    """Name calendars in use that do not know today, or from 1 November on the next year; and lost ones."""
    today = datetime.fromtimestamp(now_ms() // SECOND_MS, ZoneInfo(config.time_zone)).date()
    ending = [
        f"{row.calendar.name} (until {row.calendar.valid_until})" for row in list_ending(session, today)
    ]
    if ending:
        yield warning(
            f"calendars do not know the coming days: {name_list(ending)}",
            "import the days that were announced: duetime calendars import NAME --country CODE --years YEARS",
        )
    names = set(list_names(session))
    jobs = [f"{job.id} ({job.rule.name})" for job in list_naming(session) if job.rule.name not in names]
    if jobs:
        yield warning(
            f"jobs run on all days, because the calendars that they name do not exist: {name_list(jobs)}",
            "make these calendars, or choose others in the jobs",
        )
    yield NothingFound("calendars of jobs know the coming days")
