"""List of runs: reasons, filters, live rows, further pages, waiting fires."""

import json
import re
from html import unescape

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.log import JobLog
from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_runs import add_log
from tests.support.factories import T0, save
from tests.support.statements import statements


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group()


@pytest.fixture
def job_id(group_id: int) -> int:
    return add_job(group_id)


@pytest.mark.parametrize(
    ("language", "reasons"),
    [
        ("en", ("no executor of a,b is registered","timed out after 30 s", "killed by w: o", "KeyError: 1")),
        ("zh_CN", ("a,b 没有已注册的执行器机器", "由 w 终止：o", "KeyError: 1")),
        ("zh_CN", ("地址“a:1”不可用：须以 http:// 或 https:// 开头",)),
        ("zh_CN", ("参数无法填充：${var.x}：变量 x 不存在",)),
    ],
)  # fmt: skip
def test_a_list_says_why_runs_failed_in_the_readers_language(
    admin: Console, group_id: int, job_id: int, language: str, reasons: tuple[str, ...]
) -> None:
    submit(admin, "/account/settings", language=language, time_zone="UTC")
    not_sent = "Result: not sent, no executor of a,b is registered"
    add_log(job_id, group_id, trigger_code=500, handle_code=0, trigger_msg=not_sent)
    unfilled = "Result: not sent, parameter not filled: ${var.x}: variable x does not exist"
    add_log(job_id, group_id, trigger_code=500, handle_code=0, trigger_msg=unfilled)
    not_called = "address 'a:1' refused: it must start with http:// or https://"
    trace = f"Result: refused, no answer after 0 ms, code 500: {not_called}"
    add_log(job_id, group_id, trigger_code=500, handle_code=0, trigger_msg=trace)
    add_log(job_id, group_id, handle_code=502, handle_msg=None, trigger_msg="Route: x; timeout: 30 s; x")
    add_log(job_id, group_id, handle_code=500, handle_msg="killed by w: o")
    add_log(job_id, group_id, handle_code=500, handle_msg="KeyError: 1")
    page = admin.get("/joblog").text
    assert [reason for reason in reasons if f'title="{reason}"' not in page] == []


@pytest.mark.parametrize("status", [1, 2, 3, 6])
def test_a_search_keeps_the_status_of_the_address(
    admin: Console, group_id: int, job_id: int, status: int
) -> None:
    codes = {1: (200, 200, 0), 2: (500, 0, 0), 3: (200, 0, 0), 6: (200, 500, 1)}
    ids = {
        number: add_log(job_id, group_id, trigger_code=code, handle_code=result, killed=killed)
        for number, (code, result, killed) in codes.items()
    }
    page = admin.get(f"/joblog?logStatus={status}&range=day").text
    assert f'<option value="{status}" selected>' in page
    shown = {number for number, log_id in ids.items() if f'/joblog/{log_id}"' in page}
    assert shown == ({2, 6} if status == 2 else {status})


def test_a_list_reads_parts_of_messages_only(admin: Console, group_id: int, job_id: int) -> None:
    add_log(job_id, group_id, handle_code=500)
    with statements() as executed:
        admin.get("/joblog")
    reading = [sql for sql in executed if "handle_msg" in sql]
    assert [sql.count("handle_msg") - sql.count("(xxl_job_log.handle_msg") for sql in reading] == [1]


def test_a_refresh_brings_only_runs_that_are_new_or_changed(
    admin: Console, group_id: int, job_id: int
) -> None:
    same, ends = add_log(job_id, group_id), add_log(job_id, group_id, handle_code=0, handle_time=None)
    held = "".join(re.findall(r'data-hash="([^"]+)"', admin.get("/joblog").text))
    assert admin.get("/joblog", headers={"X-Parts": held}).status_code == 204
    with session_scope() as session:
        session.get_one(JobLog, ends).handle_code = 500
    starts = add_log(job_id, group_id, handle_code=0, handle_time=None)
    parts = json.loads(admin.get("/joblog", headers={"X-Parts": held}).text)["parts"]
    assert {f"run-{starts}", f"run-{ends}", "rows"} <= set(parts)
    assert f"run-{same}" not in parts


def test_a_further_page_keeps_its_rows_and_counts_new_runs(
    admin: Console, group_id: int, job_id: int
) -> None:
    at_ms = now_ms() // 1_000 * 1_000 - 60_000
    ids = [add_log(job_id, group_id, trigger_time=at_ms + number * 1_000) for number in range(12)]
    first = admin.get("/joblog?length=10&range=all")
    path = re.findall(r'href="/xxl-job-admin(/joblog[^"]*page=2[^"]*)"', first.text)[0]
    second = unescape(path)
    for number in range(2):
        add_log(job_id, group_id, trigger_time=at_ms + (20 + number) * 1_000)
    page = admin.get(second)
    assert re.findall(r'data-part="run-(\d+)"', page.text) == [str(log_id) for log_id in ids[1::-1]]
    assert "2 new runs" in text_of(page)
    assert 'href="/xxl-job-admin/joblog?length=10&amp;range=all">' in page.text
    assert "new run" not in text_of(first)


@pytest.mark.parametrize(
    ("query", "is_shown"),
    [
        ("", True),
        ("?logStatus=8", True),
        ("?logStatus=2", False),
        ("?page=2", True),  # the first: there are no runs
        ("?range=yesterday", False),
        ("?range=all&jobId=1", True),
    ],
)
def test_waiting_fires_stand_above_the_runs_they_match(
    admin: Console, job_id: int, query: str, is_shown: bool
) -> None:
    save(Fire(job_id=job_id, fire_key="manual:1", due_time=now_ms() - 5_000, trigger_type="MANUAL"))
    assert ("no scheduler is running" in admin.get(f"/joblog{query}").text) is is_shown


