"""Pages of background tasks: progress with and without a worker, cancel, rights, the list."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from sqlalchemy import select

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.node import Node
from app.models.task import Task
from tests.console.pages import is_at_login, path_after, submit, text_of
from tests.console.tasks import run_tasks
from tests.support.console import Console, add_group, add_job
from tests.support.factories import all_rows, only_row, save


def start_jobs(console: Console, count: int = 3) -> str:
    """Submit a bulk start; return the path of its task."""
    group_id = add_group()
    ids = "&".join(f"id={add_job(group_id)}" for _ in range(count))
    return path_after(submit(console, f"/jobinfo/bulk/start?{ids}"))


def test_without_a_login_there_are_no_tasks(console: Console) -> None:
    for path in ("/tasks", "/tasks/1"):
        assert is_at_login(console.get(path))
    assert is_at_login(console.post("/tasks/1/cancel"))


def test_a_task_in_progress_reloads_itself_with_and_without_scripts(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = start_jobs(admin)
    monkeypatch.setattr("app.services.tasks.runner.TURN_S", 0)
    run_tasks(admin)
    page = admin.get(path)
    assert "1 of 3 jobs processed." in text_of(page)
    assert 'max="3" value="1"' in page.text
    reload = re.search(
        r'<noscript><meta http-equiv="refresh" content="2; url=([^"]+)"></noscript>', page.text
    )
    assert reload is not None
    assert unescape(reload[1]) == f"/xxl-job-admin{path}&refresh=auto"
    assert "js/task." in page.text
    assert "You can leave this page" in text_of(page)
    for _ in range(2):
        run_tasks(admin)
    ended = admin.get(path)
    assert "3 of 3 jobs: switched on." in text_of(ended)
    assert "js/task." not in ended.text
    assert "refresh" not in ended.text.split("</head>")[0]


def test_the_page_says_when_no_scheduler_node_is_running(admin: Console) -> None:
    path = start_jobs(admin)
    assert "Waiting for a scheduler node: none is running" in text_of(admin.get(path))
    at_ms = now_ms()
    save(
        Node(name="one", kind="workers", epoch=1, started_ms=at_ms, heartbeat_ms=at_ms + 60_000, version="1")
    )
    assert "none is running" not in text_of(admin.get(path))


def test_the_rest_of_a_task_is_cancelled(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    path = start_jobs(admin)
    with monkeypatch.context() as short:
        short.setattr("app.services.tasks.runner.TURN_S", 0)
        run_tasks(admin)
    cancel = path.split("?")[0] + "/cancel"
    assert admin.post(cancel).status_code == 403, "without the token of a form"
    assert path_after(submit(admin, cancel, next="/xxl-job-admin/jobinfo?author=x")).startswith(
        path.split("?")[0]
    )
    run_tasks(admin)
    result = text_of(admin.get(path))
    assert "Cancelled. Changes made before are kept." in result
    assert "1 of 3 jobs: switched on." in result
    assert sum(job.trigger_status for job in all_rows(Job)) == 1
    assert submit(admin, cancel).status_code == 303, "it has ended: its result is shown"
    assert only_row(Task).state == "CANCELLED"
    cancelled = [entry for entry in all_rows(AuditEntry) if entry.action == "task.cancel"]
    assert [(entry.username, entry.object_type, entry.object_id) for entry in cancelled] == [
        ("admin", "task", only_row(Task).id)
    ]


@pytest.mark.databases("mariadb", "postgresql")
def test_a_cancel_does_not_wait_for_a_long_piece(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.tasks.tasks.CANCEL_WAIT_S", 0.05)
    cancel = start_jobs(admin).split("?")[0] + "/cancel"
    with session_scope() as session:
        session.scalars(select(Task).with_for_update()).all()
        refused = submit(admin, cancel)
        assert (refused.status_code, "The task is busy; try again" in text_of(refused)) == (409, True)
    assert submit(admin, cancel).status_code == 303
    assert only_row(Task).state == "CANCELLED"


def test_a_task_is_its_users_and_the_administrators(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    norman = normal_user(group_id)
    path = path_after(submit(norman, f"/jobinfo/bulk/stop?id={add_job(group_id)}"))
    other = normal_user(group_id, username="otto")
    assert other.get(path).status_code == 404
    assert submit(other, path.split("?")[0] + "/cancel").status_code == 404
    assert "Switch schedules off" not in text_of(other.get("/tasks"))
    assert "Switch schedules off" in text_of(norman.get("/tasks"))
    assert "norman" in text_of(admin.get("/tasks"))
    assert norman.get(path).status_code == admin.get(path).status_code == 200
    assert norman.get("/tasks/2147483647").status_code == 404


def test_a_task_leads_back_to_the_list_it_came_from_only_here(admin: Console) -> None:
    path = start_jobs(admin).split("?")[0]
    run_tasks(admin)
    back = "/xxl-job-admin/jobinfo?author=ann"
    assert f'href="{back}">Back to the list' in admin.get(f"{path}?next={back.replace('?', '%3F')}").text
    assert 'href="//evil.example' not in admin.get(f"{path}?next=//evil.example/x").text


@pytest.mark.parametrize("state", ["PENDING", "DONE"])
def test_a_task_of_a_newer_version_is_shown_without_its_name(admin: Console, state: str) -> None:
    stored = {
        "idempotency_key": "k",
        "kind": "newer",
        "action": "x",
        "parameters": "{}",
        "created_ms": now_ms(),
    }
    task = save(Task(**stored, user_id=1, username="admin", state=state))
    assert "admin" in text_of(admin.get("/tasks"))
    assert "<h1>Task</h1>" in admin.get(f"/tasks/{task.id}").text


def test_tasks_are_listed_with_their_state(admin: Console) -> None:
    assert "No tasks" in text_of(admin.get("/tasks"))
    start_jobs(admin)
    assert "Switch schedules on admin Waiting 0 / 3" in text_of(admin.get("/tasks"))
    run_tasks(admin)
    assert "Switch schedules on admin Done 3 / 3" in text_of(admin.get("/tasks"))
