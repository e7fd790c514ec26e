"""Page of a run as that of a CI: facts once, remedies, tabs, steps, tables and progress."""

import csv
import io
import re

import pytest

from app.console.runs.dispatch_steps import steps_of
from app.console.runs.progress import progress_text
from app.models.log import JobLog
from executor_client.wire.run_reports import Progress
from tests.console.pages import markup_of, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.statements import statements

TRACE = (
    "Trigger: CRON, due 2026-11-20 08:00:00.250 +0800, seen by node one\n"
    "Claimed: 2026-11-20 08:00:00.252 +0800 (2 ms after due), node one\n"
    "Addresses: registered [http://a/]\n"
    "Route: ROUND; block strategy: COVER_EARLY; timeout: 5 s; retries left: 1\n"
    ">>> trigger <<<\nSent to: http://a/\nResult: accepted, answered after 20 ms, code 200"
)


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group()


@pytest.fixture
def job_id(group_id: int) -> int:
    return add_job(group_id)


def add_run(job_id: int, group_id: int, **changes: object) -> int:
    values = {"job_group": group_id, "job_id": job_id, "trigger_time": T0, "trigger_code": 200}
    return save(JobLog(**{**values, "handle_code": 200, **changes})).id


def test_a_trace_is_a_line_of_steps(admin: Console) -> None:
    with admin.app.test_request_context():
        steps = steps_of(TRACE)
        assert [(step.title, step.took) for step in steps] == [
            ("Due", ""),
            ("Claimed", "+2 ms"),
            ("Routing", ""),
            ("Sent", ""),
            ("Accepted", "20 ms"),
        ]
        old = steps_of("trigger type: manual<br>>>>run<<<<br>code: 200")
        assert [note for step in old for note in step.notes] == [
            "trigger type: manual",
            ">>>run<<<",
            "code: 200",
        ]
        assert steps_of(None) == []


def test_what_was_not_sent_is_a_step_that_failed(admin: Console) -> None:
    with admin.app.test_request_context():
        last = steps_of("Result: not sent, no executor of pay is registered")[-1]
        assert (last.title, last.state) == ("Not sent", "danger")


REFUSALS = {
    "Result: not sent, no executor of sample-app is registered": (
        "Connect an executor",
        r"/connect\?appname=",
    ),
    "Result: not sent, no executor of sample-app takes new runs: its only address is drained": (
        "Allow new runs",
        r"/jobgroup/\d+\"",
    ),
    "Result: refused, no answer after 0 ms, code 500: address 'http://8.8.8.8/' refused: "
    "it is outside the networks of XXL_JOB_EXECUTOR_NETWORKS": ("Edit the executor", r"/jobgroup/\d+/edit"),
    "Result: refused, answered after 1 ms, code 500: glueType[GLUE_SHELL] is not valid.": (
        "Edit the job",
        r"/jobinfo/\d+/edit",
    ),
}


@pytest.mark.parametrize("line", REFUSALS)
def test_each_refusal_leads_to_its_remedy(admin: Console, group_id: int, job_id: int, line: str) -> None:
    log_id = add_run(job_id, group_id, trigger_code=500, handle_code=0, trigger_msg=line)
    page = admin.get(f"/joblog/{log_id}").text
    title, href = REFUSALS[line]
    links = re.findall(r'<a class="btn btn-sm btn-default" href="[^"]*".*?</a>', page, re.DOTALL)
    assert [link for link in links if title in link and re.search(href, link)]
    assert "there is no log" in page
    path = re.search(r'href="/xxl-job-admin([^"]*)"', next(link for link in links if title in link))
    assert path is not None
    assert admin.get(path[1].replace("&amp;", "&")).status_code == 200


def test_the_reason_names_the_runs_before_it_and_mutes_with_one_click(
    admin: Console, group_id: int, job_id: int
) -> None:
    success = add_run(job_id, group_id, trigger_time=T0 - 9_000)
    for number in (3, 2, 1):
        add_run(
            job_id, group_id, trigger_time=T0 - number * 1_000, handle_code=500, handle_msg=f"no {number}"
        )
    log_id = add_run(job_id, group_id, handle_code=500, handle_msg="no 4")
    text = text_of(admin.get(f"/joblog/{log_id}"))
    assert "The same reason in the last 4 runs, since" in text
    assert re.search(rf"Last success: #{success} ,", text)
    assert "Mute 1 h" in text
    submit(admin, f"/jobinfo/{job_id}/mute", span="1h")
    text = text_of(admin.get(f"/joblog/{log_id}"))
    assert "Mute 1 h" not in text
    assert "Alarms of this job are muted." in text


