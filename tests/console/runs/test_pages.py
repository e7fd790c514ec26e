"""Pages of runs: list, one run and its rolling log, message, kill and cleaning."""

import csv
import io
from collections.abc import Callable

import pytest

from app.clock import DAY_MS, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.models.fire import Fire
from app.models.log import JobLog
from tests.console.pages import is_at_login, markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_runs import add_log
from tests.support.factories import T0, save
from tests.support.fake_executor import Answer, FakeExecutor


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group()


@pytest.fixture
def job_id(group_id: int) -> int:
    return add_job(group_id)


def test_without_a_login_every_page_redirects_to_the_login(console: Console) -> None:
    for path in (
        "/joblog",
        "/joblog/1",
        "/joblog/1/note",
        "/joblog/1/lines",
        "/joblog/1/log.txt",
        "/joblog/1/kill",
        "/joblog/clean",
    ):
        assert is_at_login(console.get(path)), path


def test_runs_of_invisible_groups_do_not_exist(
    admin: Console, group_id: int, normal_user: Callable[..., Console]
) -> None:
    other = add_group("other-app", "Other")
    log_id = add_log(add_job(other, job_desc="secret job"), other)
    norman = normal_user(group_id)
    for path in (
        f"/joblog/{log_id}",
        f"/joblog/{log_id}/note",
        f"/joblog/{log_id}/lines",
        f"/joblog/{log_id}/log.txt",
        f"/joblog/{log_id}/kill",
    ):
        assert norman.get(path).status_code == 404, path
    assert "secret job" not in norman.get("/joblog?range=all").text
    assert norman.get(f"/joblog/clean?jobGroup={other}").status_code == 404
    assert submit(norman, "/joblog/clean", job_group=other, job_id=0, kind=9).status_code == 404


def test_a_kill_has_one_name(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, handle_code=0, handle_time=None)
    assert "Kill the run" in text_of(admin.get(f"/joblog/{log_id}"))
    assert text_of(admin.get(f"/joblog/{log_id}/kill")).count("Kill the run") == 3, "title, heading, button"
    assert "Kill the runs in progress" in text_of(admin.get("/jobinfo"))
    assert text_of(admin.get(f"/jobinfo/{job_id}/kill")).count("Kill the runs in progress") == 3


def test_the_view_right_alone_neither_kills_nor_cleans(
    admin: Console, group_id: int, job_id: int, normal_user: Callable[..., Console]
) -> None:
    log_id = add_log(job_id, group_id, handle_code=0, handle_time=None)
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    assert reader.get(f"/joblog/{log_id}").status_code == 200
    assert "Kill the run" not in reader.get(f"/joblog/{log_id}").text
    assert submit(reader, f"/joblog/{log_id}/kill").status_code == 403
    assert submit(reader, "/joblog/clean", job_group=group_id, job_id=0, kind=9).status_code == 403


def test_a_run_shows_job_executor_and_duration_as_text(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id)
    page = admin.get("/joblog")
    assert f"{job_id} nightly report" in page.text
    assert "127.0.0.1:9999" in page.text
    assert "9 s" in page.text
    message = admin.get(f"/joblog/{log_id}/note")
    assert "Trigger type: Cron" in message.text
    assert "&lt;i&gt;done&lt;/i&gt;" in message.text
    assert "<i>done" not in message.text


def test_messages_of_the_java_original_lose_their_markup(admin: Console, group_id: int, job_id: int) -> None:
    trace = (
        'route: FIRST<br><br><span style="color:#00c0ef;" > >>>run<<< </span><br>code: 200 <script>x</script>'
    )
    page = admin.get(f"/joblog/{add_log(job_id, group_id, trigger_msg=trace)}/note").text
    assert ">route: FIRST\n &gt;&gt;&gt;run&lt;&lt;&lt; \ncode: 200 &lt;script&gt;x&lt;/script&gt;<" in page