@pytest.mark.parametrize(("ago_ms", "is_shown"), [(59_000, False), (86_400_000, True)])
def test_a_waiting_fire_names_its_logical_time_where_that_differs(
    admin: Console, job_id: int, ago_ms: int, is_shown: bool
) -> None:
    due_ms = now_ms() - 5_000
    waiting = {"job_id": job_id, "fire_key": "manual:1", "due_time": due_ms, "trigger_type": "MANUAL"}
    save(Fire(**waiting, logical_ms=due_ms - ago_ms))
    assert (" · By hand" in text_of(admin.get("/joblog"))) is is_shown


def test_waiting_fires_stand_above_the_first_page_only(admin: Console, group_id: int, job_id: int) -> None:
    save(Fire(job_id=job_id, fire_key="manual:1", due_time=now_ms() - 5_000, trigger_type="MANUAL"))
    for _ in range(11):
        add_log(job_id, group_id)
    first, second = (admin.get(f"/joblog?length=10&range=all&page={page}").text for page in (1, 2))
    assert "no scheduler is running" in first
    assert "no scheduler is running" not in second


def test_the_filter_by_job_is_named(admin: Console, group_id: int, job_id: int) -> None:
    assert f"Job: {job_id} nightly report" in text_of(admin.get(f"/joblog?jobId={job_id}"))


def test_a_run_started_again_returns_to_the_filtered_list(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, handle_code=500)
    page = admin.get("/joblog?logStatus=2&range=all").text
    (again,) = re.findall(r'href="/xxl-job-admin(/jobinfo/\d+/run\?[^"]*)"', page)
    assert f"log={log_id}" in again
    assert (
        'name="next" value="/xxl-job-admin/joblog?logStatus=2&amp;range=all"'
        in admin.get(unescape(again)).text
    )


def test_the_ends_of_a_range_may_be_in_either_order(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_log(job_id, group_id, trigger_time=T0)
    page = admin.get("/joblog?from=2024-05-02T00:00:00&to=2024-04-30T00:00:00")
    assert f'href="/xxl-job-admin/joblog/{log_id}' in page.text
    assert "Time: 2024-04-30 00:00:00 – 2024-05-02 00:00:00" in text_of(page)


@pytest.mark.parametrize("name", ["range=custom&", ""])
def test_a_range_of_two_instants_is_shown_and_removed_as_a_whole(admin: Console, name: str) -> None:
    path = f"/joblog?{name}from=2024-05-01T00:00:00&to=2024-05-02T12:30:00&logStatus=2"
    page = admin.get(path)
    assert "Time: 2024-05-01 00:00:00 – 2024-05-02 12:30:00" in text_of(page)
    chip = re.search(r'class="chip" href="([^"]+)">Time', page.text)
    assert chip is not None
    assert chip[1] == "/xxl-job-admin/joblog?logStatus=2&amp;range=all"
    assert "Time: … – 2024-05-02 12:30" in text_of(
        admin.get("/joblog?range=custom&from=soon&to=2024-05-02T12:30")
    )


def test_a_list_names_logical_times_that_differ_from_the_trigger(
    admin: Console, group_id: int, job_id: int
) -> None:
    submit(admin, "/account/settings", language="en", time_zone="UTC")
    add_log(job_id, group_id, trigger_time=T0, logical_ms=T0 - 60_000)
    add_log(job_id, group_id, trigger_time=T0, logical_ms=T0 - 59_999)
    page = text_of(admin.get("/joblog?range=all"))
    assert page.count("for 2024-05-01 ") == 1


def test_the_list_is_filtered_by_logical_time(admin: Console, group_id: int, job_id: int) -> None:
    submit(admin, "/account/settings", language="en", time_zone="UTC")
    early = add_log(job_id, group_id, trigger_time=T0 + 3_600_000, logical_ms=T0)
    late = add_log(job_id, group_id, trigger_time=T0 + 3_600_000, logical_ms=T0 + 86_400_000)

    def shown(query: str) -> set[int]:
        page = admin.get(f"/joblog?{query}").text
        return {log_id for log_id in (early, late) if f'/joblog/{log_id}"' in page}

    day = "logical_from=2024-05-01T00:00:00&logical_to=2024-05-01T23:59:59"
    assert shown(day) == {early}, "of any day: without a range all runs are meant"
    assert shown("logical_from=2024-05-02T00:00") == {late}
    assert shown(f"{day}&range=today") == set()
    page = admin.get(f"/joblog?{day}")
    assert "Logical time from: 2024-05-01 00:00:00" in text_of(page)
    assert "logical_from=2024-05-01" in page.text.partition("/joblog/runs.csv?")[2][:200]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("logStatus=2&range=today", "Nothing failed today."),
        ("logStatus=2&range=day", "Nothing failed in this time."),
        ("logStatus=7&range=today", "No such failure in this time."),
        ("logStatus=1&range=today", "No run in this time"),
        ("logStatus=3&range=all", "No run in this time"),
    ],
)
def test_an_empty_list_of_failures_is_good_news(admin: Console, query: str, text: str) -> None:
    page = admin.get(f"/joblog?{query}")
    assert text in text_of(page)
    assert ('class="state success"' in page.text) == (not text.startswith("No run"))
