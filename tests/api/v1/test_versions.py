"""API: versions of a job, listed by pages, read and restored."""

from collections.abc import Callable

import pytest

from app.domain.access.permissions import Right
from app.models.code import JobVersion
from app.models.job import Job
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_group, only_row, remove
from tests.support.jobs import add, update

pytestmark = pytest.mark.usefixtures("database")


def test_versions_are_listed_by_pages_and_read_with_all_fields(api: Api) -> None:
    group_id = make_group().id
    job_id = add(group_id)
    update(job_id, group_id, executor_param="x")
    update(job_id, group_id, executor_param="y")
    page = api.get(f"/jobs/{job_id}/versions?limit=2").json
    assert [(each["number"], each["changes"]) for each in page["items"]] == [
        (3, [{"field": "param", "old": "x", "new": "y"}]),
        (2, [{"field": "param", "old": "", "new": "x"}]),
    ]
    last = api.get(f"/jobs/{job_id}/versions?limit=2&cursor={page['next_cursor']}").json
    assert last["items"] == [
        {
            "number": 1,
            "changed_at": "2024-05-01T03:04:05.000Z",
            "username": "ada",
            "source": "",
            "changes": None,
        }
    ]
    assert last["next_cursor"] is None
    assert api.get(f"/jobs/{job_id}/versions/2").json["fields"]["param"] == "x"
    for path in (f"/jobs/{job_id}/versions/9", f"/jobs/{job_id + 1}/versions", "/jobs/9/versions/1"):
        assert api.get(path).status_code == 404


def test_a_version_is_restored_by_token_and_a_dry_run_changes_nothing(api: Api) -> None:
    group_id = make_group().id
    job_id = add(group_id, executor_param="x")
    update(job_id, group_id, executor_param="y")
    path = f"/jobs/{job_id}/versions/1/restore"
    planned = api.post(f"{path}?dry_run=true").json
    assert (planned["number"], planned["fields"]["param"]) == (3, "x")
    assert only_row(Job, id=job_id).executor_param == "y"
    restored = api.post(path).json
    assert (restored["number"], restored["source"]) == (3, "restore 1, token admin")
    assert only_row(Job, id=job_id).executor_param == "x"
    assert api.post(path).json["number"] == 3, "the job has these fields already"
    assert len(all_rows(JobVersion, job_id=job_id)) == 3


def test_a_refused_restoring_names_the_member(api: Api) -> None:
    group_id = make_group().id
    child_id = add(group_id, job_desc="child")
    job_id = add(group_id, child_jobid=str(child_id))
    update(job_id, group_id)
    remove(only_row(Job, id=child_id))
    answer = api.post(f"/jobs/{job_id}/versions/1/restore")
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json["errors"]] == ["children"]


def test_versions_need_the_right_to_view_and_restoring_that_to_edit(api_of: Callable[..., Api]) -> None:
    group_id, other_id = make_group().id, make_group(app_name="other").id
    job_id = add(group_id, executor_param="x")
    reader = api_of(Right.VIEW, group_ids=[group_id], name="reader")
    editor = api_of(Right.VIEW, Right.EDIT, group_ids=[other_id], name="editor")
    assert reader.get(f"/jobs/{job_id}/versions").status_code == 200
    assert reader.post(f"/jobs/{job_id}/versions/1/restore").status_code == 403
    assert editor.get(f"/jobs/{job_id}/versions/1").status_code == 404
    assert editor.post(f"/jobs/{job_id}/versions/1/restore").status_code == 404
