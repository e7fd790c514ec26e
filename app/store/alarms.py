"""`xxl_job_alarm`: alarms to be told, exactly one a run."""

from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.models.alarm import Alarm
from app.store import bulk


def insert_alarms(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert alarms; a run that has one already keeps it."""
    bulk.insert_ignore(session, Alarm, rows)
