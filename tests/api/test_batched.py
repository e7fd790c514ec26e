"""Callbacks that are stored together: answers as of the executor API, or none, and then nothing is stored."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event

from app.api.executor_api import ExecutorApi
from app.database.engine import bind_engine, session_scope
from app.factory import create_app
from app.models.log import JobLog
from app.services.auditing import refusals
from app.services.runs import callbacks
from app.services.runs.kills import kills
from app.settings.config import Config
from executor_client.httpd.batching import BatchAnswer, BatchRequest
from executor_client.wire.protocol import CAPABILITIES_HEADER
from tests.support.api import CONTEXT, NOWHERE, TOKEN, Executor, console_stub, item
from tests.support.factories import T0, all_rows, make_group, make_job, make_run

PATH = f"{CONTEXT}/api/callback"


def request(body: Any, token: str = TOKEN, **headers: str) -> BatchRequest:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return BatchRequest("POST", PATH, {"XXL_JOB_ACCESS_TOKEN": token, **headers}, "127.0.0.1", text)


def codes(answers: list[BatchAnswer | None]) -> list[int | None]:
    return [None if answer is None else json.loads(answer.body)["code"] for answer in answers]


def results() -> list[int]:
    return [log.handle_code for log in sorted(all_rows(JobLog), key=lambda log: log.id)]


@pytest.mark.parametrize("headers", [{}, {CAPABILITIES_HEADER: "boot=1"}], ids=["any", "ours"])
def test_the_answer_is_that_of_the_executor_api(executor: Executor, headers: dict[str, str]) -> None:
    runs = [make_run(make_job()) for _number in range(3)]
    given = {name.upper().replace("-", "_"): text for name, text in headers.items()}
    requests = [request([item(run.id)], **given) for run in runs[:2]]
    answers = executor.api.batches.answer(requests)
    ordinary = executor.post("callback", json.dumps([item(runs[2].id)]), headers=headers)
    ids = set()
    for answer in answers:
        assert answer is not None
        own = dict(answer.headers)
        ids.add(own.pop("X-Request-Id"))
        assert (answer.status, answer.body) == (ordinary.status_code, ordinary.get_data())
        assert own | {"Content-Length": str(len(answer.body))} == dict(ordinary.headers)
    assert len(ids) == 2
    assert results() == [200, 200, 200]


def test_requests_are_stored_in_one_transaction(executor: Executor) -> None:
    runs = [make_run(make_job()) for _number in range(4)]
    commits: list[Any] = []

    def note(connection: Any) -> None:
        commits.append(connection)

    with session_scope() as session:
        engine = session.get_bind()
    event.listen(engine, "commit", note)
    try:
        answers = executor.api.batches.answer([request([item(run.id, 500)]) for run in runs])
    finally:
        event.remove(engine, "commit", note)
    assert (codes(answers), len(commits), results()) == ([200] * 4, 1, [500] * 4)


def test_what_is_not_plain_goes_the_ordinary_way(executor: Executor) -> None:
    run, killed = make_run(make_job()), make_run(make_job())
    requests = [
        request([item(run.id)], token="a-wrong-token"),
        request([item(run.id)], token=""),
        request(b"{"),
        request([]),
        request([item(run.id), "unreadable"]),
        request([item(killed.id)]),
        request([item(killed.id, 500)]),
    ]
    with kills.hold(killed.id):
        answers = executor.api.batches.answer(requests)
    assert codes(answers) == [None] * 6 + [200]
    assert results() == [0, 500]


def test_a_failed_request_does_not_harm_the_others(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(make_job()) for _number in range(5)]
    store = callbacks._store

    def fails(session: Any, batches: Any) -> Any:
        if any(each.log_id == runs[2].id for batch in batches for each in batch.items):
            raise RuntimeError("poison")
        return store(session, batches)

    monkeypatch.setattr(callbacks, "_store", fails)
    answers = executor.api.batches.answer([request([item(run.id)]) for run in runs])
    assert codes(answers) == [200, 200, None, 200, 200]
    assert results() == [200, 200, 0, 200, 200]


def test_runs_of_a_group_with_another_token_are_refused(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(
        refusals, "note", lambda action, actor, **_more: noted.append((action, actor.address))
    )
    own = make_run(make_job(job_group=make_group(access_token="the-token-of-the-group").id))
    run = make_run(make_job())
    answers = executor.api.batches.answer([request([item(own.id)]), request([item(run.id)])])
    assert codes(answers) == [500, 200]
    assert results() == [0, 200]
    assert noted == [("refused.token", "127.0.0.1")]


def test_results_of_lost_runs_are_accepted_and_noted(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(
        refusals, "note", lambda action, actor, **_more: noted.append((action, actor.address))
    )
    run = make_run(make_job(), log={"trigger_type": "CRON"})
    lost = {**item(run.id), "logDateTim": T0 - 60_000}
    assert codes(executor.api.batches.answer([request([lost]), request([item(run.id, 500)])])) == [200, 200]
    assert results() == [500]
    assert noted == [("refused.other_run", "127.0.0.1")]


def test_without_a_database_nothing_is_answered(
    executor: Executor, api_config: Config, database_kind: str
) -> None:
    run = make_run(make_job())
    for warm in (True, False):
        api = executor.api if warm else ExecutorApi(console_stub, api_config)
        if warm:
            assert executor.call("callback", "[]") == (200, None)
        bind_engine(replace(api_config, database_url=NOWHERE[database_kind]))
        assert api.batches.answer([request([item(run.id)])]) == [None]


@pytest.mark.parametrize(
    ("change", "names"), [({}, ["callbacks"]), ({"proxy_count": 1}, []), ({"access_log": True}, [])]
)
def test_requests_are_answered_together_unless_the_middleware_is_needed(
    config: Config, change: dict[str, Any], names: list[str]
) -> None:
    endpoints = create_app(replace(config, **change)).extensions["xxl_job_batched"]
    assert [each.name for each in endpoints] == names
