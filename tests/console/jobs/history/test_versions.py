"""Versions of a job: in its tabs, compared with the job now, and restored."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.clock import now_ms
from app.console.jobs.history import version_words
from app.console.jobs.history.version_rows import LENGTH
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.services.auditing import audit
from app.services.jobs import jobs, versions
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import ACTOR, Console, add_group, add_job, job_draft


def edit(job_id: int, group_id: int, *, via: str = "", source: str = "", **changes: Any) -> None:
    actor = replace(ACTOR, via=via)
    with session_scope() as session, versions.changes_from(source):
        jobs.update_job(session, job_id, job_draft(group_id, **changes), actor=actor, clock=now_ms)


def listed(console: Console, job_id: int, more: str = "") -> str:
    return text_of(console.get(f"/jobinfo/{job_id}?tab=versions{more}"))


def test_versions_show_author_source_and_changed_fields_in_words(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, executor_route_strategy="FIRST", executor_timeout=0)
    edit(job_id, group_id, via="token ci", executor_route_strategy="ROUND", executor_timeout=30)
    edit(job_id, group_id, source="apply infra@1a2b3c", executor_param="<b>", executor_route_strategy="ROUND")
    shown = listed(admin, job_id)
    assert f"{ACTOR.username} · apply infra@1a2b3c" in shown
    assert f"{ACTOR.username} · token ci" in shown
    assert "Route strategy: First → Round robin" in shown
    assert "Timeout: none → 30 s" in shown
    assert "Job parameter: – → <b>" in shown
    assert "The job as it was added" in shown


def test_a_version_is_compared_with_the_job_now_and_restored(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, tags=("night",), executor_param="first")
    edit(job_id, group_id, tags=(), executor_param="second")
    page = f"/jobinfo/{job_id}/versions/1"
    assert f'href="/xxl-job-admin{page}"' in markup_of(admin.get(f"/jobinfo/{job_id}?tab=versions"))
    shown = text_of(admin.get(page))
    assert "Job parameter second first" in shown
    assert "Tags – night" in shown
    assert "Route strategy" not in shown.split("All fields")[0], "equal fields are not compared"
    answer = submit(admin, f"{page}/restore")
    assert path_after(answer).startswith(f"/jobinfo/{job_id}?tab=versions")
    with read_scope() as session:
        assert session.get_one(Job, job_id).executor_param == "first"
    assert "restored version 1" in listed(admin, job_id)
    assert "The job has these fields now." in text_of(admin.get(page))
    assert admin.get(f"/jobinfo/{job_id}/versions/9").status_code == 404


def test_a_refused_restoring_names_every_reason(admin: Console) -> None:
    group_id = add_group()
    child_id = add_job(group_id)
    job_id = add_job(group_id, child_jobid=str(child_id))
    edit(job_id, group_id)
    with session_scope() as session:
        session.delete(session.get_one(Job, child_id))
    answer = submit(admin, f"/jobinfo/{job_id}/versions/1/restore")
    assert answer.status_code == 400
    assert f"The version cannot be restored: Child job id ({child_id}) was not found" in text_of(answer)


def test_a_version_with_a_child_that_its_user_may_not_run_is_refused_on_its_page(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    job_id = add_job(group_id, child_jobid=str(add_job(other_id)))
    edit(job_id, group_id)
    editor = normal_user(group_id, other_id, rights={other_id: frozenset({Right.VIEW})})
    answer = submit(editor, f"/jobinfo/{job_id}/versions/1/restore")
    assert answer.status_code == 400
    assert "You have no permission to run one of these child jobs" in text_of(answer)


def test_users_without_the_right_to_edit_compare_only(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    edit(job_id, group_id, executor_param="x")
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    assert "restore" not in listed(reader, job_id)
    page = reader.get(f"/jobinfo/{job_id}/versions/1")
    assert "Job parameter x –" in text_of(page)
    assert "/restore" not in page.text


def test_what_another_program_changed_is_named(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    with session_scope() as session:
        session.get_one(Job, job_id).executor_timeout = 9
    note = "Another program on this database has changed the job since."
    assert note in listed(admin, job_id)
    edit(job_id, group_id, executor_timeout=5)
    shown = listed(admin, job_id)
    assert note not in shown
    assert "Changed by another program on this database Timeout: none → 9 s" in shown
    assert "Timeout: 9 s → 5 s" in shown


def test_older_versions_are_on_further_pages(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    for number in range(LENGTH):
        edit(job_id, group_id, executor_timeout=number + 1)
    first = admin.get(f"/jobinfo/{job_id}?tab=versions")
    assert "?tab=versions&amp;before=2#versions" in first.text
    assert "The job as it was added" not in text_of(first)
    last = admin.get(f"/jobinfo/{job_id}?tab=versions&before=2")
    assert "The job as it was added" in text_of(last)
    assert "before=1" not in last.text


def history(console: Console, job_id: int) -> str:
    return text_of(console.get(f"/jobinfo/{job_id}?tab=history")).partition("Change Version Actions")[2]


def test_history_entries_link_the_version_they_made(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    edit(job_id, group_id, executor_timeout=30)
    submit(admin, f"/jobinfo/{job_id}/start")
    submit(admin, f"/jobinfo/{job_id}/versions/1/restore")
    shown = history(admin, job_id)
    order = [
        "· restored version 1 changed job",
        "Timeout: 30 s → none Version 3 current",
        "switched on",
        "Timeout: none → 30 s Version 2 Compare and restore",
        "added job",
        "Version 1",
    ]
    places = [shown.index(each) for each in order]
    assert places == sorted(places), shown
    assert shown.count("Version ") == 3, "each once"
    assert (
        f'href="/xxl-job-admin/jobinfo/{job_id}/versions/2"'
        in admin.get(f"/jobinfo/{job_id}?tab=history").text
    )


def test_the_history_has_versions_without_an_entry(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    with audit.collecting():
        edit(job_id, group_id, source="apply infra@1a2b3c", executor_timeout=30)
    with session_scope() as session:
        session.get_one(Job, job_id).executor_timeout = 9
    edit(job_id, group_id, executor_timeout=5)
    shown = history(admin, job_id)
    assert f"{ACTOR.username} · apply infra@1a2b3c changed job {job_id}" in shown
    assert "Timeout: none → 30 s Version 2" in shown
    assert "Changed by another program on this database Timeout: 30 s → 9 s Version 3" in shown
    assert "Timeout: 9 s → 5 s Version 4 current" in shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("", ""),
        ("import jobs.json", "import jobs.json"),
        ("import", "import"),
        ("undo of apply 12", "undo of apply 12"),
        ("restore 3, token ci", "restored version 3, token ci"),
        ("cron of ops", "cron of ops"),
        ("token", "token"),
    ],
)
def test_sources_are_words(admin: Console, source: str, shown: str) -> None:
    with admin.app.test_request_context():
        assert version_words.source_text(source) == shown
