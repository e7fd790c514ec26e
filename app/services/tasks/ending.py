"""Audit of the end of a background task."""

import json

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor
from app.domain.tasks import TaskKind
from app.models.task import Task
from app.services.auditing import audit


def record_end(session: Session, task: Task, *, now_ms: Millis) -> None:
    """Record the rows that a clearing of logs has deleted, however it ended.

    Every job of the other kinds is audited by itself.
    """
    if task.kind != TaskKind.CLEAR_LOGS or not task.done:
        return
    parameters = json.loads(task.parameters)
    changes = {
        "job_group": parameters["group_id"],
        "job_id": parameters["job_id"],
        "kind": parameters["kind_name"],
        "rows": task.done,
    }
    user = Actor(user_id=task.user_id, username=task.username, is_admin=False, address=task.address)
    target = ("job", parameters["job_id"])
    audit.record(session, "log.clear", actor=user, now_ms=now_ms, target=target, changes=changes)
