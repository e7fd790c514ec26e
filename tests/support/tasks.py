"""Helpers of the tests of tasks, for all that need them."""

import pytest

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor
from app.domain.enums import Role
from app.models.fire import Fire
from app.models.job import Job
from app.models.task import Task
from app.models.user import User
from app.services.jobs import bulk
from app.services.jobs.bulk import BulkAction, BulkParams
from app.services.tasks.tasks import TaskDraft, submit_task
from app.store.nodes import tasks
from tests.support.factories import T0, all_rows, save


def add_user(username: str = "ann", *, role: Role = Role.ADMIN, permission: str = "") -> Actor:
    """Commit a user and return what they act as."""
    user = save(User(username=username, password="x", role=int(role), permission=permission))
    return Actor(
        user_id=user.id, username=username, is_admin=role is Role.ADMIN, rights={}, address="10.1.2.3"
    )


def submit(draft: TaskDraft, actor: Actor, *, now_ms: Millis = T0) -> int:
    with session_scope() as session:
        task_id, _is_new = submit_task(session, draft, actor=actor, now_ms=now_ms)
        return task_id


def stored(task_id: int) -> Task:
    with read_scope() as session:
        task = tasks.find_task(session, task_id)
        assert task is not None
        return task


def outcomes(task_id: int) -> list[tuple[int, str, str | None]]:
    """Return (object id, outcome, detail) of the result lines."""
    with read_scope() as session:
        return [(line.object_id, line.outcome, line.detail) for line in tasks.find_lines(session, task_id)]


def run_jobs(*jobs: Job, key: str = "k") -> TaskDraft:
    return bulk.draft_task(BulkParams(BulkAction.RUN, [job.id for job in jobs]), form_key=key)


def fired() -> list[int]:
    return sorted(fire.job_id for fire in all_rows(Fire))


def one_piece_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a turn end after its first piece."""
    monkeypatch.setattr("app.services.tasks.runner.TURN_S", 0)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now_ms = T0

    def __call__(self) -> Millis:
        return self.now_ms
