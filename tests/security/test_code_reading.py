"""Source of GLUE jobs: shown only to users with the GLUE right on the job's group."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.access.permissions import Right
from tests.support.console import Console, add_group, add_job

SOURCE = "echo canary-of-the-source"
NO_CODE = frozenset(Right) - {Right.GLUE}


def add_script(group_id: int) -> int:
    return add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source=SOURCE)


@pytest.mark.parametrize(
    ("path", "parameters"),
    [("/jobinfo/pageList", {"jobGroup": 0, "triggerStatus": -1}), ("/joblog/getJobsByGroup", {})],
)
def test_a_list_has_the_source_of_each_job_whose_code_the_reader_may_change(
    console: Console, normal_user: Callable[..., Console], path: str, parameters: dict[str, Any]
) -> None:
    readable, writable = add_group("read-app"), add_group("write-app")
    jobs = {add_script(readable): "", add_script(writable): SOURCE}
    norman = normal_user(readable, writable, rights={readable: NO_CODE})
    rows: list[dict[str, Any]] = []
    for group_id in (readable, writable):
        answer = norman.call(path, **({"jobGroup": group_id} | parameters))
        rows += answer["data"] if "data" in answer else answer["content"]
    assert {row["id"]: row["glueSource"] for row in rows} == jobs


def test_no_page_shows_the_source_without_the_right(
    console: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_script(group_id)
    norman = normal_user(group_id, rights={group_id: NO_CODE})
    paths = ("", f"/{job_id}", f"/{job_id}/edit", f"/{job_id}/copy", f"/{job_id}/run", "/export")
    texts = {path: norman.get(f"/jobinfo{path}").text for path in paths}
    assert [path for path, text in texts.items() if SOURCE in text] == []
    assert norman.get(f"/jobcode?jobId={job_id}").status_code == 403


def test_a_job_is_not_moved_to_where_its_source_can_be_read(
    console: Console, normal_user: Callable[..., Console]
) -> None:
    readable, writable = add_group("read-app"), add_group("write-app")
    job_id = add_script(readable)
    norman = normal_user(readable, writable, rights={readable: NO_CODE})
    bean = {"id": job_id, "jobGroup": writable, "jobDesc": "mine", "author": "norman", "scheduleType": "NONE"}
    bean |= {"misfireStrategy": "DO_NOTHING", "executorRouteStrategy": "FIRST", "glueType": "GLUE_SHELL"}
    answer = norman.call("/jobinfo/update", **bean, executorBlockStrategy="SERIAL_EXECUTION")
    assert answer["msg"] == "permission denied"
    assert norman.get(f"/jobcode?jobId={job_id}").status_code == 403
