"""Commands ``jobs``."""

import json
from typing import Any

import yaml

from tests.cli.conftest import Run
from tests.cli.fake_api import FakeApi


def job(job_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "group_id": 1,
        "description": f"job {job_id}",
        "owner": "ann",
        "handler": "report",
        "schedule_type": "CRON",
        "schedule": "0 0 3 * * ?",
        "enabled": True,
        **changes,
    }


def test_jobs_are_listed_over_all_pages(api: FakeApi, run: Run) -> None:
    pages = {None: ([job(1)], "next"), "next": ([job(22, description="日报")], None)}

    def answer(seen: Any) -> Any:
        items, cursor = pages[seen.query.get("cursor")]
        return {"items": items, "next_cursor": cursor}

    api.on("GET", "/jobs", answer)
    assert run("jobs", "list").stdout == (
        "ID  DESCRIPTION  GROUP  HANDLER  SCHEDULE          ON   OWNER\n"
        " 1  job 1            1  report   CRON 0 0 3 * * ?  yes  ann\n"
        "22  日报             1  report   CRON 0 0 3 * * ?  yes  ann\n"
    )
    assert run("jobs", "list", "-q").stdout == "1\n22\n"
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert [each["id"] for each in load(run("jobs", "list", "-o", form).stdout)] == [1, 22]


def test_an_empty_list_is_a_document_too(api: FakeApi, run: Run) -> None:
    api.page("/jobs")
    assert run("jobs", "list", "-o", "json").stdout == "[]\n"
    assert run("jobs", "list", "-o", "yaml").stdout == "[]\n"
    assert run("jobs", "list").stdout == ""
