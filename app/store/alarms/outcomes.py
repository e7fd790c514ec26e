"""Outcomes of the newest alarms: what each target answered, for the health of channels."""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.store.pickers.overview import GroupIds, in_groups

#: newest alarms that are read; of an installation with more in the period, the older ones are left out
READ_MAX = 3_000


class AlarmOutcome(NamedTuple):
    """Result of the last attempt to send an alarm, as stored."""

    job_id: int
    state: str
    created_ms: Millis
    #: end of the lease of the last attempt; 0: there was none
    lease_until: Millis
    #: JSON of the result of each target
    outcome: str


def read_newest(session: Session, group_ids: GroupIds, *, since_ms: Millis) -> list[AlarmOutcome]:
    """Return the outcomes of the newest alarms since an instant, of runs of these groups (None: of any).

    One statement, which reads at most READ_MAX rows by id.
    """
    first = select(func.max(Alarm.id) - READ_MAX).scalar_subquery()
    columns = (Alarm.job_id, Alarm.state, Alarm.created_ms, Alarm.lease_until, Alarm.outcome)
    query = select(*columns).where(Alarm.id > first, Alarm.created_ms >= since_ms, Alarm.outcome.is_not(None))
    if group_ids is not None:
        query = query.join(JobLog, JobLog.id == Alarm.log_id).where(*in_groups(JobLog.job_group, group_ids))
    return [AlarmOutcome._make(row) for row in bulk.read_rows(session, query.order_by(Alarm.id))]
