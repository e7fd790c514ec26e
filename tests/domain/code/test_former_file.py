"""Former job files become documents; what does not fit is named with its job."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.code.former_file import is_former, read_former
from app.errors import InvalidInput
from tests.support.truth_table import truth_table

GOLDEN = Path(__file__).parents[2] / "data" / "former_jobs.json"
JOB = {"id": 7, "appname": "sample-app", "jobDesc": "nightly report", "executorHandler": "report"}


def read(*jobs: Any) -> Any:
    return read_former({"format": 1, "jobs": list(jobs)})["jobs"]


def test_every_member_of_a_former_file_has_its_place_in_a_document() -> None:
    content = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert is_former(content)
    document = read_former(content)
    assert not is_former(document)
    report, script, daily = document["jobs"].items()
    assert report == (
        "sample-app/nightly-report",
        {
            "description": "nightly report",
            "owner": "ann",
            "alarm_email": "ops@example.com",
            "schedule_type": "CRON",
            "schedule": "0 0 3 * * ?",
            "time_zone": "Europe/Berlin",
            "misfire_strategy": "FIRE_ONCE_NOW",
            "route_strategy": "ROUND",
            "handler": "demoJobHandler",
            "param": " a\n b ",
            "block_strategy": "DISCARD_LATER",
            "delivery": "at_least_once",
            "not_before": "2030-03-17T17:46:40.123Z",
            "not_after": None,
            "timeout_s": 9,
            "retry_count": 2,
            "retry_interval_s": 5,
            "retry_backoff_percent": 200,
            "tags": ["money", "nightly"],
            "children": ["sample-app/nightly-report-2", "other-app/日报"],
        },
    )
    code = {
        "language": "GLUE_SHELL",
        "source": 'echo "report for ${1:-yesterday}"\n',
        "remark": "first one",
    }
    assert (script[0], script[1]["code"], script[1]["children"]) == (
        "sample-app/nightly-report-2",
        code,
        [],
    )
    assert (daily[0], daily[1]["not_after"]) == ("other-app/日报", "2031-01-01T08:00:00+08:00")


def test_members_that_a_file_omits_are_left_out() -> None:
    members = {"description": "nightly report", "handler": "report"}
    assert read(JOB) == {"sample-app/nightly-report": members}
    assert read({**JOB, "glueType": "GLUE_PHP"})["sample-app/nightly-report"]["code"] == {
        "language": "GLUE_PHP"
    }


@truth_table(
    "wrong, place, problem",
    [
        ("job", "jobs.2", "must be an object"),
        ({**JOB, "id": 1, "jobGroup": 1}, "jobs.sample-app/nightly-report-2.jobGroup", "no such field"),
        (JOB, "jobs.sample-app/nightly-report-2.id", "has the same id"),
        (
            {**JOB, "id": 1, "childJobId": "x"},
            "jobs.sample-app/nightly-report-2.childJobId",
            "(x) is invalid",
        ),
        (
            {**JOB, "id": 1, "childJobId": "99"},
            "jobs.sample-app/nightly-report-2.childJobId",
            "not in the file",
        ),
    ],
)
def test_what_does_not_fit_is_named(wrong: Any, place: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(JOB, wrong)
    assert refused.value.field == place
    assert problem in refused.value.message
