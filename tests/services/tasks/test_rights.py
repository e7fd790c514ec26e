"""Rights of background tasks: those the user has at each piece, not those of the submit."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.domain.code.document import Document
from app.domain.code.plan import Plan
from app.domain.enums import Role
from app.domain.tasks import TaskKind
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User
from app.services.code import importing
from app.services.code.importing import ImportOptions
from app.services.runs import clearing
from app.services.runs.clearing import ClearRequest
from app.services.runs.logs import ClearType
from app.services.tasks.runner import TaskRunner
from app.services.tasks.task_step import Turn
from app.services.tasks.tasks import TaskDraft
from app.store.nodes import tasks
from tests.support.factories import T0, all_rows, make_job, make_log, only_row
from tests.support.tasks import add_user, fired, one_piece_each, outcomes, run_jobs, stored, submit

pytestmark = pytest.mark.usefixtures("database")

MakeRunner = Callable[..., TaskRunner]


def granted(actor: Actor, job: Job) -> Actor:
    """Return the actor with the right to run jobs in the job's group."""
    return replace(actor, rights={job.job_group: frozenset({Right.VIEW, Right.OPERATE})})


def test_rights_are_those_of_the_moment(make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, lost = make_job(), make_job()
    actor = add_user("norman", role=Role.NORMAL, permission=f"{mine.job_group},{lost.job_group}")
    task_id = submit(run_jobs(mine, lost, make_job()), actor)
    one_piece_each(monkeypatch)
    runner = make_runner()
    runner.tick(T0)
    with session_scope() as session:
        session.execute(update(User).where(User.id == actor.user_id).values(permission=str(mine.job_group)))
    runner.tick(T0)
    runner.tick(T0)
    assert stored(task_id).state == "DONE"
    assert [outcome for _job, outcome, _detail in outcomes(task_id)] == ["done", "refused", "refused"]
    assert fired() == [mine.id]


def test_clearing_stops_where_the_right_is_lost(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.store.runs.clearing.DELETE_BATCH", 2)
    job = make_job()
    for _ in range(5):
        make_log(job)
    actor = add_user("norman", role=Role.NORMAL, permission=str(job.job_group))
    wanted = ClearRequest(job.job_group, 0, ClearType.ALL)
    with read_scope() as session:
        bounds, total = clearing.freeze_bounds(session, wanted, actor=granted(actor, job), now_ms=T0)
    task_id = submit(clearing.draft_task(bounds, wanted, total, form_key="k"), actor)
    one_piece_each(monkeypatch)
    runner = make_runner()
    runner.tick(T0)
    with session_scope() as session:
        session.execute(update(User).where(User.id == actor.user_id).values(permission=""))
    runner.tick(T0)
    assert (stored(task_id).state, stored(task_id).done, total) == ("FAILED", 2, 5)
    assert len(all_rows(JobLog)) == 3
    entry = only_row(AuditEntry)
    assert (entry.action, entry.username, json.loads(entry.changes or "")["rows"]) == (
        "log.clear",
        "norman",
        2,
    )


def draft_import() -> TaskDraft:
    document = Document({}, {"sample-app/new": {"description": "new", "handler": "x"}}, {})
    return importing.draft_task(document, ImportOptions(), Plan(), form_key="k", inputs={})


def test_an_import_stores_nothing_where_the_right_is_lost(make_runner: MakeRunner) -> None:
    job = make_job()
    task_id = submit(draft_import(), add_user("nora", role=Role.NORMAL))
    make_runner().tick(T0)
    assert (stored(task_id).state, stored(task_id).done, stored(task_id).parameters) == ("FAILED", 0, "{}")
    assert [outcome for _job, outcome, _detail in outcomes(task_id)] == ["error"]
    assert [row.id for row in all_rows(Job)] == [job.id]


@pytest.mark.parametrize("state", ["CANCELLED", "FAILED"])
def test_the_text_of_an_import_is_not_kept_however_it_ends(make_runner: MakeRunner, state: str) -> None:
    def fail(_turn: Turn) -> None:
        raise KeyError

    task_id = submit(draft_import(), add_user())
    if state == "CANCELLED":
        with session_scope() as session:
            tasks.cancel_task(session, task_id, now_ms=T0)
    make_runner(pieces={TaskKind.IMPORT.value: fail}).tick(T0)
    assert (stored(task_id).state, stored(task_id).parameters) == (state, "{}")


@pytest.mark.parametrize("gone", [False, True], ids=["disabled", "deleted"])
def test_the_task_of_a_user_who_is_gone_fails_with_the_reason(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    jobs, actor = [make_job() for _ in range(2)], add_user()
    task_id = submit(run_jobs(*jobs), actor)
    one_piece_each(monkeypatch)
    runner = make_runner()
    runner.tick(T0)
    with session_scope() as session:
        user = session.get_one(User, actor.user_id)
        if gone:
            session.delete(user)
        user.disabled = 1
    runner.tick(T0)
    task = stored(task_id)
    assert (task.state, fired()) == ("FAILED", [jobs[0].id])
    assert json.loads(task.error or "")["params"] == {"user": "ann"}
