"""Checks of schedules: days that another release of XXL-JOB reads otherwise. Reads only."""

from sqlalchemy.orm import Session

from app.domain.schedules.schedule import has_day_rules_listed
from app.services.doctor.findings import Findings, NothingFound, check, named, warning
from app.store.nodes import diagnosis


@check("schedules")
def check_schedules(session: Session) -> Findings:
    """Name jobs of XXL-JOB with L or W in a list of days, which it reads as here since 3.1 only.

    A job that was saved here is left out: its next times were shown then.
    """
    jobs = diagnosis.find_unversioned_lists(session)
    names = [f"{job.id} ({job.schedule_conf})" for job in jobs if _is_listed(job.schedule_conf)]
    if names:
        yield warning(
            "jobs with L or W in a list of days, each of which has its own rule here and in XXL-JOB 3.1;"
            f" XXL-JOB 2.4 took W for the smallest day of the list, and refused L: {named(names)}",
            "compare their next run times in the console, and save each job; in 2.4, 1W,15W was 1W",
        )
    yield NothingFound("those of XXL-JOB mean the same here")


def _is_listed(expression: str) -> bool:
    try:
        return has_day_rules_listed(expression)
    except IndexError:  # It has too few fields, which the scan reports.
        return False
