"""Client of a console: jobs by name, triggers, runs and their ends."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from app.clock import now_ms
from app.models.fire import Fire
from app.models.job import Job
from executor_client import ApiError, Client
from executor_client.api.errors import (
    ApiUnreachable,
    Conflict,
    InvalidRequest,
    NotConfigured,
    NotUnique,
    RetryLater,
    RunNotEnded,
    RunUnsuccessful,
    UnknownName,
)
from executor_client.api.transport import Answer, Request
from executor_client.api.wsgi import WsgiTransport
from tests.cli.fake_api import FakeApi, Reply, problem
from tests.pipeline.steps import call_back, claim_fires, record_sent, sent
from tests.support.client import LOG, LONG_LOG_STARTS, Console, long_log
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_group,
    make_job,
    make_run,
    only_row,
    remove,
)
from tests.support.fake_executor import FakeExecutor


def start() -> int:
    """Start the one run that waits, and return its number."""
    claims = claim_fires(now_ms=now_ms()).claims
    record_sent(*(sent(each) for each in claims), now_ms=now_ms())
    return claims[0].log_id


def test_a_job_is_triggered_by_its_handler_and_awaited(client: Client) -> None:
    job = make_job(executor_handler="closeOrders")
    run = client.trigger("closeOrders", {"day": date(2026, 1, 2)})
    assert (run.state, run.job_id, run.has_ended, run.message) == ("waiting", job.id, False, "")
    number = start()
    with pytest.raises(RunNotEnded, match=rf"run {number} is still running after 0.1 s; it continues"):
        run.wait(timeout=0.1)
    assert run.param == '{"day":"2026-01-02"}'
    assert run.started_at is not None
    call_back(number, 200, '{"rows":3}')
    assert run.wait(timeout=30, check=True) is run
    assert (run.state, run.succeeded, run.result, run.id) == ("succeeded", True, {"rows": 3}, str(number))


def test_a_job_is_made_started_and_stopped_by_a_program(client: Client) -> None:
    group = make_group(app_name="shop")
    child = make_job(executor_handler="mailReport", job_group=group.id)
    made = client.create_job(
        "closeOrders", group="shop", cron="0 0 3 * * ?", retry=2, param={"all": True}, children=["mailReport"]
    )
    assert (made.handler, made.description, made.group, made.enabled) == (
        "closeOrders",
        "closeOrders",
        "shop",
        False,
    )
    assert made.owner == client.job(made.id).owner != ""
    row = only_row(Job, id=made.id)
    assert (row.job_group, row.schedule_conf, row.executor_fail_retry_count) == (group.id, "0 0 3 * * ?", 2)
    assert (row.executor_param, row.child_jobid) == ('{"all":true}', str(child.id))
    assert client.start_job("closeOrders").next_time is not None
    assert client.stop_job(made.id, group="shop").enabled is False


def test_a_job_with_wrong_terms_is_not_made(client: Client) -> None:
    make_group(app_name="shop")
    with pytest.raises(ValueError, match="retry must be a whole number"):
        client.create_job("closeOrders", group="shop", retry=-1)
    with pytest.raises(UnknownName, match="there is no executor group ship"):
        client.create_job("closeOrders", group="ship")
    with pytest.raises(InvalidRequest, match="schedule"):
        client.create_job("closeOrders", group="shop", cron="0 0 25 * * ?")
    assert all_rows(Job) == []


def test_a_failed_run_has_its_reason(client: Client) -> None:
    run = client.trigger(make_job().id)
    call_back(start(), 500, "no rows")
    with pytest.raises(RunUnsuccessful, match="failed: no rows") as caught:
        run.wait(check=True)
    assert (caught.value.state, run.message, run.result) == ("failed", "no rows", "no rows")
    again = run.retry()
    assert (again.state, client.run(again.id).id) == ("waiting", again.id)


def test_names_that_do_not_name_one_job_are_refused(client: Client) -> None:
    here, there = make_group(app_name="here"), make_group(app_name="there")
    jobs = [make_job(job_group=group.id, executor_handler="close") for group in (here, there)]
    make_job(job_group=here.id, job_desc="Mail", executor_handler="mail")
    with pytest.raises(NotUnique, match="2 jobs have the name close; give the id of one: ") as caught:
        client.trigger("close")
    assert caught.value.ids == tuple(job.id for job in jobs)
    assert "(close, there)" in str(caught.value)
    assert client.job("close", group="there").id == jobs[1].id
    assert client.job("Mail").handler == "mail"
    assert client.job(jobs[0].id).group == "here"
    for word, line in (("clos", "no job clos that"), ("7", "give a number: 7"), (999, "no job 999 that")):
        with pytest.raises(UnknownName, match=line):
            client.trigger(word)
    assert [job.handler for job in client.jobs(group="here")] == ["mail", "close"]
    assert [job.group for job in client.jobs(handler="CLOSE")] == ["there", "here"]


@pytest.mark.parametrize("job", [None, 1.5, b"closeOrders", [1], True])
def test_what_is_no_reference_to_a_job_is_refused(client: Client, job: Any) -> None:
    with pytest.raises(TypeError, match="job must be an id, a handler or description, or a Job, not"):
        client.stop_job(job)


@pytest.mark.parametrize("key", ["a\r\nX-Other: b", "a\nb", "\0", "é"])
def test_a_key_that_no_header_holds_is_refused(client: Client, key: str) -> None:
    job = make_job()
    with pytest.raises(ValueError, match="idempotency_key must be visible ASCII characters"):
        client.trigger(job.id, idempotency_key=key)
    with pytest.raises(ValueError, match="idempotency_key must be visible ASCII characters"):
        client.create_job("closeOrders", group="demo-executor", idempotency_key=key)
    assert all_rows(Fire) == []


def test_an_empty_name_names_no_job_with_code(client: Client) -> None:
    make_job(executor_handler="", glue_type="GLUE_SHELL")
    with pytest.raises(UnknownName):
        client.trigger("")


def test_a_run_is_planned_and_withdrawn(client: Client) -> None:
    job = make_job()
    run = client.trigger(job.id, in_=timedelta(hours=1))
    assert run.due_at is not None
    assert abs(run.due_at.timestamp() - now_ms() / 1000 - 3600) < 60
    assert run.kill().reason == "withdrawn before it started"
    assert all_rows(Fire) == []
    later = client.trigger(job.id, at=run.due_at)
    assert later.due_at == run.due_at
    with pytest.raises(ValueError, match="at and in_ cannot be used together"):
        client.trigger(job.id, at=run.due_at, in_=3)
    with pytest.raises(InvalidRequest) as caught:
        client.trigger(job.id, at=datetime(2020, 1, 1, tzinfo=UTC))
    assert [each.field for each in caught.value.fields] == ["at"]


def test_a_running_run_is_killed(client: Client) -> None:
    with FakeExecutor() as executor:
        run = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        assert client.run(run.id).kill().state == "killed"
    assert [each.action for each in executor.requests] == ["kill"]


def test_a_log_is_read_and_followed(client: Client) -> None:
    with FakeExecutor() as executor:
        made = make_run(make_job(addresses=executor.address), log={"executor_address": executor.address})
        executor.respond("log", LOG)
        run = client.run(made.id)
        assert run.lines().lines == ["one", "two"]
        call_back(made.id, 200)
        assert run.log() == "one\ntwo"
        assert list(run.follow(timeout=30)) == ["one", "two"]
        assert run.succeeded


def test_each_line_of_a_long_log_is_fetched_from_the_executor_once(client: Client) -> None:
    with FakeExecutor() as executor:
        log = {"executor_address": executor.address, "handle_code": 200}
        run = client.run(make_run(make_job(addresses=executor.address), log=log).id)
        executor.respond("log", *long_log())
        text = run.log()
        assert [each.json["fromLineNum"] for each in executor.requests] == LONG_LOG_STARTS
        assert text == "\n".join(f"{number:060}" for number in range(1, 8_501))
        executor.respond("log", *long_log())
        assert run.lines().next_line == LONG_LOG_STARTS[1]


def test_following_a_broadcast_names_its_shards(client: Client) -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    run = client.trigger(job.id)
    claim_fires(now_ms=now_ms())
    claim_fires(all_rows(Fire), now_ms=now_ms())
    with pytest.raises(Conflict, match=r"has several shards; use the id of one of them: \d+, \d+"):
        list(run.follow(timeout=30))


def test_runs_are_listed_with_messages(client: Client) -> None:
    job = make_job(executor_handler="close")
    make_run(make_job())
    for code in (200, 500):
        call_back(make_run(job, due_time=T0 + code).id, code, f"code {code}")
    assert [run.message for run in client.runs("close")] == ["code 500", "code 200"]
    assert [run.state for run in client.runs("close", state="failed", limit=5)] == ["failed"]
    assert len(list(client.runs(limit=1))) == 1
    assert list(client.runs(until=datetime(2020, 1, 1))) == []
    with pytest.raises(ValueError, match="state cannot be 'done': one of waiting, running, "):
        list(client.runs(state="done"))  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no executor group nowhere"):
        list(client.runs(group="nowhere"))


def losing(console: Console) -> Callable[[], Any]:
    """Return what opens a transport whose first answer to a write is lost."""
    lost = threading.Event()

    class Losing:
        address = "lossy"

        def __init__(self) -> None:
            self.inner = console.transport()
            self.close = self.inner.close

        def send(self, request: Request) -> Answer:
            answer = self.inner.send(request)
            if request.method == "POST" and not lost.is_set():
                lost.set()
                answer.read()
                raise ApiUnreachable(self.address, "the connection was closed")
            return answer

    return Losing


def test_a_trigger_whose_answer_is_lost_makes_one_run(console: Console) -> None:
    job = make_job()
    with Client(transport=losing(console)) as client:
        run = client.trigger(job.id)
    assert only_row(Fire).job_id == run.job_id


def test_calls_with_the_same_key_make_one_run(client: Client) -> None:
    job = make_job()
    runs = [client.trigger(job.id, idempotency_key="invoice-7") for _ in range(2)]
    assert runs[0].id == runs[1].id
    assert client.trigger(job.id).id != runs[0].id


def test_a_busy_console_is_called_again_within_a_bound() -> None:
    api = FakeApi()
    environ = {"HTTP_AUTHORIZATION": f"Bearer {api.token}"}
    run = Reply({"id": "1", "job_id": 7, "state": "waiting"}, 202)
    api.on("POST", "/jobs/7/runs", [problem(429, "busy", Retry_After="0"), run])
    with Client(transport=lambda: WsgiTransport(api, environ=environ, address="here")) as client:
        assert client.trigger(7).id == "1"
        api.on("POST", "/jobs/7/runs", problem(503, "busy", Retry_After="3600"))
        with pytest.raises(RetryLater, match="busy") as caught:
            client.trigger(7)
    assert caught.value.retry_after_s == 3600


def test_threads_share_a_client(client: Client) -> None:
    job = make_job()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(client.trigger(job.id).id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 4
    client.close()
    with pytest.raises(ApiError, match="the client is closed"):
        client.trigger(job.id)


def test_the_access_token_of_executors_is_not_sent() -> None:
    with pytest.raises(NotConfigured, match="which begins with xxl_; the access token of executors"):
        Client("http://127.0.0.1:9", "default_token")


def test_a_client_over_http(address: str, console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_job(executor_handler="close")
    monkeypatch.setenv("XXL_JOB_URL", address)
    monkeypatch.setenv("XXL_JOB_TOKEN", console.token)
    with Client() as client:
        run = client.trigger("close", "日报")
        call_back(start(), 200, "done")
        assert run.wait(timeout=30).message == "done"
        assert [each.id for each in client.runs(job.id)] == [run.id]


def test_variables_and_secrets_are_set_listed_and_deleted(client: Client) -> None:
    make_group(app_name="shop")
    assert client.set_variable("REGION", "eu-1", group="shop").version == 1
    assert client.set_variable("REGION", "eu-2", group="shop").version == 2
    secret = client.set_variable("KEY", secret="a secret value", group="shop")
    assert (secret.is_secret, secret.value, "a secret value" in repr(secret)) == (True, None, False)
    client.set_variable("REGION", "of all")
    assert [(each.name, each.group, each.value) for each in client.variables()] == [
        ("REGION", "shop", "eu-2"),
        ("KEY", "shop", None),
        ("REGION", "", "of all"),
    ]
    client.delete_variable("REGION", group="shop")
    assert [each.name for each in client.variables(group="shop")] == ["KEY"]
    with pytest.raises(UnknownName, match="REGION"):
        client.delete_variable("REGION", group="shop")
    with pytest.raises(ValueError, match="either value or secret"):
        client.set_variable("REGION")


def test_runs_stand_for_the_time_that_is_given_and_are_found_by_it(client: Client) -> None:
    job, at = make_job(), datetime(2024, 5, 1, tzinfo=UTC)
    assert client.trigger(job.id, logical_time=at).logical_time == at
    claim_fires(now_ms=now_ms())
    assert [run.logical_time for run in client.runs(job.id, logical_from=at, logical_to=at)] == [at]
    assert list(client.runs(job.id, logical_to=datetime(2024, 4, 30, tzinfo=UTC))) == []


def test_a_run_is_triggered_with_all_that_follows_its_job(client: Client) -> None:
    job = make_job()
    client.trigger(job.id)
    assert only_row(Fire).chain is None
    remove(only_row(Fire))
    client.trigger(job.id, chain=True)
    assert only_row(Fire).chain


def test_the_parameter_of_the_next_runs_is_previewed(client: Client) -> None:
    job = make_job(executor_param="${time:yyyy-MM-dd} ${parent.result}", fill_parameter=1, time_zone="UTC")
    at = datetime(2024, 5, 1, 8, tzinfo=UTC)
    (run,) = client.preview_parameter(job.id, logical_time=at)
    assert (run.logical_time, run.param, run.reason) == (at, "2024-05-01 ‹parent.result›", "")
    assert len(client.preview_parameter(job.id, count=1)) == 1