def test_a_trace_is_shown_in_the_readers_language_and_zone(
    admin: Console, group_id: int, job_id: int
) -> None:
    submit(admin, "/account/settings", language="zh_CN", time_zone="Europe/Paris")
    stored_trace = (
        "Trigger: CRON, due 2026-11-20 08:00:00.250 +0800, seen by node one\n"
        "Claimed: 2026-11-20 08:00:00.262 +0800 (12 ms after due), node one\n"
        "Route: ROUND; block strategy: COVER_EARLY; timeout: 5 s; retries left: 1\n"
        ">>> trigger <<<\nSent to: http://a/\n"
        "Result: unknown, no answer after 3000 ms, code 500: no answer in time\n"
        "Resolver: send again, delivery is at_least_once\n<b>own words</b>"
    )
    result = "Sent to: elsewhere\n>>> child jobs <<<\n1/1 job 7: triggered"
    log_id = add_log(job_id, group_id, trigger_msg=stored_trace, handle_msg=result)
    note = admin.get(f"/joblog/{log_id}/note").text
    assert "Sent to: elsewhere\n&gt;&gt;&gt; 触发子任务 &lt;&lt;&lt;\n1/1 任务 7：已触发" in note
    for page in (admin.get(f"/joblog/{log_id}?tab=dispatch").text, note):
        assert '<span class="day">2026-11-20</span> 01:00:00</time>.250' in page
        assert "按计划 · 节点 one" in page
        assert "+12 毫秒" in page
        assert "路由策略：轮询；阻塞处理策略：覆盖之前调度；任务超时时间：5 秒；剩余重试次数：1" in page
        assert "结果：未知，3000 毫秒内无应答，code 500：未在规定时间内响应" in page
        assert "核查：再次发送，投递方式为 at_least_once" in page
        assert "\n&lt;b&gt;own words&lt;/b&gt;" in page


def test_a_deeply_nested_reason_is_left_unchanged(admin: Console, group_id: int, job_id: int) -> None:
    reason = "no evidence within 20 s; " * 600 + "delivery is at_most_once"
    log_id = add_log(job_id, group_id, trigger_msg=f"Resolver: unresolved, {reason}")
    assert reason in admin.get(f"/joblog/{log_id}/note").text


def test_a_kill_is_shown_in_the_readers_language(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, handle_code=500, handle_msg="killed by wangwei: ok")
    assert "killed by wangwei: ok" in admin.get(f"/joblog/{log_id}/note").text
    submit(admin, "/account/settings", language="zh_TW", time_zone="UTC")
    assert "由 wangwei 終止：ok" in admin.get(f"/joblog/{log_id}/note").text


def test_the_list_shows_today_by_default(admin: Console, group_id: int, job_id: int) -> None:
    add_log(job_id, group_id, executor_address="http://10.0.0.1:1/", trigger_time=now_ms() - 3 * DAY_MS)
    assert "10.0.0.1:1" not in admin.get("/joblog").text
    assert "10.0.0.1:1" in admin.get("/joblog?range=week").text
    assert "10.0.0.1:1" in admin.get("/joblog?range=all").text
    assert "10.0.0.1:1" not in admin.get("/joblog?from=2001-01-01T00:00&to=2001-01-02T00:00").text
    assert admin.get("/joblog?range=custom&from=nonsense&to=").status_code == 200


@pytest.mark.parametrize(("status", "shown"), [(1, "good"), (2, "bad"), (3, "out")])
def test_the_list_is_filtered_by_state(
    admin: Console, group_id: int, job_id: int, status: int, shown: str
) -> None:
    add_log(job_id, group_id, executor_address="http://good:1/")
    add_log(job_id, group_id, executor_address="http://bad:1/", handle_code=500)
    add_log(job_id, group_id, executor_address="http://out:1/", handle_code=0, handle_time=None)
    page = admin.get(f"/joblog?logStatus={status}").text
    assert [name for name in ("good", "bad", "out") if f"{name}:1" in page] == [shown]


def test_a_job_selects_its_executor_group(admin: Console, group_id: int, job_id: int) -> None:
    add_log(job_id, group_id)
    page = admin.get(f"/joblog?jobId={job_id}").text
    assert f'<option value="{group_id}" selected>' in page
    assert f'<option value="{job_id}" selected>' in page


def test_a_late_fire_is_shown_as_waiting(
    admin: Console, group_id: int, job_id: int, normal_user: Callable[..., Console]
) -> None:
    save(Fire(job_id=job_id, fire_key="manual:1", due_time=now_ms() - 5_000, trigger_type="MANUAL"))
    for path in ("/joblog", f"/jobinfo/{job_id}", "/jobinfo"):
        assert "no scheduler is running" in admin.get(path).text or (
            path == "/jobinfo" and "Waiting" in admin.get(path).text
        ), path
    assert "no scheduler is running" not in normal_user(add_group("other-app", "Other")).get("/joblog").text


