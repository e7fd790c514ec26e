"""Callbacks in the forms of all clients: stored before the reply, the first result wins.

Source: docs/reference/clients.md, sections A1 and A3.
"""

import json
from typing import Any

import pytest

from app.api.actions import NOT_OF_TOKEN
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.log import JobLog
from app.runtime.metrics import CALLBACKS
from app.services.runs import callbacks
from tests.pipeline.steps import run_concurrently
from tests.support.api import Executor, item
from tests.support.factories import T0, all_rows, make_group, make_job, make_log, make_run, only_row


def call_back(executor: Executor, *items: Any, **more: Any) -> tuple[int, str | None]:
    return executor.call("callback", json.dumps(items), **more)


def results() -> list[tuple[int, str | None]]:
    return [(log.handle_code, log.handle_msg) for log in all_rows(JobLog)]


@pytest.mark.parametrize(
    ("client", "body", "stored"),
    [
        (
            "Java 2.2",
            [
                {
                    "logId": "ID",
                    "logDateTim": T0,
                    "executeResult": {"code": 200, "msg": "old", "content": None},
                }
            ],
            (200, "old"),
        ),
        ("Java 2.4.1, nulls left out", [{"logId": "ID", "logDateTim": T0, "handleCode": 200}], (200, None)),
        ("Java 2.4.1, timeout", [item("ID", 502, "job execute timeout ")], (502, "job execute timeout ")),
        (
            "3.5",
            {"callbackList": [{"logId": "ID", "logDateTime": T0, "handleCode": 200, "handleMsg": "new"}]},
            (200, "new"),
        ),
        (
            "pyxxl, both forms",
            [item("ID", 200, "both", executeResult={"code": 200, "msg": "both"})],
            (200, "both"),
        ),
        ("npm xxl-job, quoted", [item("ID", 200, '"x"')], (200, '"x"')),
        ("litert fails", [item("ID", 403, None)], (403, None)),
        (
            "feixiaobo",
            [{"logId": "ID", "logDateTim": T0, "executeResult": {"code": 200, "content": "in content"}}],
            (200, "in content"),
        ),
        ("hyperf, any JSON", [item("ID", 200, {"rows": [1, 2]})], (200, '{"rows": [1, 2]}')),
        ("hyperf, a number", [item("ID", 200, 42)], (200, "42")),
        (
            "laravel-xxljob, all texts",
            [{"logId": '"ID"', "logDateTim": str(T0), "handleCode": "200", "handleMsg": "t"}],
            (200, "t"),
        ),
        ("a fraction", [item("ID", 200.0, "f")], (200, "f")),
        ("negative", [item("ID", -1, "n")], (500, "handle code -1 reported; n")),
        ("beyond 31 bits", [item("ID", 2**31, "n")], (500, "handle code 2147483648 reported; n")),
        ("beyond 64 bits", [item("ID", 2**70, None)], (500, f"handle code {2**70} reported")),
        ("a zero and half a surrogate", [item("ID", 500, "a\x00b\ud83dc")], (500, "ab?c")),
        ("other fields", [item("ID", 200, "m", more={"x": 1}, handleTime=5)], (200, "m")),
    ],
)
def test_callbacks_of_all_clients(
    executor: Executor, client: str, body: Any, stored: tuple[int, str | None]
) -> None:
    run = make_run(make_job())
    text = json.dumps(body).replace('"\\"ID\\""', f'"{run.id}"').replace('"ID"', str(run.id))
    assert executor.call("callback", text) == (200, None), client
    assert results() == [stored], client
    assert all_rows(Fire) == []


