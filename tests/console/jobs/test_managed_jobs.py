"""Jobs managed as code: marked fields in the form, and drift on the page of the job."""

from typing import Any

from app.database.engine import read_scope
from app.models.job import Job
from tests.console.pages import markup_of, submit, text_of
from tests.services.code.steps import CLOSE, NIGHTLY, apply
from tests.support.console import Console, add_group, add_job
from tests.support.factories import only_row

DOCUMENT: dict[str, Any] = {
    "groups": {"books": {"title": "Books"}},
    "jobs": {"books/close": {**CLOSE, **NIGHTLY, "param": "first"}},
}
CHIP = "managed by code"


def form_values(console: Console, job_id: int) -> dict[str, Any]:
    """Return what the form of a job sends if nothing is changed."""
    with read_scope() as session:
        job = session.get_one(Job, job_id)
        return {
            **{name: getattr(job, name) or "" for name in ("job_group", "job_desc", "author")},
            **{name: getattr(job, name) or "" for name in ("executor_handler", "executor_param")},
            "schedule_type": job.schedule_type,
            "cron": job.schedule_conf,
            "executor_route_strategy": job.executor_route_strategy,
            "executor_block_strategy": job.executor_block_strategy,
            "misfire_strategy": job.misfire_strategy,
            "delivery": job.delivery,
            "retry_backoff_percent": "100",
        }


def test_the_form_marks_the_fields_that_code_owns(admin: Console) -> None:
    apply(DOCUMENT)
    job_id = only_row(Job).id
    page = admin.get(f"/jobinfo/{job_id}/edit")
    shown = text_of(page)
    assert "Managed by code: books/close · infra@1a2b3c" in shown
    assert f"Job parameter {CHIP}" in shown
    assert f"Cron * {CHIP}" in shown
    assert f"Timeout {CHIP}" not in shown
    other = add_job(add_group())
    assert CHIP not in text_of(admin.get(f"/jobinfo/{other}/edit"))
    assert CHIP not in text_of(admin.get(f"/jobinfo/{job_id}/copy")), "a copy is a job of the console"


def test_a_changed_owned_field_is_saved_and_shown_as_drift(admin: Console) -> None:
    apply(DOCUMENT)
    job_id = only_row(Job).id
    page = f"/jobinfo/{job_id}"
    shown = text_of(admin.get(page))
    assert CHIP in shown
    assert "In the code" not in shown
    values = form_values(admin, job_id) | {"executor_param": "second", "executor_timeout": "9"}
    assert submit(admin, f"{page}/edit", **values).status_code == 303
    assert only_row(Job).executor_param == "second"
    shown = text_of(admin.get(page))
    assert "Managed by code: 1 field differs Field In the code Now Job parameter first second" in shown
    assert "books/close · infra@1a2b3c" in shown
    assert CHIP not in text_of(admin.get("/jobinfo"))
    assert "In the code" not in markup_of(admin.get(f"{page}?tab=runs"))


def test_restoring_a_field_that_code_owns_warns(admin: Console) -> None:
    apply(DOCUMENT)
    apply({**DOCUMENT, "jobs": {"books/close": {**CLOSE, **NIGHTLY, "param": "second"}}})
    job_id = only_row(Job).id
    shown = text_of(admin.get(f"/jobinfo/{job_id}/versions/1"))
    assert "Managed by code: books/close" in shown
    assert f"Job parameter {CHIP} second first" in shown
    assert CHIP not in text_of(admin.get(f"/jobinfo/{job_id}/versions/2"))


def test_the_switch_of_an_apply_is_in_the_history_of_its_job(admin: Console) -> None:
    for is_on in (True, False):
        apply({**DOCUMENT, "jobs": {"books/close": {**CLOSE, **NIGHTLY, "enabled": is_on}}})
    job_id = only_row(Job).id
    shown = text_of(admin.get(f"/jobinfo/{job_id}?tab=history"))
    assert f"ci · apply infra@1a2b3c switched off job {job_id} {CLOSE['description']}" in shown
    assert f"ci · apply infra@1a2b3c switched on job {job_id} {CLOSE['description']}" in shown
