"""Check of blackouts: those that last for long, and what a Java admin ignores. Reads only."""

from sqlalchemy.orm import Session

from app.clock import DAY_MS, now_ms
from app.services.doctor.findings import Findings, NothingFound, check, name_list, warning
from app.settings.config import Config
from app.store.calendars import blackouts
from app.store.nodes import diagnosis

#: one without an end is named after so many days
DAYS = 7


@check("blackouts")
def check_blackouts(session: Session, config: Config) -> Findings:
    """Name blackouts without an end that are old, and calendars and blackouts beside a Java admin."""
    lasting = blackouts.list_lasting(session, None, now_ms=now_ms())
    since_ms = now_ms() - DAYS * DAY_MS
    old = [
        f"{row.id} ({row.blackout.reason})"
        for row in reversed(lasting)
        if row.blackout.until_ms is None and not row.blackout.cron and row.blackout.from_ms < since_ms
    ]
    if old:
        yield warning(
            f"blackouts without an end are on for more than {DAYS} days: {name_list(old)}",
            "end those that are no longer needed: duetime blackouts end ID",
        )
    if config.shared_with_java:
        java_limits = [
            *(f"blackout {row.id}" for row in reversed(lasting)),
            *(f"calendar of job {job_id}" for job_id in diagnosis.find_with_calendar(session)),
        ]
        if java_limits:
            yield warning(
                f"what runs of a Java admin do not keep: {name_list(java_limits)}",
                "end and remove these, or end the Java admin and unset XXL_JOB_SHARED_WITH_JAVA",
            )
    yield NothingFound(f"no blackout without an end is on for more than {DAYS} days")
