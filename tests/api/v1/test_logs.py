"""Logs of runs over the API."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import update

from app.api.v1.long_poll_slots import waits
from app.clock import now_ms
from app.database.engine import session_scope
from app.models.api_token import ApiToken
from app.models.fire import Fire
from app.models.log import JobLog
from app.services.runs import following
from app.settings.config import Config
from tests.pipeline.steps import LOOPBACK, call_back, claim_fires
from tests.support.api_v1 import Api
from tests.support.archive import archive, folder_in
from tests.support.factories import FIRST, SECOND, all_rows, make_job, make_run
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.runs import log_answer


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, executor_networks=LOOPBACK)


def test_a_log_is_read_in_parts(api: Api) -> None:
    with FakeExecutor() as executor:
        job = make_job(addresses=executor.address)
        run = make_run(job, log={"executor_address": executor.address})
        executor.respond("log", log_answer(2, "two", "three", "four"))
        answer = api.get(f"/runs/{run.id}/log?from_line=2&limit=2").get_json()
        assert answer == {
            "from_line": 2,
            "next_line": 4,
            "lines": ["two", "three"],
            "end": False,
            "state": "running",
            "message": "",
            "archived_lines": 0,
            "missing": [],
        }
        assert json.loads(executor.requests[0].body)["fromLineNum"] == 2
        executor.respond("log", log_answer(5))
        call_back(run.id)
        assert api.get(f"/runs/{run.id}/log?from_line=5").get_json()["end"] is True
    assert api.get(f"/runs/{run.id}/log").status_code == 502
    assert api.get(f"/runs/{run.id}/log?from_line=0").status_code == 422


def test_the_last_lines_of_an_ended_run_say_so(api: Api) -> None:
    with FakeExecutor() as executor:
        log = {"executor_address": executor.address, "handle_code": 200}
        path = f"/runs/{make_run(make_job(addresses=executor.address), log=log).id}/log"
        executor.respond("log", log_answer(1, "one", "two"), log_answer(3))
        assert api.get(path).get_json()["end"] is True
        executor.respond("log", log_answer(1, "one", "two"))
        assert api.get(f"{path}?limit=1").get_json()["end"] is False
        executor.respond("log", log_answer(1, "one"), log_answer(2, "a next piece"))
        assert api.get(path).get_json()["end"] is False
        executor.respond("log", log_answer(1, "one"), Answer.json(code=500, msg="busy"))
        assert api.get(path).get_json()["end"] is False


def test_the_stream_of_a_broadcast_ends_with_its_shards(api: Api) -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    run_id = api.post(f"/jobs/{job.id}/runs", {}).get_json()["id"]
    claim_fires(now_ms=now_ms())
    claim_fires(all_rows(Fire), now_ms=now_ms())
    answer = api.get(f"/runs/{run_id}/log?follow=true", buffered=True)
    shards = [str(log.id) for log in all_rows(JobLog)]
    assert json.loads(answer.text) == {"end": True, "state": "waiting", "next_line": 1, "shards": shards}


def test_a_token_that_is_revoked_gets_no_further_line(api: Api) -> None:
    with FakeExecutor() as executor:
        job, log = make_job(addresses=executor.address), {"executor_address": executor.address}
        executor.respond("log", log_answer(1, "one"), log_answer(2, "two"))
        path = f"/runs/{make_run(job, log=log).id}/log?follow=true"
        with api.get(path, buffered=False) as answer:
            events = answer.iter_encoded()
            assert json.loads(next(events)) == {"line": 1, "text": "one"}
            with session_scope() as session:
                session.execute(update(ApiToken).values(revoked_ms=now_ms()))
            assert [json.loads(event) for event in events] == [
                {"error": "the API token was revoked"},
                {"end": False, "state": "running", "next_line": 2},
            ]


def test_a_run_that_waits_has_no_line_yet(api: Api) -> None:
    run_id = api.post(f"/jobs/{make_job().id}/runs", {}).get_json()["id"]
    answer = api.get(f"/runs/{run_id}/log").get_json()
    assert (answer["lines"], answer["end"], answer["state"]) == ([], False, "waiting")


@pytest.mark.parametrize(
    ("accept", "kind", "form"),
    [("*/*", "application/x-ndjson", "%s\n"), ("text/event-stream", "text/event-stream", "data: %s\n\n")],
)
def test_a_log_is_streamed_and_its_place_given_back(
    api: Api, monkeypatch: pytest.MonkeyPatch, accept: str, kind: str, form: str
) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 0.0)
    held = waits._slots.copy()
    with FakeExecutor() as executor:
        job, log = make_job(addresses=executor.address), {"executor_address": executor.address}
        run = make_run(job, log={**log, "handle_code": 200})
        executor.respond(
            "log",
            log_answer(1, "one <ü>"),
            Answer.json(code=500, msg="busy"),
            log_answer(2, "two"),
            log_answer(3),
        )
        answer = api.get(f"/runs/{run.id}/log?follow=true", headers={"Accept": accept}, buffered=True)
    line = {"line": 1, "text": "one <ü>"}
    lines = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n") if line]
    assert lines[0] == line
    assert "busy" in lines[1]["error"]
    assert lines[2:] == [{"line": 2, "text": "two"}, {"end": True, "state": "succeeded", "next_line": 3}]
    assert answer.text.startswith(form % json.dumps(line, ensure_ascii=False))
    assert answer.content_type == f"{kind}; charset=utf-8"
    assert waits._slots == held


def test_what_is_missing_of_an_archived_log_is_named(api: Api, config: Config) -> None:
    lost = {"state": "partial", "reason": "instance_gone", "gap_from": 2, "gap_to": 4, "without": 2}
    gone = {"executor_address": FIRST, "handle_code": 500}
    pieces = (["one"], ["x"] * 3, ["five"])
    run = archive(folder_in(config.home), make_job(addresses=FIRST), *pieces, run=gone, **lost)
    gap = "Lines 2–4 were not kept: the log is longer than 16 MB"
    tail = "Lines from 6 on were not fetched: the instance did not answer"
    answer = api.get(f"/runs/{run.id}/log?from_line=2").get_json()
    assert (answer["from_line"], answer["next_line"], answer["lines"]) == (5, 6, ["five"])
    assert (answer["end"], answer["archived_lines"]) == (True, 5)
    assert answer["missing"] == [
        {"from_line": 2, "to_line": 4, "reason": "run_cap", "text": gap},
        {"from_line": 6, "to_line": None, "reason": "instance_gone", "text": tail},
    ]
    events = api.get(f"/runs/{run.id}/log?follow=true", buffered=True).text.splitlines()
    assert [json.loads(event) for event in events] == [
        {"line": 1, "text": "one"},
        {"error": gap},
        {"line": 5, "text": "five"},
        {"error": tail},
        {"end": True, "state": "failed", "next_line": 6},
    ]
