"""Logical times over the API: given with a trigger, on each run, and as a filter of lists."""

from typing import Any

import pytest

from app.clock import DAY_MS, now_ms
from app.domain.schedules.instants import write_instant
from app.models.audit import AuditEntry
from app.models.fire import Fire
from tests.pipeline.steps import call_back, claim_fires
from tests.support.api_v1 import Api
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_fire, make_job, make_log, only_row
from tests.support.plan import every_database

GIVEN = "2024-05-01T00:00:00.000Z"
TOO_LATE = write_instant(now_ms() + 40 * DAY_MS)
RULE = "The logical time must lie between 1970 and 31 days from now"


def test_a_trigger_takes_one_and_every_answer_has_it(api: Api) -> None:
    job = make_job()
    run = api.post(f"/jobs/{job.id}/runs", {"logical_time": "2024-05-01T08:00:00+08:00"}).get_json()
    assert run["logical_time"] == GIVEN
    assert api.get(f"/runs/{run['id']}").get_json()["logical_time"] == GIVEN
    (waiting,) = api.get("/runs?state=waiting").get_json()["items"]
    assert waiting["logical_time"] == GIVEN
    claim_fires(now_ms=now_ms())
    (listed,) = api.get("/runs").get_json()["items"]
    assert listed["logical_time"] == GIVEN
    assert api.get(f"/runs/{run['id']}").get_json()["logical_time"] == GIVEN
    assert '"logical_ms"' in (only_row(AuditEntry, action="job.trigger").changes or "")


def test_without_one_it_is_the_second_in_which_the_run_is_due(api: Api) -> None:
    job = make_job()
    now = api.post(f"/jobs/{job.id}/runs", {}).get_json()
    assert now["logical_time"] == f"{now['due_at'][:19]}.000Z"
    planned = api.post(f"/jobs/{job.id}/runs", {"in_s": 60}).get_json()
    assert planned["logical_time"] == f"{planned['due_at'][:19]}.000Z"


@pytest.mark.parametrize("value", [TOO_LATE, "1969-12-31T23:59:59Z"], ids=["too late", "too early"])
def test_one_that_cannot_be_given_is_refused(api: Api, value: str) -> None:
    job = make_job()
    answer = api.post(f"/jobs/{job.id}/runs", {"logical_time": value})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.get_json()["errors"]] == ["logical_time"]
    assert all_rows(Fire) == []


def test_the_refusal_names_the_bounds(api: Api) -> None:
    answer = api.post(f"/jobs/{make_job().id}/runs", {"logical_time": TOO_LATE})
    assert answer.get_json()["errors"] == [{"field": "logical_time", "reason": RULE}]


def test_each_entry_of_a_batch_has_its_own(api: Api) -> None:
    job = make_job()
    entries = [{"job_id": job.id, "logical_time": GIVEN}, {"job_id": job.id}]
    refused = {"job_id": job.id, "logical_time": TOO_LATE}
    items = api.post("/runs:batch", {"runs": [*entries, refused]}).get_json()["items"]
    assert items[0]["logical_time"] == GIVEN
    assert items[1]["logical_time"] == f"{items[1]['due_at'][:19]}.000Z"
    assert items[2]["errors"] == [{"field": "runs.2.logical_time", "reason": RULE}]


def test_a_run_that_is_run_again_keeps_its_own(api: Api) -> None:
    log = make_log(make_job(), handle_code=500, logical_ms=T0 + 123)
    assert api.post(f"/runs/{log.id}/retry").get_json()["logical_time"] == write_instant(T0 + 123)
    adopted = make_log(make_job(), handle_code=500, fire_time=T0 + 5)
    assert api.post(f"/runs/{adopted.id}/retry").get_json()["logical_time"] == write_instant(T0 + 5)


def test_a_broadcast_and_its_shards_have_one(api: Api) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}", executor_route_strategy="SHARDING_BROADCAST")
    run = api.post(f"/jobs/{job.id}/runs", {"logical_time": GIVEN}).get_json()
    for _ in range(2):
        claim_fires(now_ms=now_ms())
    found = api.get(f"/runs/{run['id']}").get_json()
    assert [found["logical_time"], *(shard["logical_time"] for shard in found["shards"])] == [GIVEN] * 3


@every_database
def test_lists_are_filtered_by_it(api: Api) -> None:
    job = make_job()
    early, late = (make_log(job, logical_ms=T0 + days * DAY_MS).id for days in (-3, 0))
    make_fire(job, fire_key=f"manual:{T0}-{'a' * 32}", trigger_type="MANUAL", logical_ms=T0 - 3 * DAY_MS)

    def found(**query: Any) -> list[str]:
        answer = api.get("/runs?" + "&".join(f"{name}={value}" for name, value in query.items()))
        return [run["id"] for run in answer.get_json()["items"]]

    first, last = write_instant(T0 - 3 * DAY_MS), write_instant(T0)
    assert found(logical_from=first) == [str(late), str(early)]
    assert found(logical_from=last, job_id=job.id) == [str(late)]
    assert found(logical_from=first, logical_to=first) == [str(early)]
    assert len(found(logical_to=first, state="waiting")) == 1
    assert found(logical_from=last, state="waiting") == []
    assert api.get("/runs?logical_from=nonsense").status_code == 422


def test_children_over_the_api_stand_for_the_time_of_their_parent(api: Api) -> None:
    child = make_job()
    api.post(f"/jobs/{make_job(child_jobid=str(child.id)).id}/runs", {"logical_time": GIVEN})
    (claimed,) = claim_fires(now_ms=now_ms()).claims
    call_back(claimed.log_id, 200, now_ms=now_ms())
    claim_fires(now_ms=now_ms())
    runs = api.get("/runs").get_json()["items"]
    assert {run["trigger_type"]: run["logical_time"] for run in runs} == {"MANUAL": GIVEN, "PARENT": GIVEN}
