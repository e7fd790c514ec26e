"""Check of limits: those that do not hold beside a Java admin, and runs that wait for long. Reads only."""

from sqlalchemy.orm import Session

from app.clock import DAY_MS, now_ms
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.nodes import diagnosis


@check("limits")
def check_limits(session: Session, config: Config) -> Findings:
    """Name limits where a Java admin starts runs that none counts, and jobs whose runs wait for long."""
    owners = diagnosis.find_limited(session) if config.shared_with_java else []
    if owners:
        yield warning(
            f"limits that runs of a Java admin do not keep, of {name_list(owners)}",
            "remove the limits of these, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
        )
    jobs = diagnosis.find_waiting_jobs(session, due_before_ms=now_ms() - DAY_MS)
    if jobs:
        yield warning(
            f"runs wait for a limit for more than a day, of jobs {name_list(list(map(str, jobs)))}",
            "see who has the slots: duetime runs list --state waiting; release slots of runs that have ended,"
            " or give the limit more",
        )
    yield NothingFound("no run waits for more than a day")
