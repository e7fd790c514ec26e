"""Machine identity: a token acts on runs and registrations of its own groups only, and names match exactly.

Attacks of the security review, sent through the executor API.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from app.api.executor_api import ExecutorApi
from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.registry import Registration
from app.settings.config import Config
from executor_client.wire.callbacks import ELEMENTS_MAX
from tests.pipeline.steps import open_run, resolving
from tests.support.api import NETWORKS, TOKEN, Executor, console_stub
from tests.support.factories import T0, all_rows, make_group, make_job, make_run, only_row, remove
from tests.support.fake_executor import FakeExecutor
from tests.support.plan import every_database
from tests.support.statements import statements

WRONG_TOKEN = "The access token is wrong."
FIRST_TOKEN, SECOND_TOKEN = "only-for-the-first", "only-for-the-second"


def api_config(config: Config) -> Config:
    return replace(config, access_tokens=(TOKEN,), executor_networks=NETWORKS)


@pytest.fixture
def executor(database: str, config: Config) -> Iterator[Executor]:
    """Executor client with the API that it calls; groups are made before the first call."""
    api = ExecutorApi(console_stub, api_config(config))
    yield Executor(api)
    api.callbacks.close()


def job_of(token: str | None, **overrides: Any) -> Job:
    """Return a job in a new group with this token."""
    group = make_group(app_name=f"app-{token}", access_token=token)
    return make_job(job_group=group.id, **overrides)


def item(log_id: int, message: str = "forged") -> dict[str, Any]:
    return {"logId": log_id, "logDateTim": T0, "handleCode": 200, "handleMsg": message}


def call_back(executor: Executor, *items: Any, token: str) -> int:
    return executor.call("callback", json.dumps(items), token=token)[0]


@pytest.mark.parametrize(
    ("own", "given"),
    [(SECOND_TOKEN, FIRST_TOKEN), (SECOND_TOKEN, TOKEN), (None, FIRST_TOKEN)],
    ids=["another group's token", "the global token", "a group's token for a group without"],
)
def test_a_foreign_token_ends_no_run(executor: Executor, own: str | None, given: str) -> None:
    job_of(FIRST_TOKEN)
    run = make_run(job_of(own, child_jobid="7"))
    assert call_back(executor, item(run.id), token=given) == 500
    row = only_row(JobLog)
    assert (row.handle_code, row.handle_msg) == (0, None)
    assert [fire.log_id for fire in all_rows(Fire)] == [run.id], "no child fire, and the run goes on"
    assert call_back(executor, item(run.id, "own"), token=own or TOKEN) == 200
    assert (only_row(JobLog).handle_msg or "").startswith("own\n>>> child jobs")


def test_each_element_of_a_callback_is_checked(executor: Executor, caplog: pytest.LogCaptureFixture) -> None:
    own, foreign, unprotected = (make_run(job_of(token)) for token in (FIRST_TOKEN, SECOND_TOKEN, None))
    runs = [own, foreign, unprotected]
    with caplog.at_level(logging.WARNING):
        assert call_back(executor, *(item(run.id, "x") for run in runs), token=FIRST_TOKEN) == 500
    assert {log.id: log.handle_code for log in all_rows(JobLog)} == {
        own.id: 200,
        foreign.id: 0,
        unprotected.id: 0,
    }
    assert [record.getMessage() for record in caplog.records] == [
        f"callbacks refused, the runs belong to other groups count=2 log_ids={foreign.id}, {unprotected.id}"
    ]
    assert FIRST_TOKEN not in caplog.text


def test_the_token_before_is_accepted_until_the_changeover_ends(executor: Executor, config: Config) -> None:
    group = make_group(app_name="app-x", address_type=0, access_token=SECOND_TOKEN, former_token=FIRST_TOKEN)
    job = make_job(job_group=group.id)
    for token in (SECOND_TOKEN, FIRST_TOKEN):
        assert call_back(executor, item(make_run(job).id), token=token) == 200
        assert executor.call("registry", registration("app-x"), token=token)[0] == 200
    assert call_back(executor, item(make_run(job).id), token=TOKEN) == 500
    with session_scope() as session:
        session.merge(group).former_token = None
    later = Executor(ExecutorApi(console_stub, api_config(config)))
    assert call_back(later, item(make_run(job).id), token=FIRST_TOKEN) == 500
    assert later.call("registry", registration("app-x"), token=FIRST_TOKEN) == (500, WRONG_TOKEN)
    later.api.callbacks.close()


def test_another_application_cannot_vouch_for_an_executor(executor: Executor, config: Config) -> None:
    """Capabilities announced for the address of a foreign executor would have its run started twice."""
    make_group(app_name="app-x", address_type=0, access_token=FIRST_TOKEN)
    with FakeExecutor() as victim:
        open_run(victim.address)  # sent, outcome unknown; the executor starts it again if it is sent again
        headers = {"X-Exec-Capabilities": "durable-dedup,boot=5f0c"}
        body = registration("app-x", victim.address)
        assert executor.call("registry", body, token=FIRST_TOKEN, headers=headers)[0] == 200
        with resolving(config) as probe:
            probe(0)
    assert only_row(Fire).state == "UNKNOWN"


def test_a_run_of_a_deleted_group_takes_the_global_token(executor: Executor) -> None:
    job_of(FIRST_TOKEN)
    group = make_group(access_token=SECOND_TOKEN)
    run = make_run(make_job(job_group=group.id))
    remove(group)
    for token, code in ((FIRST_TOKEN, 500), (TOKEN, 200)):
        assert call_back(executor, item(run.id), token=token) == code
    assert only_row(JobLog).handle_code == 200


def test_results_of_unknown_runs_are_ignored_for_every_token(executor: Executor) -> None:
    job_of(FIRST_TOKEN)
    for token in (FIRST_TOKEN, TOKEN):
        assert call_back(executor, item(4711), item(0), item(-5), item(2**63 - 1), token=token) == 200


def test_without_tokens_of_groups_the_check_costs_no_statement(executor: Executor, config: Config) -> None:
    run = make_run(make_job())
    call_back(executor, token=TOKEN)  # reads the tokens
    with statements() as executed:
        assert call_back(executor, item(run.id), token=TOKEN) == 200
    unguarded = len(executed)
    job_of(FIRST_TOKEN)
    guarded = Executor(ExecutorApi(console_stub, api_config(config)))
    call_back(guarded, token=TOKEN)
    run = make_run(make_job())
    with statements() as executed:
        assert call_back(guarded, item(run.id), token=TOKEN) == 200
    assert len(executed) == unguarded + 1, "one for all elements together"
    guarded.api.callbacks.close()


@pytest.mark.parametrize("element", ["0", "{}", '{"logId":"x"}'])
def test_a_flood_of_elements_is_refused_at_once(
    executor: Executor, element: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = "[" + ",".join([element] * (ELEMENTS_MAX + 1)) + "]"
    code, message = executor.call("callback", body)
    assert (code, message) == (
        500,
        f"callback refused: {ELEMENTS_MAX + 1} results in one request, at most {ELEMENTS_MAX} are accepted;"
        " send them in several",
    )
    assert len(caplog.records) == 1


def test_unreadable_elements_are_logged_in_one_line(
    executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    code, _ = executor.call("callback", json.dumps([0] * 77))
    assert code == 500
    assert len(caplog.records) == 1
    assert "count=77" in caplog.text


def test_late_results_are_logged_up_to_a_number(executor: Executor, caplog: pytest.LogCaptureFixture) -> None:
    job = make_job()
    runs = [make_run(job) for _ in range(30)]
    items = [item(run.id) for run in runs]
    assert call_back(executor, *items, token=TOKEN) == 200
    with caplog.at_level(logging.INFO):
        assert call_back(executor, *items, token=TOKEN) == 200
    late = [record for record in caplog.records if "callback" in record.getMessage()]
    assert len(late) < len(items)
    assert "count=30" in late[-1].getMessage()


ADDRESS = "http://10.1.2.3:9999/"
#: spellings that the default collation of MySQL and MariaDB takes for ``sec-case-app``, and blanks it ignores
SPELLINGS = [
    "SEC-CASE-APP",
    "sec-case-app ",
    " sec-case-app",
    "s\u00e9c-case-app",
    "sec-case-app\u3000",
    "sec-case-app\u00a0",
    "sec-case-app\x00",
    "sec-case\u200b-app",
    "\uff53ec-case-app",
]


def age(row: Registration) -> None:
    """Set the last heartbeat back to T0, so that another one shows."""
    with session_scope() as session:
        session.merge(row).update_time = T0


def registration(app_name: str, address: str = ADDRESS) -> str:
    return json.dumps({"registryGroup": "EXECUTOR", "registryKey": app_name, "registryValue": address})


@every_database
def test_another_spelling_of_a_name_reaches_no_registration(executor: Executor) -> None:
    make_group(app_name="sec-case-app", address_type=0, address_list=None, access_token=FIRST_TOKEN)
    assert executor.call("registry", registration("sec-case-app"), token=FIRST_TOKEN)[0] == 200
    (own,) = all_rows(Registration)
    age(own)
    for name in SPELLINGS:
        for action in ("registry", "registryRemove"):
            executor.call(action, registration(name), token=TOKEN)
        kept = only_row(Registration, id=own.id)
        assert (kept.registry_key, kept.update_time) == ("sec-case-app", T0), f"{name!r} reached it"
        assert only_row(Group).address_list == ADDRESS, name


@every_database
@pytest.mark.parametrize("name", ["sec-case-app ", "\tsec-case-app\u3000", "sec-case-app\x00"])
def test_blanks_around_a_name_are_ignored(executor: Executor, name: str) -> None:
    make_group(app_name="sec-case-app", address_type=0, address_list=None, access_token=FIRST_TOKEN)
    assert executor.call("registry", registration(name), token=TOKEN) == (500, WRONG_TOKEN)
    assert executor.call("registry", registration(name), token=FIRST_TOKEN)[0] == 200
    assert only_row(Registration).registry_key == "sec-case-app"
    assert executor.call("registryRemove", registration(name), token=FIRST_TOKEN)[0] == 200
    assert all_rows(Registration) == []


@pytest.mark.parametrize("name", ["sec\u200b-app", "sec\u00a0app", "sec\napp", "sec\u202eapp"])
def test_a_name_that_shows_as_another_is_refused(executor: Executor, name: str) -> None:
    for action in ("registry", "registryRemove"):
        code, message = executor.call(action, registration(name), token=TOKEN)
        assert code == 500
        assert "registryKey" in (message or "")
    assert all_rows(Registration) == []


@every_database
def test_names_that_differ_in_case_only_are_two_applications(executor: Executor) -> None:
    for name in ("abcd", "ABCD"):
        make_group(app_name=name, address_type=0, address_list=None)
        assert executor.call("registry", registration(name, f"http://{name}:9999/"), token=TOKEN)[0] == 200
    assert executor.call("registryRemove", registration("ABCD", "http://abcd:9999/"), token=TOKEN)[0] == 200
    assert {group.app_name: group.address_list for group in all_rows(Group)} == {
        "abcd": "http://abcd:9999/",
        "ABCD": "http://ABCD:9999/",
    }
