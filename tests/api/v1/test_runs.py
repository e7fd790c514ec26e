"""Runs over the API: triggers, waiting, kills, retries, withdrawals, lists and skips."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest

from app.api.v1.long_poll_slots import Waits, waits
from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Actor, Right
from app.models.api_token import ApiToken
from app.models.audit import AuditEntry
from app.models.base import use_zone
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.services.accounts.api_tokens import ApiCaller, Holder
from app.settings.config import Config
from tests.pipeline.steps import LOOPBACK, call_back, claim_fires, record_sent, sent
from tests.support.api_v1 import Api
from tests.support.factories import (
    BERLIN_SECOND_TWO,
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_job,
    make_log,
    make_run,
    only_row,
    save,
)
from tests.support.fake_executor import FakeExecutor
from tests.support.plan import every_database

HOUR_S = 3_600


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, executor_networks=LOOPBACK)


def claim(*, accept: bool = True) -> list[int]:
    """Claim all fires; return the ids of the runs."""
    claims = claim_fires(now_ms=now_ms()).claims
    if accept:
        record_sent(*(sent(claimed) for claimed in claims), now_ms=now_ms())
    return [claimed.log_id for claimed in claims]


def test_a_trigger_answers_with_the_id_that_leads_to_its_run(api: Api) -> None:
    job = make_job()
    answer = api.post(f"/jobs/{job.id}/runs", {"param": "day=1"})
    run = answer.get_json()
    assert (answer.status_code, answer.headers["Location"]) == (202, f"/runs/{run['id']}")
    assert (run["state"], run["job_id"], run["group_id"]) == ("waiting", job.id, job.job_group)
    assert api.get(f"/runs/{run['id']}").get_json() == run
    (log_id,) = claim()
    found = api.get(f"/runs/{run['id']}").get_json()
    assert (found["id"], found["state"], found["param"]) == (str(log_id), "running", "day=1")
    call_back(log_id, 500, "no rows")
    found = api.get(f"/runs/{run['id']}").get_json()
    assert (found["state"], found["message"], found["reason"]) == ("failed", "no rows", "no rows")
    assert found["trace"].startswith("Trigger: MANUAL, due ")
    assert found["ended_at"] is not None


def test_a_scheduled_run_of_an_hour_that_occurs_twice_has_its_true_times(api: Api) -> None:
    use_zone("Europe/Berlin")
    times = {"fire_time": BERLIN_SECOND_TWO, "trigger_time": BERLIN_SECOND_TWO}
    ended = {"handle_time": BERLIN_SECOND_TWO + 9_000, "handle_code": 200, "duration_ms": 8_700}
    log = make_log(make_job(), **times, **ended)
    run = api.get(f"/runs/{log.id}").get_json()
    assert run["scheduled_at"] == run["started_at"] == "2024-10-27T01:00:00.000Z"
    assert run["ended_at"] == "2024-10-27T01:00:09.000Z"


def test_a_repeated_trigger_with_its_key_runs_once(api: Api) -> None:
    job = make_job()
    answers = [
        api.post(f"/jobs/{job.id}/runs", {}, headers={"Idempotency-Key": "nightly-1"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].get_json() == answers[1].get_json()
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    only_row(Fire)


def test_triggers_at_the_same_time_are_answered_each_for_itself(api: Api) -> None:
    """On SQLite they share a transaction, which one that is refused does not take with it."""
    job = make_job()
    params = [str(number) * (2_049 if number == 3 else 1) for number in range(8)]

    def trigger(param: str) -> tuple[int, str]:
        answer = api.post(f"/jobs/{job.id}/runs", {"param": param})
        return answer.status_code, answer.get_json().get("id", "")

    with ThreadPoolExecutor(len(params)) as pool:
        answers = list(pool.map(trigger, params))
    assert [status for status, _ in answers] == [422 if len(param) > 1 else 202 for param in params]
    stored = {fire.fire_key[-32:]: fire.executor_param for fire in all_rows(Fire)}
    assert [stored[run_id[-32:]] for status, run_id in answers if status == 202] == [*"0124567"]
    assert len(stored) == len(all_rows(AuditEntry, action="job.trigger")) == 7


def test_a_trigger_that_is_only_tried_leaves_nothing(api: Api) -> None:
    job = make_job()
    answer = api.post(f"/jobs/{job.id}/runs?dry_run=true", {"in_s": 60})
    assert (answer.status_code, answer.headers["X-Dry-Run"]) == (202, "true")
    assert all_rows(Fire) == []
    refused = api.post(f"/jobs/{job.id}/runs?dry_run=true", {"addresses": ["http://10.9.9.9:1/"]})
    assert [each["field"] for each in refused.get_json()["errors"]] == ["addresses"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"param": "x" * 2_049}, "param"),
        ({"param": 7}, "param"),
        ({"at": "2020-01-01T00:00:00Z"}, "at"),
        ({"at": "tomorrow"}, "at"),
        ({"in_s": 0}, "in_s"),
        ({"at": "2030-01-01T00:00:00Z", "in_s": 5}, "body"),
        ({"due": 1}, "due"),
    ],
)
def test_a_trigger_names_the_member_that_is_invalid(api: Api, body: dict[str, object], field: str) -> None:
    answer = api.post(f"/jobs/{make_job().id}/runs", body)
    assert (answer.status_code, answer.get_json()["errors"][0]["field"]) == (422, field)


def test_a_run_planned_for_later_is_withdrawn_once(api: Api) -> None:
    job = make_job()
    run = api.post(f"/jobs/{job.id}/runs", {"in_s": HOUR_S}).get_json()
    due_ms = only_row(Fire).due_time
    assert now_ms() + (HOUR_S - 60) * 1_000 < due_ms <= now_ms() + HOUR_S * 1_000
    assert api.get(f"/runs/{run['id']}").get_json()["due_at"] == run["due_at"]
    assert api.delete(f"/runs/{run['id']}?dry_run=true").status_code == 204
    assert api.delete(f"/runs/{run['id']}").status_code == 204
    assert all_rows(Fire) == []
    assert only_row(AuditEntry, action="job.withdraw").via == "token admin"
    assert api.delete(f"/runs/{run['id']}").status_code == 404
    assert api.get(f"/runs/{run['id']}").status_code == 404


def test_a_run_that_has_started_is_not_withdrawn(api: Api) -> None:
    run = make_run(make_job())
    answer = api.delete(f"/runs/{run.id}")
    assert (answer.status_code, "killed, but not withdrawn" in answer.get_json()["detail"]) == (409, True)


def test_waiting_ends_with_the_run(api: Api) -> None:
    run = make_run(make_job())
    ending = threading.Timer(0.2, call_back, [run.id])
    ending.start()
    assert api.get(f"/runs/{run.id}?wait=30").get_json()["state"] == "succeeded"
    ending.join()
    assert api.get(f"/runs/{run.id}?wait=61").status_code == 422


def test_above_half_of_the_threads_nothing_waits(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(make_job())
    monkeypatch.setattr(waits, "_slots", Counter({(4711, 0): 10_000}))
    answer = api.get(f"/runs/{run.id}?wait=60")
    assert (answer.get_json()["state"], answer.headers["Retry-After"]) == ("running", "1")
    assert "Retry-After" not in api.get(f"/runs/{run.id}").headers
    stream = api.get(f"/runs/{run.id}/log?follow=true")
    assert (stream.status_code, stream.headers["Retry-After"]) == (503, "5")


def test_a_run_that_is_not_waited_for_takes_no_place(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    run, taken = make_run(make_job()), list[Holder]()
    monkeypatch.setattr(waits, "take", lambda holder, threads: taken.append(holder))
    assert api.get(f"/runs/{run.id}").get_json()["state"] == "running"
    assert taken == []


def test_places_to_wait_are_half_of_the_threads() -> None:
    places, (one, two, three) = Waits(), ((1, 0), (2, 0), (0, 1))
    assert [places.take(holder, threads=5) for holder in (one, two, three)] == [True, True, False]
    places.give(one)
    with places.place(three, threads=5) as taken:
        assert taken
        assert not places.take(one, threads=5)
    assert places.take(one, threads=5)


def test_a_user_holds_at_most_half_of_the_places_to_wait_with_all_tokens() -> None:
    places, ada = Waits(), ApiCaller(7, "one", Actor(3, "ada", is_admin=False), 0, 0)
    tokens = [ada, replace(ada, token_id=8), replace(ada, token_id=9)]
    assert [places.take(token.holder, threads=9) for token in tokens] == [True, True, False]
    service = replace(ada, actor=Actor(0, "token ci", is_admin=False))
    assert places.take(service.holder, threads=9)
    places.give(ada.holder)
    assert places.take(ada.holder, threads=9)
    assert Waits().take(ada.holder, threads=1)


def test_service_tokens_have_places_of_their_own() -> None:
    places, one = Waits(), ApiCaller(7, "one", Actor(0, "token one", is_admin=False), 0, 0)
    two = replace(one, token_id=8)
    tokens = (one, one, one, two)
    assert [places.take(token.holder, threads=9) for token in tokens] == [True, True, False, True]


def test_a_token_that_waits_often_leaves_places_to_others(api: Api, api_of: Callable[..., Api]) -> None:
    job = make_job()
    run = make_run(job, log={"handle_code": 500})
    other = api_of(Right.VIEW)
    with read_scope() as session:
        names = {token.name: token.id for token in session.query(ApiToken)}
    with ExitStack() as held:
        for _ in range(8):
            held.enter_context(waits.place((0, names["admin"]), threads=32))
        stream = f"/runs/{run.id}/log?follow=true"
        assert api.get(stream).status_code == 503
        assert other.get(stream, buffered=True).status_code == 200


def test_a_broadcast_answers_with_its_shards(api: Api) -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    run_id = api.post(f"/jobs/{job.id}/runs", {}).get_json()["id"]
    claim_fires(now_ms=now_ms())
    log_ids = claim()
    for log_id in log_ids:
        call_back(log_id)
    found = api.get(f"/runs/{run_id}").get_json()
    assert (found["id"], found["state"]) == (run_id, "succeeded")
    assert [(shard["id"], shard["shard"], shard["state"]) for shard in found["shards"]] == [
        (str(log_ids[0]), "0/2", "succeeded"),
        (str(log_ids[1]), "1/2", "succeeded"),
    ]
    refused = api.get(f"/runs/{run_id}/log")
    assert refused.status_code == 409
    assert refused.get_json()["detail"].endswith(f"{log_ids[0]}, {log_ids[1]}")


def test_a_broadcast_has_the_reason_of_a_shard(api: Api) -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    run_id = api.post(f"/jobs/{job.id}/runs", {}).get_json()["id"]
    claim_fires(now_ms=now_ms())
    for log_id, code in zip(claim(), (200, 500), strict=True):
        call_back(log_id, code, "no rows")
    found = api.get(f"/runs/{run_id}").get_json()
    assert (found["state"], found["reason"]) == ("failed", "no rows")


def test_a_run_names_its_retries_and_children(api: Api) -> None:
    job = make_job()
    run = make_log(job, handle_code=500)
    retry = make_log(job, trigger_type="RETRY", source_log_id=run.id)
    child = make_log(job, trigger_type="PARENT", source_log_id=run.id)
    found = api.get(f"/runs/{run.id}").get_json()
    assert (found["retries"], found["children"]) == ([str(retry.id)], [str(child.id)])
    assert api.get(f"/runs/{retry.id}").get_json()["source_id"] == str(run.id)


def test_a_kill_is_sent_unless_it_is_only_tried(api: Api) -> None:
    with FakeExecutor() as executor:
        run = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        tried = api.post(f"/runs/{run.id}/kill?dry_run=true")
        assert (tried.status_code, executor.requests) == (200, [])
        killed = api.post(f"/runs/{run.id}/kill")
        assert (killed.status_code, killed.get_json()["state"]) == (200, "killed")
        assert len(executor.requests) == 1
        assert api.post(f"/runs/{run.id}/kill").status_code == 409


def test_a_retry_is_a_new_run_with_the_same_parameter(api: Api) -> None:
    run = make_log(make_job(), executor_param="day=1", handle_code=500)
    answer = api.post(f"/runs/{run.id}/retry")
    assert (answer.status_code, answer.get_json()["state"]) == (202, "waiting")
    assert answer.headers["Location"] == f"/runs/{answer.get_json()['id']}"
    assert only_row(Fire).executor_param == "day=1"


def ids(api: Api, query: str) -> list[str]:
    return [run["id"] for run in api.get(f"/runs?{query}").get_json()["items"]]


def test_runs_are_listed_by_job_group_state_and_time_newest_first(api: Api) -> None:
    job, other = make_job(), make_job()
    first = str(make_log(job, trigger_time=T0, handle_code=200).id)
    second = str(make_log(job, trigger_time=T0 + 1_000, handle_code=500).id)
    third = str(make_log(other, trigger_time=T0 + 2_000, handle_code=502).id)
    assert ids(api, "") == [third, second, first]
    assert ids(api, f"job_id={job.id}") == [second, first]
    assert ids(api, f"group_id={other.job_group}") == [third]
    assert ids(api, "state=failed") == [second]
    assert ids(api, "state=unsuccessful") == [third, second]
    assert ids(api, "from=2024-05-01T03:04:06Z&to=2024-05-01T03:04:06Z") == [second]
    assert ids(api, "from=2024-05-01T05:04:06+02:00&to=2024-05-01T05:04:06%2B02:00") == [second]
    page = api.get("/runs?limit=2").get_json()
    assert [run["id"] for run in page["items"]] == [third, second]
    assert ids(api, f"limit=2&cursor={page['next_cursor']}") == [first]
    assert api.get("/runs?cursor=x").status_code == 422
    assert api.get("/runs?state=lost").status_code == 422


@every_database
@pytest.mark.parametrize("name", ["state", "from", "job_id"])
def test_a_wrong_filter_of_runs_is_named(api: Api, name: str) -> None:
    answer = api.get(f"/runs?{name}=nonsense")
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, [name])


def test_runs_that_wait_are_listed_before_and_after_their_claim(api: Api, api_of: Callable[..., Api]) -> None:
    job, other = make_job(), make_job()
    claimed = str(make_log(job, trigger_code=0).id)
    planned = [
        api.post(f"/jobs/{each.id}/runs", {"in_s": 60 * minutes}).get_json()["id"]
        for minutes, each in ((1, job), (3, job), (2, other))
    ]
    first, last, foreign = planned

    def listed(caller: Api, query: str) -> list[str]:
        found, cursor = list[str](), ""
        while cursor is not None:
            part = caller.get(f"/runs?state=waiting&limit=1&{query}&cursor={cursor}").get_json()
            assert len(part["items"]) <= 1
            found += [each["id"] for each in part["items"]]
            cursor = part["next_cursor"]
        return found

    assert listed(api, "") == [last, foreign, first, claimed]
    assert listed(api, f"job_id={job.id}") == [last, first, claimed]
    assert listed(api, f"group_id={other.job_group}") == [foreign]
    assert listed(api, "from=2020-01-01T00:00:00Z") == [claimed]
    reader = api_of(Right.VIEW, name="reader", group_ids=[other.job_group])
    assert listed(reader, "") == [foreign]
    assert listed(reader, f"group_id={job.job_group}") == []
    assert api.get("/runs?state=waiting").get_json()["items"][0]["due_at"] is not None


def test_skips_are_listed_in_pages(api: Api) -> None:
    job = make_job()
    made = [
        save(Skip(job_id=job.id, from_ms=T0, to_ms=T0, skipped=1, reason="misfire", recorded_ms=T0)).id
        for _ in range(3)
    ]
    page = api.get(f"/skips?job_id={job.id}&limit=2").get_json()
    assert [skip["id"] for skip in page["items"]] == made[:0:-1]
    assert page["items"][0]["first_at"] == "2024-05-01T03:04:05.000Z"
    rest = api.get(f"/skips?job_id={job.id}&limit=2&cursor={page['next_cursor']}").get_json()
    assert ([skip["id"] for skip in rest["items"]], rest["next_cursor"]) == (made[:1], None)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/jobs/{job}/runs"),
        ("POST", "/runs/{run}/kill"),
        ("POST", "/runs/{run}/retry"),
        ("DELETE", "/runs/{run}"),
        ("DELETE", "/runs/{waiting}"),
    ],
)
def test_actions_need_the_right_to_operate_on_the_group(
    api: Api, api_of: Callable[..., Api], method: str, path: str
) -> None:
    job: Job = make_job()
    run: JobLog = make_run(job)
    waiting = api.post(f"/jobs/{job.id}/runs", {"in_s": 60}).get_json()["id"]
    address = path.format(job=job.id, run=run.id, waiting=waiting)
    viewer = api_of(Right.VIEW, group_ids=[job.job_group], name="viewer")
    stranger = api_of(Right.VIEW, Right.OPERATE, group_ids=[make_job().job_group], name="stranger")
    assert viewer(method, address).status_code == 403
    assert stranger(method, address).status_code == 404
    for read in (f"/runs/{run.id}", f"/runs/{waiting}", f"/runs/{run.id}/log?follow=true"):
        assert stranger.get(read).status_code == 404
    assert ids(stranger, "") == []
    assert ids(viewer, "") == [str(run.id)]
