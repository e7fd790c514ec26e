"""Alarm list: alarms of the groups that a user may view."""

import json

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.models.alarm import Alarm
from app.models.promise import IncidentMessage
from app.services.alarms.targets import displayed
from app.services.executors import groups
from app.services.jobs import job_list
from app.store.alarms import listing as alarm_lists
from app.store.alarms.listing import AlarmFilter
from app.store.base.paging import Slice


def list_before(
    session: Session, alarm_filter: AlarmFilter, *, actor: Actor, before_id: int | None, limit: int
) -> Slice[Alarm]:
    """Return the newest alarms with an id below ``before_id`` (None: of all).

    Raises NotFound for a job or group that the actor may not see.
    """
    if alarm_filter.job_id is not None:
        job_list.get_job(session, alarm_filter.job_id, actor=actor, right=Right.VIEW)
    if alarm_filter.group_id is not None:
        groups.get_group(session, alarm_filter.group_id, actor=actor, right=Right.VIEW)
    visible = actor.group_ids(Right.VIEW)
    return alarm_lists.list_before(session, alarm_filter, visible, before_id=before_id, limit=limit)


def results_of(alarm: Alarm | IncidentMessage) -> list[tuple[str, str]]:
    """Return targets and their results at the last attempt; ``muted`` names who muted it."""
    try:
        results = json.loads(alarm.outcome or "{}")
    except ValueError:
        return []
    if not isinstance(results, dict):
        return []
    return [(displayed(str(target)), str(result)) for target, result in results.items()]
