"""Code of GLUE jobs over the API: saved as versions, for callers with the right to it."""

from collections.abc import Callable

import pytest

from app.domain.access.permissions import Right
from app.models.glue import GlueVersion
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_job


@pytest.fixture
def path(database: str) -> str:
    job = make_job(glue_type="GLUE_SHELL", glue_source="echo 0", executor_handler="")
    return f"/jobs/{job.id}/code"


def test_code_is_saved_as_a_version_that_can_be_read(api: Api, path: str) -> None:
    assert api.get(path).json["source"] == "echo 0"
    etag = api.get(path).headers["ETag"]
    saved = api.put(path, {"source": "echo 1", "remark": "first"}, headers={"If-Match": etag})
    assert (saved.status_code, saved.json) == (200, api.get(path).json)
    assert (saved.json["source"], saved.json["remark"]) == ("echo 1", "first")
    again = {"source": "echo 2", "remark": "second"}
    assert api.put(path, again, headers={"If-Match": etag}).status_code == 412
    assert api.put(f"{path}?dry_run=true", again).json["source"] == "echo 2"
    assert len(all_rows(GlueVersion)) == 2
    api.put(path, again)
    first = api.get(f"{path}/versions?limit=1").json
    rest = api.get(f"{path}/versions?limit=2&cursor={first['next_cursor']}").json
    versions = first["items"] + rest["items"]
    assert [each["remark"] for each in versions] == ["second", "first", "initial code"]
    assert [each["author"] for each in versions] == ["admin", "admin", ""]
    assert rest["next_cursor"] is None
    assert api.get(f"{path}/versions/{versions[1]['id']}").json["source"] == "echo 1"
    assert api.get(f"{path}/versions/{versions[2]['id']}").json["source"] == "echo 0"


def test_errors_name_the_members(api: Api, path: str) -> None:
    answer = api.put(path, {"source": "a\x00", "remark": "\x00\x00\x00\x00"})
    assert [each["field"] for each in answer.json["errors"]] == ["remark", "source"]
    assert "glue" not in answer.text


def test_code_is_for_callers_with_the_right_to_it(api: Api, api_of: Callable[..., Api], path: str) -> None:
    editor = api_of(Right.VIEW, Right.OPERATE, Right.EDIT)
    body = {"source": "echo 1", "remark": "first"}
    assert {editor.get(path).status_code, editor.put(path, body).status_code} == {403}
    other = make_job(glue_type="GLUE_SHELL")
    api.put(f"/jobs/{other.id}/code", body)
    version_id = all_rows(GlueVersion)[0].id
    assert api.get(f"/jobs/{other.id}/code/versions/{version_id}").status_code == 200
    assert api.get(f"{path}/versions/{version_id}").status_code == 404
    owner = api_of(*Right, group_ids=[other.job_group], name="owner")
    assert {owner.get(path).status_code, owner.put(path, body).status_code} == {404}
    bean = f"/jobs/{make_job().id}/code"
    assert [api.get(bean).status_code, api.put(bean, body).status_code] == [404, 409]