def test_the_url_of_the_original_redirects_to_the_run(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id)
    assert path_after(admin.get(f"/joblog/logDetailPage?id={log_id}")) == f"/joblog/{log_id}"
    assert admin.get("/joblog/logDetailPage?id=x").status_code == 404


def test_a_run_that_reached_no_executor_has_no_log(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(
        job_id, group_id, trigger_code=500, handle_code=0, handle_time=None, executor_address=None
    )
    page = admin.get(f"/joblog/{log_id}").text
    assert "there is no log" in page
    assert "data-lines" not in page
    assert admin.get(f"/joblog/{log_id}/lines").get_json() == {
        "end": True,
        "from": 1,
        "lines": [],
        "note": "",
        "outcome": "refused",
        "to": 0,
    }


def log_answer(first: int, last: int, text: str, *, end: bool = False) -> Answer:
    return Answer.json(content={"fromLineNum": first, "toLineNum": last, "logContent": text, "isEnd": end})


def test_a_log_ends_with_the_result_and_not_before(admin: Console, group_id: int, job_id: int) -> None:
    with FakeExecutor() as executor:
        log_id = add_log(job_id, group_id, executor_address=executor.address, handle_code=0, handle_time=None)
        executor.respond("log", log_answer(1, 0, "readLog fail, logFile not exists", end=True))
        answer = admin.get(f"/joblog/{log_id}/lines").get_json()
        assert answer == {
            "end": False,
            "from": 1,
            "lines": [],
            "note": "readLog fail, logFile not exists",
            "outcome": "running",
            "to": 0,
        }
        executor.respond("log", log_answer(1, 2, "one\n<b>two</b>\n"), log_answer(3, 2, ""))
        assert admin.get(f"/joblog/{log_id}/lines").get_json()["lines"] == ["one", "<b>two</b>"]
        with session_scope() as session:
            session.get_one(JobLog, log_id).handle_code = 200
        assert admin.get(f"/joblog/{log_id}/lines?from=3").get_json()["end"] is True


def test_the_whole_log_is_downloaded_as_text(admin: Console, group_id: int, job_id: int) -> None:
    with FakeExecutor() as executor:
        log_id = add_log(job_id, group_id, executor_address=executor.address)
        executor.respond(
            "log", log_answer(1, 2, "one\r\ntwo\n"), log_answer(3, 3, "<script>three"), log_answer(4, 3, "")
        )
        answer = admin.get(f"/joblog/{log_id}/log.txt")
        assert answer.text == "one\ntwo\n<script>three\n"
    assert answer.content_type == "text/plain; charset=utf-8"


def test_a_former_executor_is_named(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, executor_address="http://127.0.0.1:1/")
    assert "127.0.0.1" in admin.get(f"/joblog/{log_id}/lines").get_json()["error"]


def test_an_answer_that_is_no_log_is_named_in_the_readers_language(
    admin: Console, group_id: int, job_id: int
) -> None:
    submit(admin, "/account/settings", language="zh_CN", time_zone="UTC")
    with FakeExecutor() as executor:
        log_id = add_log(job_id, group_id, executor_address=executor.address)
        executor.respond("log", Answer(status=404, body=b"gone"))
        error = admin.get(f"/joblog/{log_id}/lines").get_json()["error"]
    assert error == f"{executor.address}: HTTP 状态码 404：gone"


def test_a_kill_asks_first(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, handle_code=0, handle_time=None)
    assert "ends all runs of this job" in text_of(admin.get(f"/joblog/{log_id}/kill"))


def test_a_kill_that_no_executor_answers_leads_back_to_the_run(
    admin: Console, group_id: int, job_id: int
) -> None:
    address = "http://127.0.0.1:1/"
    log_id = add_log(job_id, group_id, executor_address=address, handle_code=0, handle_time=None)
    run = f"/xxl-job-admin/joblog/{log_id}"
    for page in (
        submit(admin, f"/joblog/{log_id}/kill", next=run),
        admin.get(f"/joblog/{log_id}/log.txt", headers={"Referer": f"http://localhost{run}"}),
    ):
        assert page.status_code == 502
        assert "The call to the executor failed" in text_of(page)
        assert address in text_of(page)
        assert "was logged" not in text_of(page)
        assert f'href="{run}"' in page.text


def test_a_run_that_ended_cannot_be_killed(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id)
    run = f"/xxl-job-admin/joblog/{log_id}"
    page = submit(admin, f"/joblog/{log_id}/kill", next=run)
    assert page.status_code == 409
    assert "Not possible now The run has ended already" in text_of(page)
    assert "try again" not in text_of(page)
    assert f'href="{run}"' in page.text


def test_an_unknown_cleaning_range_is_refused_at_the_field(admin: Console, group_id: int) -> None:
    page = submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind="12")
    assert page.status_code == 400
    assert "The log rows to clear are invalid" in page.text.split('id="kind-error"')[1]


