"""What our executors report besides results: stored with the run, also of one that was killed."""

import json
from typing import Any

from sqlalchemy import select

from app.database.engine import read_scope
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.variable import Variable
from tests.support.api import Executor
from tests.support.factories import T0, make_group, make_job, make_log, make_run, only_row, save
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

APP_NAME = "billing-exec"
REGISTRATION = {
    "registryGroup": "EXECUTOR",
    "registryKey": APP_NAME,
    "registryValue": "http://10.1.2.3:9999/",
}
OURS = {"X-Exec-Capabilities": "durable-dedup,boot=5f0c,run-state"}
DIGEST = "0123456789abcdef"
TYPED = {"X-Exec-Capabilities": f"durable-dedup,boot=5f0c,run-state,schemas={DIGEST}"}
SCHEMAS = {"report": {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}}
PROGRESS = '{"done":3,"total":10,"text":"orders"}'


def stored(log_id: int) -> tuple[str | None, str | None]:
    with read_scope() as session:
        row = session.execute(select(JobLog.checkpoint, JobLog.progress).where(JobLog.id == log_id)).one()
        return row.checkpoint, row.progress


def report(executor: Executor, log_id: int, **more: Any) -> None:
    item = {"logId": log_id, "logDateTim": T0, "handleCode": 500, "handleMsg": "broken", **more}
    assert executor.call("callback", json.dumps([item]))[0] == 200


def test_checkpoint_and_progress_are_stored(executor: Executor) -> None:
    run = make_run(make_job())
    report(executor, run.id, checkpoint='{"page":3}', progress=PROGRESS)
    assert stored(run.id) == ('{"page":3}', PROGRESS)


def test_a_killed_run_brings_its_checkpoint_late(executor: Executor) -> None:
    run = make_log(make_job(), handle_code=500, handle_msg="killed")
    report(executor, run.id, checkpoint="3")
    assert stored(run.id) == ("3", None)
    assert only_row(JobLog).handle_msg == "killed"


def test_the_checkpoint_of_a_lost_run_is_not_that_of_the_run_with_its_id(executor: Executor) -> None:
    run = make_log(make_job(), trigger_type="CRON", handle_code=500, handle_msg="killed")
    report(executor, run.id, checkpoint="3", logDateTim=T0 - 60_000)
    assert stored(run.id) == (None, None)


def test_unusable_reports_are_ignored(executor: Executor) -> None:
    run = make_run(make_job())
    report(executor, run.id, checkpoint={"page": 3}, progress="x" * 9_000)
    assert stored(run.id) == (None, None)


def test_the_console_announces_itself_to_our_executors_only(executor: Executor) -> None:
    def header(action: str, body: Any, **headers: Any) -> str | None:
        return executor.post(action, json.dumps(body), headers=headers).headers.get("X-Exec-Console")

    make_group(app_name=APP_NAME)
    assert header("registry", REGISTRATION) is None
    assert header("callback", []) is None
    assert header("registry", REGISTRATION, **OURS) == "run-state,log-tail"
    assert header("callback", [], **OURS) == "run-state,log-tail"


def test_a_missing_group_is_announced_to_executors_that_say_who_they_are(executor: Executor) -> None:
    def header(capabilities: str) -> str:
        headers = {"X-Exec-Capabilities": capabilities}
        return executor.post("registry", json.dumps(REGISTRATION), headers=headers).headers["X-Exec-Console"]

    assert header("run-state") == "run-state,log-tail"
    assert header("run-state,boot=b1") == "run-state,log-tail,no-group"
    make_group(app_name=APP_NAME)
    assert header("run-state,boot=b1") == "run-state,log-tail"


def test_a_heartbeat_takes_one_read_and_one_write(executor: Executor) -> None:
    make_group(app_name=APP_NAME)
    beat = {"headers": TYPED}
    executor.post("registry", json.dumps(REGISTRATION | {"handlerSchemas": SCHEMAS}), **beat)
    with statements() as executed:
        executor.post("registry", json.dumps(REGISTRATION), **beat)
    assert [text.split()[0] for text in executed] == ["SELECT", "UPDATE"], executed


def test_schemas_are_requested_until_they_are_stored(executor: Executor) -> None:
    def register(headers: dict[str, str], **more: Any) -> str | None:
        answer = executor.post("registry", json.dumps(REGISTRATION | more), headers=headers)
        return answer.headers["X-Exec-Console"]

    def schemas() -> str | None:
        with read_scope() as session:
            return session.scalar(select(Registration.schemas))

    make_group(app_name=APP_NAME)
    assert register(TYPED) == "run-state,log-tail,send-schemas"
    assert register(TYPED) == "run-state,log-tail,send-schemas"
    assert register(TYPED, handlerSchemas=SCHEMAS) == "run-state,log-tail"
    assert register(TYPED) == "run-state,log-tail"
    text = schemas() or ""
    assert (text[:16], json.loads(text[16:])) == (DIGEST, SCHEMAS)
    assert only_row(Registration).capabilities == "durable-dedup,run-state"
    assert register(OURS) == "run-state,log-tail"
    assert schemas() is None, "its handlers have no parameters any more"
    assert register(TYPED, handlerSchemas={"long": "x" * 70_000}) == "run-state,log-tail"
    assert schemas() == DIGEST + "{}"


def test_secrets_are_masked_in_progress_but_not_in_checkpoints(executor: Executor) -> None:
    job = make_job()
    given = {"executor_param": "${secret.TOKEN}", "filled_param": "${secret.TOKEN}", "param_form": 1}
    run = make_run(job, log=given)
    save(Variable(name="TOKEN", group_id=job.job_group, secret="a-long-secret"))
    progress = PROGRESS.replace("orders", "with a-long-secret")
    report(executor, run.id, checkpoint='"a-long-secret"', progress=progress)
    assert stored(run.id) == ('"a-long-secret"', PROGRESS.replace("orders", "with ‹secret TOKEN›"))


def test_the_tail_of_a_log_is_wanted_from_a_line_on(executor: Executor) -> None:
    run = make_run(make_job())
    body = {"logId": run.id, "logDateTim": run.trigger_time, "fromLineNum": 1, "lines": ["one"]}
    answer = executor.post("logTail", json.dumps(body), headers=OURS).get_json()
    assert (answer["code"], answer["content"]) == (200, {"fromLineNum": 0}), "it is not archived"
    for changes, code in (({"logId": run.id + 1}, 404), ({"lines": "one"}, 500), ({"fromLineNum": 0}, 500)):
        assert executor.post("logTail", json.dumps(body | changes), headers=OURS).get_json()["code"] == code
    assert executor.post("logTail", json.dumps(body | {"lines": ["x" * 600_000]})).get_json()["code"] == 500
