"""Completeness over the API: numbers with reasons, by job; rights, filters and errors."""

from typing import Any

import pytest

from app.clock import HOUR_MS, Millis
from app.domain.access.permissions import Right
from app.models.completeness import WATERMARK_JOB, JobDay
from app.models.job import Job
from tests.support.api_v1 import Api, make_token
from tests.support.factories import make_group, make_job, save

PATH = "/report/completeness?from=2024-05-02&to=2024-05-02"
#: midnight after 2 May 2024 in Shanghai
MIDNIGHT: Millis = 1_714_665_600_000
REASONS = '{"not_started": {"refused": 1}, "skipped": {"misfire": 2, "edited": 1}}'


@pytest.fixture
def jobs(database: str) -> list[Job]:
    """Two jobs with a counted day: one lost an instant, and one had reasons."""
    rows = [make_job(job_group=make_group().id) for _ in range(2)]
    first = {"expected": 10, "on_time": 9, "unexplained": 1, "finished": 8, "failed": 1}
    second = {"expected": 48, "on_time": 43, "late": 1, "reasons": REASONS, "finished": 44}
    for row, counted in zip(rows, (second, first), strict=True):
        save(JobDay(job_id=row.id, day="2024-05-02", group_id=row.job_group, **counted))
    save(JobDay(job_id=WATERMARK_JOB, day="", group_id=0, open_from_ms=MIDNIGHT + HOUR_MS))
    return rows


def test_the_numbers_add_up_and_jobs_with_losses_come_first(api: Api, jobs: list[Job]) -> None:
    answer: Any = api.get(PATH).json
    assert answer["not_started"] == {"refused": 1}
    assert answer["skipped"] == {"edited": 1, "misfire": 2}
    assert answer["expected"] == 58 == 9 + 43 + 1 + 1 + 3 + answer["unexplained"]
    assert [(job["job_id"], job["unexplained"]) for job in answer["jobs"]] == [
        (jobs[1].id, 1),
        (jobs[0].id, 0),
    ]
    assert answer["jobs_left_out"] == 0


def test_a_job_and_a_group_narrow_it_down(api: Api, jobs: list[Job]) -> None:
    for name, value in (("job_id", jobs[0].id), ("group_id", jobs[0].job_group)):
        answer: Any = api.get(f"{PATH}&{name}={value}").json
        assert (answer["expected"], [job["job_id"] for job in answer["jobs"]]) == (48, [jobs[0].id])
    assert api.get(f"{PATH}&job_id=99999").json["expected"] == 0


@pytest.mark.parametrize(
    "query",
    [
        "from=2024-05-03&to=2024-05-02",
        "from=2022-01-01&to=2024-05-02",
        "from=yesterday",
        "job_id=-1",
        "day=1",
    ],
)
def test_an_interval_that_cannot_be_is_refused(api: Api, query: str) -> None:
    answer = api.get(f"/report/completeness?{query}")
    assert answer.status_code in (400, 422), answer.json
    assert answer.json["errors"] or answer.json["detail"]


@pytest.mark.parametrize(("scope", "expected"), [("", 48), ("group_id", 0), ("job_id", 0)])
def test_a_user_of_one_group_sees_nothing_of_another(
    api: Api, jobs: list[Job], scope: str, expected: int
) -> None:
    limited = api.with_token(make_token(Right.VIEW, group_ids=[jobs[0].job_group]))
    other = {"": "", "group_id": f"&group_id={jobs[1].job_group}", "job_id": f"&job_id={jobs[1].id}"}
    assert limited.get(PATH + other[scope]).json["expected"] == expected