def test_a_run_links_to_its_source_and_its_successors(admin: Console, group_id: int, job_id: int) -> None:
    child_job = add_job(group_id, job_desc="send the report")
    failed = add_log(job_id, group_id, handle_code=500, trigger_type="CRON")
    retry = add_log(job_id, group_id, trigger_type="RETRY", source_log_id=failed)
    child = add_log(child_job, group_id, trigger_type="PARENT", source_log_id=retry, handle_code=500)
    first, middle, last = (admin.get(f"/joblog/{log_id}") for log_id in (failed, retry, child))
    assert "By schedule" in text_of(first)
    assert f"Followed by: retries #{retry} nightly report Succeeded" in text_of(first)
    assert "child runs" not in text_of(first)
    assert f"attempt 2 ( #{failed} )" in text_of(middle)
    assert f'href="/xxl-job-admin/joblog/{failed}"' in middle.text
    assert f"Followed by: child runs #{child} send the report Failed" in text_of(middle)
    assert f'href="/xxl-job-admin/joblog/{child}"' in middle.text
    assert f"Parent run #{retry}" in text_of(last)
    assert "Followed by" not in text_of(last)
    assert f"Parent run #{retry}" in text_of(admin.get(f"/joblog/{child}/note"))


def test_an_adopted_run_shows_no_trigger(admin: Console, group_id: int, job_id: int) -> None:
    answer = text_of(admin.get(f"/joblog/{add_log(job_id, group_id)}"))
    assert "Triggered by" not in answer
    assert "Trigger type " not in answer.replace("Trigger type: Cron", "")
    assert "Followed by" not in answer


def test_deleted_or_invisible_runs_are_not_linked(
    admin: Console, group_id: int, job_id: int, normal_user: Callable[..., Console]
) -> None:
    other = add_group("other-app", "Other")
    foreign_job = add_job(other, job_desc="secret job")
    parent = add_log(foreign_job, other)
    child_run = add_log(job_id, group_id, trigger_type="PARENT", source_log_id=parent)
    add_log(foreign_job, other, trigger_type="PARENT", source_log_id=child_run)
    orphan = add_log(job_id, group_id, trigger_type="RETRY", source_log_id=4711)
    assert f'href="/xxl-job-admin/joblog/{parent}"' in admin.get(f"/joblog/{child_run}").text
    page = normal_user(group_id).get(f"/joblog/{child_run}")
    assert f"Parent run #{parent}" in text_of(page)
    assert f'href="/xxl-job-admin/joblog/{parent}"' not in page.text
    assert "Followed by" not in text_of(page)
    assert "secret job" not in page.text
    deleted = admin.get(f"/joblog/{orphan}")
    assert "Retry of run #4711" in text_of(deleted)
    assert 'href="/xxl-job-admin/joblog/4711"' not in deleted.text


def test_the_first_of_many_child_runs_are_shown(admin: Console, group_id: int, job_id: int) -> None:
    parent = add_log(job_id, group_id)
    for _number in range(51):
        save(
            JobLog(
                job_group=group_id,
                job_id=job_id,
                trigger_type="PARENT",
                source_log_id=parent,
                trigger_code=200,
            )
        )
    page = admin.get(f"/joblog/{parent}")
    assert "Only the first are shown." in text_of(page)
    assert markup_of(page).count('nightly report</a><span class="state') == 50


