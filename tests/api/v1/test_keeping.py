"""What is archived of a group's runs and how long it is kept, in the API."""

import pytest

from tests.support.api_v1 import Api
from tests.support.factories import make_group, make_job

KEPT = {"log_archive": "all", "log_days": 7, "run_days": 30}


def test_groups_and_jobs_say_what_is_kept(api: Api) -> None:
    group, job = make_group(address_type=0), make_job()
    for path in (f"/groups/{group.id}", f"/jobs/{job.id}"):
        assert {name: api.get(path).json[name] for name in KEPT} == {
            "log_archive": "",
            "log_days": 0,
            "run_days": 0,
        }
        changed = api.patch(path, KEPT).json
        assert {name: changed[name] for name in KEPT} == KEPT
        assert api.patch(path, {"log_archive": ""}).json["log_archive"] == ""


@pytest.mark.parametrize(
    ("member", "value"), [("log_archive", "some"), ("log_days", -1), ("run_days", 36_501)]
)
def test_a_wrong_value_names_its_member(api: Api, member: str, value: object) -> None:
    wrong = api.patch(f"/groups/{make_group(address_type=0).id}", {member: value})
    assert (wrong.status_code, wrong.json["errors"][0]["field"]) == (422, member)