def test_a_message_may_contain_line_ends_as_they_are(executor: Executor) -> None:
    run = make_run(make_job())
    text = json.dumps([item(run.id, 200, "a b")]).replace("a b", "a\n\tb")
    assert executor.call("callback", text) == (200, None)
    assert results() == [(200, "a\n\tb")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"handleCode": 0}, "handleCode 0 is no result"),
        ({"handleCode": "0"}, "handleCode 0 is no result"),
        ({"handleCode": None}, "no handleCode"),
        ({"handleCode": ""}, "no handleCode"),
        ({}, "no handleCode"),
        ({"HandleCode": 200}, "HandleCode must be spelled handleCode"),
        ({"executeResult": {"code": 0}}, "no handleCode"),
    ],
)
def test_an_item_without_result_is_ignored_and_noted(
    executor: Executor, caplog: pytest.LogCaptureFixture, fields: dict[str, Any], reason: str
) -> None:
    run = make_run(make_job(job_group=make_group(app_name="silent-app").id))
    name = "LogId" if "HandleCode" in fields else "logId"
    assert call_back(executor, {name: run.id, "logDateTim": T0, **fields}) == (200, None)
    assert (results(), len(all_rows(Fire))) == ([(0, None)], 1)
    assert f"callback elements refused count=1 reasons=logId {run.id}: {reason}" in caplog.text
    entry = only_row(AuditEntry)
    detail = json.loads(entry.changes or "")
    assert (entry.action, detail["app_name"], detail["reason"]) == ("refused.no_result", "silent-app", reason)
    assert call_back(executor, item(run.id, 200, "later")) == (200, None)
    assert results() == [(200, "later")]


def test_results_of_unknown_runs_are_ignored(executor: Executor) -> None:
    assert call_back(executor, item(4711), item(0), item(-5), item(2**63 - 1)) == (200, None)


def test_a_repeated_callback_changes_nothing(executor: Executor) -> None:
    run = make_run(make_job(child_jobid="7"))
    assert call_back(executor, item(run.id, 200, "first")) == (200, None)
    assert call_back(executor, item(run.id, 500, "second")) == (200, None)
    assert only_row(JobLog).handle_code == 200
    assert len(all_rows(Fire)) == 1


def test_the_same_run_twice_in_one_callback(executor: Executor) -> None:
    run = make_run(make_job())
    assert call_back(executor, item(run.id, 500, "timeout"), item(run.id, 200, "done")) == (200, None)
    assert results() == [(500, "timeout")]


@pytest.mark.parametrize(
    "body", ["[]", "[null]", "[null, null]", '{"callbackList":[]}', "[ ]\n", "[\n{}\n]", "null", " null\n"]
)
def test_an_empty_callback_is_accepted(executor: Executor, body: str) -> None:
    assert executor.call("callback", body) == (200, None)


@pytest.mark.parametrize(
    "body",
    ["", "{}", '"text"', "7", "[", "{", '{"logId":1,"handleCode":200}', "[1", "[]x", '{"callbackList":null}'],
)
def test_an_invalid_callback_is_refused(executor: Executor, body: str) -> None:
    code, message = executor.call("callback", body)
    assert code == 500
    assert (message or "").startswith("callback refused: ")


def test_an_invalid_element_does_not_affect_the_others(executor: Executor) -> None:
    first, second = make_run(make_job()), make_run(make_job())
    invalid = [
        {"logId": "x", "handleCode": 200},
        {"logId": 1, "handleCode": "many"},
        7,
        "text",
        [],
        None,
        item(2**80),
    ]
    assert call_back(executor, item(first.id), *invalid, item(second.id, 500, "no")) == (200, None)
    assert results() == [(200, "ok"), (500, "no")]


def test_a_callback_without_valid_elements_is_refused(executor: Executor) -> None:
    code, message = call_back(executor, None, {"logId": "x"}, 7)
    assert code == 500
    assert "callback refused" in (message or "")
    assert "1 more" in (message or "")


def test_a_trailing_comma_is_a_null_as_in_xxl_job(executor: Executor) -> None:
    run = make_run(make_job())
    assert executor.call("callback", f'[{{"logId":{run.id},"handleCode":200}},]') == (200, None)
    assert results() == [(200, None)]


def test_many_results_in_one_callback(executor: Executor) -> None:
    job = make_job()
    runs = [make_log(job) for _ in range(300)]
    assert call_back(executor, *(item(run.id, 200, f"number {run.id}") for run in runs)) == (200, None)
    assert results() == [(200, f"number {run.id}") for run in runs]


