"""Executor groups: states of instances from runs, heartbeats and tests, and what failed last."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from app.clock import MINUTE_MS, now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.executors.instance_state import InstanceState
from app.models.group import Group
from app.models.job import Job
from app.models.registry import Registration
from app.services.executors.group_rows import group_rows
from app.services.executors.instance_records import InstanceRecord
from app.services.executors.instances import find_instances
from app.services.report.group_overview import read_overview
from app.store.executors import address_runs
from tests.console.pages import submit, text_of
from tests.support.console import ACTOR, NETWORKS, Console, add_group, add_job
from tests.support.factories import make_group, make_job, make_log, save
from tests.support.fake_executor import FakeExecutor
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

FIRST, SECOND = "http://127.0.0.1:9991", "http://127.0.0.1:9992"
REFUSED = {"trigger_code": 500, "trigger_msg": "Connection refused"}
FAILED = {"trigger_code": 200, "handle_code": 500, "handle_msg": "ValueError: no data"}
DONE = {"trigger_code": 200, "handle_code": 200}


def run(job: Job, address: str, minutes: int, codes: dict[str, Any]) -> int:
    at_ms = (now_ms() - minutes * MINUTE_MS) // 1000 * 1000
    return make_log(job, executor_address=address, trigger_time=at_ms, **codes).id


def beat(app_name: str, address: str, **more: Any) -> None:
    row = {"registry_group": "EXECUTOR", "registry_key": app_name, "registry_value": address}
    save(Registration(**row, update_time=now_ms(), **more))


def records(group: Group) -> dict[str, InstanceRecord]:
    with read_scope() as session:
        instances = find_instances(session, group, now_ms=now_ms())
        overview = read_overview(session, group, instances, networks=NETWORKS, actor=ACTOR, now_ms=now_ms())
        return {record.instance.address: record for record in overview.records}


def test_an_address_that_refuses_every_run_is_not_shown_as_fine(admin: Console) -> None:
    job = make_job(addresses=FIRST)
    run(job, FIRST, 30, DONE)
    last_id = [run(job, FIRST, minutes, REFUSED) for minutes in (20, 10)][-1]
    page = admin.get(f"/jobgroup/{job.job_group}")
    text = text_of(page)
    assert "Refuses runs 10 minutes ago" in text
    assert f'/joblog/{last_id}"' in page.text
    assert "accepts new runs" in text, "it is not drained"
    assert "check-circle-fill" not in page.text.split("<tbody>")[1].split("</tbody>")[0]
    assert "1 does not take runs" in text_of(admin.get("/jobgroup"))


def test_runs_and_failures_of_a_day_are_counted_by_instance() -> None:
    group = make_group(address_list=f"{FIRST},{SECOND}/")
    job = make_job(job_group=group.id)
    for minutes in (1, 2, 3):
        run(job, FIRST, minutes, DONE)
    failed = [run(job, SECOND, minutes, FAILED) for minutes in (9, 8, 7)]
    run(job, FIRST, 25 * 60, FAILED)
    run(make_job(addresses=FIRST), FIRST, 1, FAILED)
    found = records(group)
    counts = {address: (row.evidence.runs, row.evidence.failures) for address, row in found.items()}
    assert counts == {FIRST: (3, 0), f"{SECOND}/": (3, 3)}
    assert [row.state for row in found.values()] == [InstanceState.OK, InstanceState.FAILING]
    assert found[f"{SECOND}/"].failed_id == failed[-1]


def test_a_heartbeat_does_not_hide_that_runs_are_refused() -> None:
    group = make_group(app_name="auto-app", address_type=0, address_list=FIRST)
    beat("auto-app", FIRST)
    assert records(group)[FIRST].state is InstanceState.OK
    job = make_job(job_group=group.id)
    run(job, FIRST, 5, REFUSED)
    assert records(group)[FIRST].state is InstanceState.REFUSING
    run(job, FIRST, 1, DONE)
    assert records(group)[FIRST].state is InstanceState.OK


def test_a_connection_test_and_the_state_do_not_contradict_each_other(admin: Console) -> None:
    with FakeExecutor() as server:
        group_id = add_group(addresses=f"{server.address},http://127.0.0.1:65533")
        job = make_job(job_group=group_id)
        run(job, server.address, 5, REFUSED)
        assert "Refuses runs" in text_of(admin.get(f"/jobgroup/{group_id}"))
        tested = text_of(submit(admin, f"/jobgroup/{group_id}/test"))
        later = text_of(admin.get(f"/jobgroup/{group_id}"))
    for page in (tested, later):
        assert "Refuses runs" not in page
        assert "Reachable" in page
        assert "Does not answer just now" in page
    assert "Answered in" in tested
    assert "answered a test just now" in later


def test_the_page_lists_handlers_jobs_and_failures_of_the_group(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id, other = add_group(addresses=FIRST), add_group("other-app", "Other", addresses=FIRST)
    beat("sample-app", FIRST, handlers="closeOrders,sendMail", capabilities="durable-dedup,version=0.1.0")
    fine, failing = (add_job(group_id, job_desc=name) for name in ("fine job", "failing job"))
    secret = add_job(other, job_desc="secret job")
    for job_id, codes, group in (
        (fine, DONE, group_id),
        (failing, FAILED, group_id),
        (secret, FAILED, other),
    ):
        job = Job(id=job_id, job_group=group, executor_handler="h", executor_fail_retry_count=0)
        run(job, FIRST, 5, codes)
    norman = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    for console in (admin, norman):
        page = text_of(console.get(f"/jobgroup/{group_id}"))
        assert "2 handlers closeOrders, sendMail" in page
        assert "Duetime 0.1.0, starts no run twice" in page
        jobs, failures = page.split("Last failures")[0], page.split("Last failures")[1]
        assert jobs.index(f"{failing} failing job") < jobs.index(f"{fine} fine job")
        assert f"{failing} failing job 127.0.0.1:9991 Failed ValueError: no data 5 minutes ago" in failures
        assert "secret" not in page


def test_more_groups_and_instances_take_no_more_statements() -> None:
    groups = [make_group(app_name=f"app-{number}", address_list=FIRST) for number in range(5)]
    for group in groups:
        run(make_job(job_group=group.id), FIRST, 5, REFUSED)
    counts = []
    for some in (groups[:1], groups):
        with statements() as executed, read_scope() as session:
            rows = group_rows(session, some, networks=NETWORKS, now_ms=now_ms())
        assert [row.states for row in rows] == [{InstanceState.REFUSING: 1}] * len(some)
        counts.append(len(executed))
    assert counts[0] == counts[1]


def test_the_runs_that_are_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_runs, "READ_MAX", 4)
    monkeypatch.setattr(address_runs, "READ_MIN", 2)
    jobs = [make_job(addresses=FIRST) for _ in range(3)]
    for job in jobs:
        for minutes in range(5, 0, -1):
            run(job, FIRST, minutes, DONE)
    with read_scope() as session:
        for some in (jobs[:1], jobs):
            ids = [job.job_group for job in some]
            rows = address_runs.count_by_address(session, ids, since_ms=0)
            assert [row.runs for row in rows] == [max(2, 4 // len(some))] * len(some)


def test_spellings_of_an_address_are_one_instance() -> None:
    group = make_group(address_list=f"{FIRST}/")
    job = make_job(job_group=group.id)
    run(job, FIRST, 9, DONE)
    failed_id = run(job, f"{FIRST}/", 5, REFUSED)
    record = records(group)[f"{FIRST}/"]
    assert (record.evidence.runs, record.evidence.failures, record.failed_id) == (2, 1, failed_id)
    assert record.state is InstanceState.REFUSING


def test_the_runs_of_an_instance_are_bars_of_its_hours(admin: Console) -> None:
    job = make_job(addresses=f"{FIRST},{SECOND}")
    for minutes in (5, 10, 200):
        run(job, FIRST, minutes, DONE)
    run(job, FIRST, 12, FAILED)
    page = admin.get(f"/jobgroup/{job.job_group}").text
    assert page.count("hour-strip") == 1, "the other instance had no runs"
    strip = page.split("hour-strip")[1].split("</svg>")[0]
    assert "hours with failures: 1" in strip
    assert strip.count('class="bar success"') == 2
    assert 'class="bar success" x="115" y="0"' in strip, "the last hour has most runs"
    assert strip.count('class="bar danger"') == 1


def test_the_list_counts_the_runs_of_a_day_and_links_to_the_failed_ones(admin: Console) -> None:
    job = make_job(addresses=FIRST)
    for minutes in (5, 10):
        run(job, FIRST, minutes, FAILED)
    run(job, FIRST, 15, DONE)
    run(job, FIRST, 2_000, FAILED)
    page = admin.get("/jobgroup").text
    query = f"jobGroup={job.job_group}&amp;logStatus=2&amp;range=day"
    assert re.search(rf'/joblog\?{query}"\s+aria-label="2 failed runs', page)
    assert '<td class="num off-card">3</td>' in page
    assert "2 of 3 failed" in page, "on a phone"


def test_one_search_finds_groups_by_title_or_app_name(admin: Console) -> None:
    add_group("orders-app", "Bestellungen")
    add_group("mail-app", "Post for orders")
    add_group("other-app", "Other")
    found = text_of(admin.get("/jobgroup?q=orders"))
    assert "orders-app" in found
    assert "mail-app" in found
    assert "other-app" not in found
    assert "No executor group matches the filters" in text_of(admin.get("/jobgroup?q=nothing"))
    both = admin.get("/jobgroup?q=app&appname=mail")
    assert "orders-app" not in both.text
    assert 'name="appname" value="mail"' in both.text