def test_the_list_is_exported_as_a_table(admin: Console, group_id: int, job_id: int) -> None:
    kept = add_log(job_id, group_id, executor_param="=cmd()", handle_msg='two\nlines, "quoted"')
    add_log(job_id, group_id, handle_code=500)
    assert "/joblog/runs.csv?logStatus=1" in admin.get("/joblog?logStatus=1").text
    answer = admin.get("/joblog/runs.csv?logStatus=1")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "runs.csv" in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert [(row["id"], row["job"], row["executor"], row["result"], row["durationMs"]) for row in rows] == [
        (str(kept), "nightly report", "sample-app", "success", "9000")
    ]
    assert rows[0]["parameter"] == "'=cmd()"
    assert rows[0]["logicalTime"] == rows[0]["triggerTime"]
    assert rows[0]["handleMsg"] == 'two\nlines, "quoted"'


@pytest.mark.parametrize("first", "=+-@＝＋－＠\t")
def test_no_cell_of_the_table_is_a_formula(admin: Console, group_id: int, job_id: int, first: str) -> None:
    add_log(job_id, group_id, executor_param=f"{first}cmd()", handle_msg=f"{first}cmd()")
    (row,) = csv.DictReader(io.StringIO(admin.get("/joblog/runs.csv").text.removeprefix("\ufeff")))
    assert (row["parameter"], row["handleMsg"]) == (f"'{first}cmd()", f"'{first}cmd()")


def test_long_messages_are_cut_in_the_table(admin: Console, group_id: int, job_id: int) -> None:
    add_log(job_id, group_id, handle_msg="a" * 15_000)
    add_log(job_id, group_id, handle_msg="b" * 2_000)
    rows = list(csv.DictReader(io.StringIO(admin.get("/joblog/runs.csv").text.removeprefix("\ufeff"))))
    assert [row["handleMsg"] for row in rows] == ["b" * 2_000, "a" * 2_000 + " … [cut]"]


def test_the_table_is_streamed_while_runs_are_added_and_deleted(
    admin: Console, group_id: int, job_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.console.runs.export.CHUNK", 2)
    ids = [add_log(job_id, group_id) for _ in range(6)]
    answer = admin.get("/joblog/runs.csv", buffered=False)
    pieces = iter(answer.response)
    sent = [next(pieces), next(pieces)]
    add_log(job_id, group_id, trigger_time=now_ms())
    with session_scope() as session:
        session.delete(session.get(JobLog, ids[0]))
    sent += pieces
    rows = csv.DictReader(io.StringIO(b"".join(sent).decode().removeprefix("\ufeff")))
    assert [int(row["id"]) for row in rows] == ids[:0:-1]
    assert len(sent) == 4


def test_the_table_contains_no_invisible_runs_and_is_limited(
    admin: Console,
    group_id: int,
    job_id: int,
    normal_user: Callable[..., Console],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = add_group("other-app", "Other")
    add_log(add_job(other), other)
    for _ in range(5):
        add_log(job_id, group_id)
    assert normal_user(group_id).get("/joblog/runs.csv").text.count("sample-app") == 5
    assert (
        "other-app"
        not in normal_user(group_id, username="nora").get(f"/joblog/runs.csv?jobGroup={other}").text
    )
    monkeypatch.setattr("app.console.runs.export.CHUNK", 2)
    monkeypatch.setattr("app.console.runs.export.ROWS_MAX", 4)
    assert len(admin.get("/joblog/runs.csv").text.splitlines()) == 5


def test_a_run_of_the_list_shows_its_trigger(admin: Console, group_id: int, job_id: int) -> None:
    add_log(job_id, group_id, trigger_type="MANUAL")
    assert "By hand" in text_of(admin.get("/joblog"))


def test_a_page_names_the_logical_time_where_it_differs(admin: Console, group_id: int, job_id: int) -> None:
    same = add_log(job_id, group_id, trigger_time=T0, logical_ms=T0 + 59_999)
    other = add_log(job_id, group_id, trigger_time=T0, logical_ms=T0 + 60_000)
    assert "<dt>Logical time</dt>" not in admin.get(f"/joblog/{same}").text
    assert "<dt>Logical time</dt>" in admin.get(f"/joblog/{other}").text