def test_more_results_than_a_transaction_takes_are_stored_in_several(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.runs.callbacks.BATCH_MAX", 2)
    transactions: list[list[int]] = []
    store = callbacks._store

    def note(session: Any, batches: Any) -> Any:
        transactions.append([each.log_id for batch in batches for each in batch.items])
        return store(session, batches)

    monkeypatch.setattr(callbacks, "_store", note)
    runs = [make_run(make_job()) for _number in range(4)]
    ids = [run.id for run in (*runs, runs[0])]
    items = [item(log_id, 200 + place) for place, log_id in enumerate(ids)]
    assert call_back(executor, *items) == (200, None)
    assert transactions == [ids[:2], ids[2:4], ids[4:]]
    assert [code for code, _ in results()] == [200, 201, 202, 203]


def test_refusals_of_a_request_stored_in_parts_are_counted_together(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.runs.callbacks.BATCH_MAX", 2)
    group = make_group(access_token="the-token-of-the-group")
    ids = [make_run(make_job(job_group=group.id)).id for _number in range(3)]
    code, message = call_back(executor, *(item(log_id) for log_id in (*ids, ids[0])))
    assert code == 500
    assert message == f"callback refused: {NOT_OF_TOKEN}, logId {ids[0]} (and 2 more)"


def test_a_foreign_result_refuses_a_batch_whose_other_results_are_stored(executor: Executor) -> None:
    own, other = make_run(make_job()), make_run(make_job())
    group = make_group(access_token="the-token-of-the-group")
    foreign = make_run(make_job(job_group=group.id))
    refusal = f"callback refused: {NOT_OF_TOKEN}, logId {foreign.id}"
    batch = [item(log_id, 200, "done") for log_id in (own.id, foreign.id, other.id)]
    assert call_back(executor, *batch) == (500, refusal)
    assert call_back(executor, *batch) == (500, refusal), "sent again"
    assert results() == [(200, "done"), (200, "done"), (0, None)]


def test_concurrent_callbacks_return_after_their_commit(executor: Executor) -> None:
    job = make_job()
    runs = [make_run(job) for _ in range(24)]

    def report(run: JobLog) -> tuple[int, int]:
        code, _ = Executor(executor.api).call("callback", json.dumps([item(run.id, 200, "x")]))
        return code, only_row(JobLog, id=run.id).handle_code

    assert run_concurrently(*(lambda run=run: report(run) for run in runs)) == [(200, 200)] * 24


def test_an_unresolved_run_accepts_its_result(executor: Executor) -> None:
    run = make_log(make_job(), trigger_code=504)
    call_back(executor, item(run.id, 200, "late"))
    assert results() == [(200, "late")]


def test_a_callback_of_a_lost_run_settles_no_run_that_has_its_id(
    executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    group = make_group(app_name="lost-app")
    run = make_run(make_job(job_group=group.id), log={"trigger_type": "CRON"})
    lost = item(run.id, 200, "of a run that the database has lost", logDateTim=T0 - 60_000)
    before = callback_counts()
    assert call_back(executor, lost) == (200, None)
    assert (results(), len(all_rows(Fire))) == ([(0, None)], 1)
    assert call_back(executor, lost, item(run.id, 500, "its own")) == (200, None)
    assert results() == [(500, "its own")]
    more = {"other_run": before.get("other_run", 0) + 2, "stored": before.get("stored", 0) + 1}
    assert callback_counts() == before | more
    entry = only_row(AuditEntry)
    assert entry.action == "refused.other_run"
    assert json.loads(entry.changes or "")["app_name"] == "lost-app"
    assert f'callback of another run ignored log_id={run.id} app_name="lost-app"' in caplog.text


def callback_counts() -> dict[str, float]:
    return {labels[0]: value for labels, value in CALLBACKS.values.items()}


@pytest.mark.parametrize("spelling", ["logDateTim", "logDateTime"])
def test_a_time_of_another_run_is_read_in_both_spellings(executor: Executor, spelling: str) -> None:
    run = make_run(make_job(), log={"trigger_type": "CRON"})
    assert call_back(executor, {"logId": run.id, spelling: str(T0 - 60_000), "handleCode": 200}) == (
        200,
        None,
    )
    assert results() == [(0, None)]


def test_runs_of_a_java_admin_take_any_time(executor: Executor) -> None:
    run = make_run(make_job(), log={"trigger_type": None})
    assert call_back(executor, item(run.id, 200, "ok", logDateTim=T0 - 60_000)) == (200, None)
    assert results() == [(200, "ok")]


def test_a_batch_with_a_lost_run_stores_the_others(executor: Executor) -> None:
    job = make_job()
    first, second = (make_run(job, log={"trigger_type": "CRON"}) for _ in range(2))
    assert call_back(executor, item(first.id, logDateTim=T0 - 60_000), item(second.id, 200, "ok")) == (
        200,
        None,
    )
    assert results() == [(0, None), (200, "ok")]
