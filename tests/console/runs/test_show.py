"""Page of a run: its banner, the runs before and after it, and two runs beside each other."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from app.domain.executors.addresses import without_slash
from app.domain.runs.trigger_report import format_instant
from app.models.audit import AuditEntry
from app.models.log import JobLog
from app.models.registry import Registration
from tests.console.pages import markup_of, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, save
from tests.support.fake_executor import Answer, FakeExecutor


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group()


@pytest.fixture
def job_id(group_id: int) -> int:
    return add_job(group_id, executor_fail_retry_count=2)


def add_run(job_id: int, group_id: int, **changes: object) -> int:
    values = {
        "job_group": group_id,
        "job_id": job_id,
        "trigger_time": T0,
        "trigger_code": 200,
        "handle_code": 200,
    }
    return save(JobLog(**{**values, **changes})).id


def banner_of(admin: Console, log_id: int) -> str:
    page = admin.get(f"/joblog/{log_id}").text
    found = re.search(r"<div class=\"page-head run-head.*<nav class=\"tabs", page, re.DOTALL)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0]))


def test_the_title_names_job_and_run(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_run(job_id, group_id)
    page = markup_of(admin.get(f"/joblog/{log_id}"))
    assert f"<title>nightly report · Run {log_id} ·" in page
    assert f'<h1 class="wrap-any"><a href="/xxl-job-admin/jobinfo/{job_id}">nightly report</a>' in page
    assert f'<span class="run-id">#{log_id}</span></h1>' in page
    deleted = add_run(4711, group_id)
    assert '<h1 class="wrap-any">Job 4711' in markup_of(admin.get(f"/joblog/{deleted}"))


def test_the_banner_says_state_reason_duration_and_attempt(
    admin: Console, group_id: int, job_id: int
) -> None:
    traceback = (
        'Traceback (most recent call last):\n  File "a.py", line 2, in run\n    x()\nValueError: bad amount'
    )
    failed = add_run(
        job_id, group_id, handle_code=500, handle_msg=traceback, duration_ms=320, executor_fail_retry_count=1
    )
    text = banner_of(admin, failed)
    for part in ("Failed", "ValueError: bad amount", "took 320 ms", "attempt 2 of 3", "Run again"):
        assert part in text
    killed = add_run(
        job_id, group_id, handle_code=500, handle_msg="killed by root: ok", killed=1, duration_ms=1_290
    )
    assert re.search(r"Killed .*took 1.2 s.*killed by root", banner_of(admin, killed))
    refused = add_run(job_id, group_id, trigger_code=500, handle_code=0, executor_fail_retry_count=2)
    text = banner_of(admin, refused)
    assert "Not started" in text
    assert "took" not in text
    assert "Kill" in banner_of(admin, add_run(job_id, group_id, handle_code=0))


def test_the_banner_names_the_user_of_a_run_by_hand(admin: Console, group_id: int, job_id: int) -> None:
    trace = f"Trigger: MANUAL, due {format_instant(T0 + 250, 'Europe/Paris')}\nSent to: x"
    save(
        AuditEntry(at_ms=T0 + 250, username="ann", action="job.trigger", object_type="job", object_id=job_id)
    )
    assert "started by ann" in banner_of(
        admin, add_run(job_id, group_id, trigger_type="MANUAL", trigger_msg=trace)
    )
    assert "By hand" in banner_of(admin, add_run(job_id, group_id, trigger_type="MANUAL", trigger_msg=None))
    assert "By schedule" in banner_of(
        admin, add_run(job_id, group_id, trigger_type="CRON", trigger_msg=trace)
    )
    parent = add_run(job_id, group_id)
    assert f"attempt 3 of 3 ( #{parent} )" in banner_of(
        admin, add_run(job_id, group_id, trigger_type="RETRY", source_log_id=parent)
    )


def test_it_leads_to_the_runs_around_it(admin: Console, group_id: int, job_id: int) -> None:
    first, second, third = (
        add_run(job_id, group_id, trigger_time=T0 + number * 1000, handle_code=code)
        for number, code in enumerate((200, 500, 502))
    )
    page = admin.get(f"/joblog/{second}").text
    assert re.search(rf'rel="prev" href="/xxl-job-admin/joblog/{first}"', page)
    assert re.search(rf'rel="next" href="/xxl-job-admin/joblog/{third}"', page)
    text = banner_of(admin, third)
    assert "Previous success" in text
    assert f'href="/xxl-job-admin/joblog/{third}/compare?old={first}"' in admin.get(f"/joblog/{third}").text
    assert "Previous success" not in banner_of(admin, first)
    moved = add_run(job_id, 99, trigger_time=T0 - 1000)
    assert f"/joblog/{moved}" in admin.get(f"/joblog/{first}").text


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor() as running:
        yield running


def log_answer(*lines: str) -> Answer:
    content = {"fromLineNum": 1, "toLineNum": len(lines), "logContent": "\n".join(lines), "isEnd": True}
    return Answer.json(content=content)


END = Answer.json(content={"fromLineNum": 3, "toLineNum": 2, "logContent": "", "isEnd": True})


def test_two_runs_are_compared_without_the_times_of_their_lines(
    admin: Console, group_id: int, job_id: int, executor: FakeExecutor
) -> None:
    before = log_answer("2026-11-20 08:00:00 begin", "2026-11-20 08:00:01 <b>1</b> rows")
    after = log_answer("2026-11-21 08:00:00 begin", "2026-11-21 08:00:09 ValueError")
    executor.respond("log", before, END, after, END)
    shared = {"executor_address": executor.address}
    old = add_run(job_id, group_id, **shared, executor_param="day=1", duration_ms=320)
    new = add_run(job_id, group_id, **shared, executor_param="day=2", handle_code=500, duration_ms=900)
    response = admin.get(f"/joblog/{new}/compare?old={old}")
    text = text_of(response)
    for part in ("320 ms", "900 ms", "day=1", "day=2", "<b>1</b> rows", "ValueError", "Failed", "Succeeded"):
        assert part in text
    assert "2026-11-21 08:00:00 begin" not in text
    assert response.text.count('class="removed"') == response.text.count('class="added"') == 1


def test_an_executor_without_an_answer_hides_no_fact(
    admin: Console, group_id: int, job_id: int, executor: FakeExecutor
) -> None:
    executor.respond("log", Answer(status=500))
    run = add_run(job_id, group_id, executor_address=executor.address, executor_param="day=1")
    text = text_of(admin.get(f"/joblog/{run}/compare?old={run}"))
    assert f"The log of run {run} cannot be read" in text
    assert "day=1" in text


def test_logs_that_take_too_long_are_not_compared(
    admin: Console, job_id: int, group_id: int, executor: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.console.runs.compare.READ_S", 0)
    run = add_run(job_id, group_id, executor_address=executor.address)
    text = text_of(admin.get(f"/joblog/{run}/compare?old={run}"))
    assert f"The log of run {run} took too long to read." in text
    assert executor.requests == []


def test_a_run_is_not_compared_with_one_the_user_may_not_see(
    normal_user: Callable[..., Console], group_id: int, job_id: int
) -> None:
    other = add_group("other-app")
    own, foreign = add_run(job_id, group_id), add_run(add_job(other), other)
    user = normal_user(group_id)
    assert user.get(f"/joblog/{own}/compare?old={foreign}").status_code == 404
    assert user.get(f"/joblog/{foreign}/compare?old={own}").status_code == 404
    assert user.get(f"/joblog/{own}/compare?old={own}").status_code == 200


def test_a_result_of_json_objects_is_a_table(admin: Console, group_id: int, job_id: int) -> None:
    message = '[{"order":7,"note":"<b>late</b>"},{"order":8}]'
    log_id = add_run(job_id, group_id, handle_msg=message)
    page = admin.get(f"/joblog/{log_id}?tab=result").text
    assert '<th scope="col" class="num">order</th><th scope="col">note</th>' in page
    assert "&lt;b&gt;late&lt;/b&gt;" in page
    assert "<b>late" not in page
    assert f"/joblog/{log_id}/result.csv" in page
    assert message not in admin.get(f"/joblog/{log_id}").text
    text = admin.get(f"/joblog/{add_run(job_id, group_id, handle_msg='42 rows')}?tab=result").text
    assert "42 rows" in text
    assert "result.csv" not in text


def test_the_last_progress_of_a_run_is_shown(admin: Console, group_id: int, job_id: int) -> None:
    progress = '{"done":3,"total":10,"text":"<orders>"}'
    page = markup_of(admin.get(f"/joblog/{add_run(job_id, group_id, handle_code=500, progress=progress)}"))
    assert 'max="100" value="30" aria-valuetext="30% 3 of 10 &lt;orders&gt;"' in page
    assert "data-progress hidden" in markup_of(admin.get(f"/joblog/{add_run(job_id, group_id)}"))


def test_a_running_run_has_the_progress_with_its_lines(
    admin: Console, group_id: int, job_id: int, executor: FakeExecutor
) -> None:
    content = {"fromLineNum": 1, "toLineNum": 1, "logContent": "a\n", "isEnd": False}
    progress = '{"done":1,"total":3,"text":"orders"}'
    executor.respond("log", Answer.json(content=content | {"progress": progress}))
    log_id = add_run(job_id, group_id, handle_code=0, executor_address=executor.address)
    assert "progress" not in admin.get(f"/joblog/{log_id}/lines").get_json()
    assert "progress" not in json.loads(executor.requests[-1].body)
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key="sample-app",
            registry_value=without_slash(executor.address),
            update_time=T0,
            boot_id="b1",
            capabilities="durable-dedup,run-state",
        )
    )
    assert admin.get(f"/joblog/{log_id}/lines").get_json()["progress"] == {
        "percent": 33,
        "text": "1 of 3 orders",
    }
    assert json.loads(executor.requests[-1].body)["progress"] is True