def test_no_fact_is_on_the_page_twice(admin: Console, group_id: int, job_id: int) -> None:
    changes: dict[str, object] = {"handle_msg": "43 orders closed", "executor_param": "region=eu"}
    changes["duration_ms"] = 1_234
    log_id = add_run(
        job_id, group_id, executor_address="http://10.0.4.12:9999/", trigger_msg=TRACE, **changes
    )
    page = text_of(admin.get(f"/joblog/{log_id}")).partition("Skip to content")[2]
    for fact in ("nightly report", "1.2 s", "region=eu", f"#{log_id}", "Details"):
        assert page.count(fact) == 1, fact
    assert "43 orders closed" not in page
    assert "43 orders closed" in text_of(admin.get(f"/joblog/{log_id}?tab=result"))
    assert "Routing" in text_of(admin.get(f"/joblog/{log_id}?tab=dispatch"))


def test_parameters_are_names_with_values(admin: Console, group_id: int, job_id: int) -> None:
    log_id = add_run(job_id, group_id, executor_param='{"day":"<1>"}')
    page = markup_of(admin.get(f"/joblog/{log_id}"))
    assert '<th scope="row">day</th><td class="wrap-any">&lt;1&gt;</td>' in page


def test_a_result_is_a_table_with_numbers_and_a_file(admin: Console, group_id: int, job_id: int) -> None:
    message = '[{"order":7,"sum":1234567.5,"code":"00123456"},{"order":2026,"sum":-3210,"code":"=1+1"}]'
    log_id = add_run(job_id, group_id, handle_msg=message)
    page = markup_of(admin.get(f"/joblog/{log_id}?tab=result"))
    numbers = ("1,234,567.5", "2026", "-3,210")
    assert all(f'<td class="num">{number}</td>' in page for number in numbers)
    assert ">00123456</td>" in page
    answer = admin.get(f"/joblog/{log_id}/result.csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert rows == [["order", "sum", "code"], ["7", "1234567.5", "00123456"], ["2026", "'-3210", "'=1+1"]]
    assert admin.get(f"/joblog/{add_run(job_id, group_id, handle_msg='text')}/result.csv").status_code == 404


def test_the_shards_of_a_broadcast_lead_to_each_other(admin: Console, group_id: int, job_id: int) -> None:
    ids = [add_run(job_id, group_id, executor_sharding_param=f"{n}/2", fire_time=T0) for n in range(2)]
    page = markup_of(admin.get(f"/joblog/{ids[0]}"))
    strip = page.partition('class="run-shards"')[2].partition("</nav>")[0]
    assert all(f'href="/xxl-job-admin/joblog/{log_id}"' in strip for log_id in ids)
    assert strip.count('aria-current="page"') == 1


@pytest.mark.parametrize(
    ("progress", "elapsed_ms", "text"),
    [
        (Progress(93, 200, "pages"), 104_000, "93 of 200 pages · about 2 min left"),
        (Progress(93, 200, "pages"), None, "93 of 200 pages"),
        (Progress(1, 2), 20_000, "1 of 2 · about 20 s left"),
        (Progress(1, 1_000, "rows"), 60_000, "1 of 1,000 rows"),
        (Progress(2, 2, "rows"), 60_000, "2 of 2 rows"),
        (Progress(1, 100, "rows"), 10**10, "1 of 100 rows"),
        (Progress(0, 0, "starting"), 60_000, "starting"),
    ],
)
def test_progress_in_words(admin: Console, progress: Progress, elapsed_ms: int | None, text: str) -> None:
    with admin.app.test_request_context():
        assert progress_text(progress, elapsed_ms) == text


def test_without_scripts_the_end_of_the_log_is_in_the_page(
    admin: Console, job_id: int, group_id: int
) -> None:
    lines = "".join(f"line {number} <b>\n" for number in range(1, 301))
    content = {"fromLineNum": 1, "toLineNum": 300, "logContent": lines, "isEnd": False}
    end = {"fromLineNum": 301, "toLineNum": 300, "logContent": "", "isEnd": False}
    with FakeExecutor() as executor:
        executor.respond("log", Answer.json(content=content), Answer.json(content=end))
        log_id = add_run(job_id, group_id, executor_address=executor.address)
        page = admin.get(f"/joblog/{log_id}?plain=1").text
        assert (
            f'<noscript><meta http-equiv="refresh" content="0; url=/xxl-job-admin/joblog/{log_id}?plain=1">'
            in (admin.get(f"/joblog/{log_id}").text)
        )
    assert "line 101 &lt;b&gt;" in page
    assert "line 100 " not in page
    assert "http-equiv" not in page


def test_the_end_of_a_log_needs_one_request(admin: Console, job_id: int, group_id: int) -> None:
    lines = "".join(f"ERROR {number}\n" for number in range(3_000))
    content = {"fromLineNum": 1, "toLineNum": 3_000, "logContent": lines, "isEnd": False}
    end = {"fromLineNum": 3_001, "toLineNum": 3_000, "logContent": "", "isEnd": False}
    with FakeExecutor() as executor:
        executor.respond("log", Answer.json(content=content), Answer.json(content=end))
        log_id = add_run(job_id, group_id, executor_address=executor.address)
        answer = admin.get(f"/joblog/{log_id}/lines?last=1000&from=1").get_json()
    assert (answer["from"], answer["to"], answer["end"], answer["errors"]) == (2_001, 3_000, True, 1)
    assert len(answer["lines"]) == 1_000


def test_the_page_reads_a_bounded_part_of_the_history(admin: Console, job_id: int, group_id: int) -> None:
    def count() -> int:
        with statements() as executed:
            admin.get(f"/joblog/{log_id}")
        return len(executed)

    log_id = add_run(job_id, group_id, handle_code=500, handle_msg="no")
    few = count()
    for number in range(80):
        add_run(job_id, group_id, trigger_time=T0 - number * 1_000 - 1_000, handle_code=500, handle_msg="no")
    assert count() <= few + 1, "reasons of earlier runs, all at once"


def test_the_parameter_is_what_was_sent_with_its_template_beside_it(
    admin: Console, job_id: int, group_id: int
) -> None:
    parent = add_run(job_id, group_id, handle_msg='{"file": "/data/a.csv"}')
    run_id = add_run(
        job_id,
        group_id,
        trigger_type="PARENT",
        source_log_id=parent,
        executor_param="${parent.result.file} ${secret.TOKEN} $${x}",
        filled_param="/data/a.csv ${secret.TOKEN} $${x}",
        param_form=1,
    )
    page = admin.get(f"/joblog/{run_id}")
    assert "/data/a.csv ‹secret TOKEN› ${x}" in text_of(page)
    assert "${parent.result.file} ${secret.TOKEN} $${x}" in text_of(page)
    assert f'/joblog/{parent}">Values of run #{parent}</a>' in page.text


def test_a_parameter_that_was_not_filled_in_leads_to_the_job(
    admin: Console, job_id: int, group_id: int
) -> None:
    reason = "parameter not filled: ${var.X}: variable X does not exist"
    trace = f"Trigger: MANUAL, due 2026-11-20 08:00:00.250 +0800\nResult: not sent, {reason}"
    run = {"trigger_code": 500, "handle_code": 0, "executor_param": "${var.X}", "param_form": 1}
    run_id = add_run(job_id, group_id, trigger_msg=trace, **run)
    page = admin.get(f"/joblog/{run_id}")
    assert reason in text_of(page)
    assert f'href="/xxl-job-admin/jobinfo/{job_id}/edit"' in page.text
    assert 'href="/xxl-job-admin/variables"' in page.text
    submit(admin, "/account/settings", language="zh_CN", time_zone="UTC")
    assert "参数无法填充：${var.X}：变量 X 不存在" in text_of(admin.get(f"/joblog/{run_id}"))
    submit(admin, "/account/settings", language="zh_TW", time_zone="UTC")
    assert "parameter not filled" not in text_of(admin.get(f"/joblog/{run_id}"))
