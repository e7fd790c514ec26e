"""Batches of runs over the API: an answer for each entry, one transaction, the rules of a single trigger."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event

from app.api.v1.schemas.runs import BATCH_MAX
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.services.auditing import refusals
from app.services.jobs.placeholders import PARAM_MAX
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_group, make_job
from tests.support.plan import every_database
from tests.support.statements import statements

PATH = "/runs:batch"
MISSING = 4711


def entry(job_id: int, param: str | None = None) -> dict[str, Any]:
    return {"job_id": job_id, "param": param}


def batch(api: Api, *runs: dict[str, Any], **more: Any) -> Any:
    """Send a batch that is accepted as a whole; return its items."""
    answer = api.post(PATH, {"runs": list(runs)}, **more)
    assert answer.status_code == 202, answer.text
    return answer.get_json()["items"]


@every_database
def test_each_run_is_answered_as_a_single_trigger_in_the_order_of_the_entries(api: Api) -> None:
    one, other = make_job(), make_job()
    items = batch(api, entry(other.id, "é"), entry(one.id), {"job_id": other.id, "param": ""})
    single = api.post(f"/jobs/{one.id}/runs", {}).get_json()
    assert [(item["job_id"], item["group_id"]) for item in items] == [
        (other.id, other.job_group),
        (one.id, one.job_group),
        (other.id, other.job_group),
    ]
    own = {"id": "", "due_at": "", "logical_time": ""}
    assert items[1] | own == single | own
    assert [api.get(f"/runs/{item['id']}").get_json() for item in items] == items
    fires = {fire.fire_key[7:].partition("@")[0]: fire for fire in all_rows(Fire)}
    stored = [fires["-".join(item["id"].split(".")[1:])] for item in items]
    assert [(fire.job_id, fire.executor_param) for fire in stored] == [
        (other.id, "é"),
        (one.id, None),
        (other.id, ""),
    ]


def test_an_error_stands_in_the_place_of_its_run_and_leaves_the_others_alone(api: Api) -> None:
    job = make_job()
    items = batch(
        api,
        entry(job.id, "first"),
        entry(MISSING),
        entry(job.id, "x" * (PARAM_MAX + 1)),
        entry(job.id, "last"),
    )
    assert [item.get("status") for item in items] == [None, 404, 422, None]
    assert items[1] == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "runs.1.job_id: Job id is invalid",
        "errors": [{"field": "runs.1.job_id", "reason": "Job id is invalid"}],
        "request_id": items[1]["request_id"],
    }
    assert items[2]["errors"] == [
        {"field": "runs.2.param", "reason": f"param must have at most {PARAM_MAX} characters"}
    ]
    assert [fire.executor_param for fire in all_rows(Fire)] == ["first", "last"]


@pytest.mark.databases("sqlite")  # the columns of the other kinds have a width
def test_a_long_parameter_is_accepted_if_it_is_the_jobs_own(api: Api) -> None:
    long = "x" * (PARAM_MAX + 1)
    job, other = make_job(executor_param=long), make_job()
    items = batch(api, entry(job.id, long), entry(other.id, long))
    assert [item.get("status") for item in items] == [None, 422]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"runs": [entry(1)] * (BATCH_MAX + 1)}, "runs"),
        ({"runs": [entry(1), {"job_id": "1"}]}, "runs.1.job_id"),
        ({"runs": [entry(1) | {"in_s": 5}]}, "runs.0.in_s"),
        ({"run": []}, "runs"),
    ],
)
def test_a_malformed_body_and_too_many_entries_are_refused_as_a_whole(
    api: Api, body: dict[str, Any], field: str
) -> None:
    make_job()
    answer = api.post(PATH, body)
    assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (422, field)
    assert all_rows(Fire) == []


@every_database
def test_a_full_batch_takes_one_transaction_and_hardly_more_statements_than_one_run(api: Api) -> None:
    jobs = [make_job().id for _ in range(3)]
    commits: list[object] = []
    note = commits.append
    batch(api, entry(jobs[0]))  # the token's use is recorded now
    with statements() as of_one:
        batch(api, entry(jobs[0]))
    event.listen(Engine, "commit", note)
    try:
        with statements() as of_many:
            items = batch(api, *(entry(jobs[number % 3], str(number)) for number in range(BATCH_MAX)))
    finally:
        event.remove(Engine, "commit", note)
    assert len({item["id"] for item in items}) == BATCH_MAX
    assert len(all_rows(Fire)) == len(all_rows(AuditEntry, action="job.trigger")) == BATCH_MAX + 2
    assert len(commits) == 1
    assert len(of_many) <= len(of_one) + 10  # MySQL inserts some hundred rows with each


def test_rights_are_those_on_the_group_of_each_job(api_of: Callable[..., Api]) -> None:
    own, foreign = make_job(), make_job(job_group=make_group(app_name="other").id)
    limited = api_of(Right.OPERATE, group_ids=[own.job_group])
    items = batch(limited, entry(foreign.id), entry(own.id), entry(MISSING))
    assert [item.get("status") for item in items] == [404, None, 404]
    assert items[0]["detail"].replace("0", "2") == items[2]["detail"]
    assert [fire.job_id for fire in all_rows(Fire)] == [own.id]
    refusals.recorder.flush(last=True)
    (refused,) = all_rows(AuditEntry, action="refused.object")
    assert (refused.via, refused.object_id) == ("token ci", foreign.job_group)


def test_a_token_without_the_right_or_none_is_refused_as_a_whole(api_of: Callable[..., Api]) -> None:
    job, viewer = make_job(), api_of(Right.VIEW)
    body = {"runs": [entry(job.id)]}
    statuses = [each.post(PATH, body).status_code for each in (viewer, viewer.with_token(""))]
    assert (statuses, all_rows(Fire)) == ([403, 401], [])


def test_a_batch_repeated_with_its_key_runs_once(api: Api) -> None:
    job = make_job()
    runs = [entry(job.id, "a"), entry(MISSING)]
    answers = [api.post(PATH, {"runs": runs}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].get_json() == answers[1].get_json()
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [None, "true"]
    assert len(all_rows(Fire)) == 1
    other = api.post(PATH, {"runs": runs[:1]}, headers={"Idempotency-Key": "k"})
    assert other.get_json()["errors"][0]["field"] == "Idempotency-Key"


def test_a_batch_that_is_only_tried_leaves_nothing(api: Api) -> None:
    job = make_job()
    answer = api.post(f"{PATH}?dry_run=true", {"runs": [entry(job.id), entry(MISSING)]})
    assert (answer.status_code, answer.headers["X-Dry-Run"]) == (202, "true")
    assert [item.get("status") for item in answer.get_json()["items"]] == [None, 404]
    assert all_rows(Fire) == all_rows(AuditEntry, action="job.trigger") == []


def test_each_run_has_its_entry_in_the_change_history(api: Api) -> None:
    job, other = make_job(), make_job()
    batch(api, entry(job.id, "a"), entry(MISSING), entry(other.id))
    api.post(f"/jobs/{other.id}/runs", {})
    first, second, single = all_rows(AuditEntry, action="job.trigger")
    assert (first.object_id, first.via) == (job.id, "token admin")
    assert first.changes == '{"executor_param": "a", "address_list": null}'
    assert (second.object_id, second.changes) == (single.object_id, single.changes)
