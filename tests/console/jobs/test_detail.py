"""Job page: next times with UTC offsets, bars and statistics of runs, skips, versions and change history."""

import re
from collections.abc import Callable
from html import unescape
from zoneinfo import ZoneInfo

import pytest

from app.clock import DAY_MS, now_ms
from app.console.jobs.form.schedule_preview import preview
from app.console.ui.bar_chart import TOP
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule
from app.models.alarm import Alarm
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.log import JobLog
from app.models.skip import Skip
from app.services.report import failing
from tests.console.pages import markup_of, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_executors import registered
from tests.support.statements import statements


def add_runs(group_id: int, job_id: int, *runs: tuple[int, int, int]) -> list[int]:
    """Store runs, oldest first, from (trigger code, handle code, duration in seconds)."""
    begin = now_ms() // 1000 * 1000 - DAY_MS
    ids = []
    with session_scope() as session:
        for number, (sent, handled, seconds) in enumerate(runs):
            at_ms = begin + number * 60_000
            log = JobLog(
                job_group=group_id, job_id=job_id, trigger_time=at_ms, trigger_code=sent, handle_code=handled
            )
            log.trigger_msg, log.handle_msg = "<b>sent</b>", "x" * 1000
            log.handle_time = at_ms + seconds * 1000 if handled else None
            session.add(log)
            session.flush()
            ids.append(log.id)
    return ids


def test_the_last_runs_are_bars_that_link_to_their_logs(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    ids = add_runs(group_id, job_id, (200, 200, 10), (200, 500, 40), (500, 0, 0), (200, 200, 20))
    page = admin.get(f"/jobinfo/{job_id}")
    assert page.text.count('<rect class="bar ') == 4
    assert [int(log_id) for log_id in re.findall(r'/joblog/(\d+)"><title>', markup_of(page))] == ids
    assert re.search(rf'class="bar danger failed" [^>]*y="{TOP}.0"', page.text), "the longest is the highest"
    assert f"<title>Run {ids[1]} · Failed · 40 s · 20" in page.text
    shown = text_of(page)
    for figure in (
        "Runs counted 4",
        "Success rate 50.0%",
        "Failures 2",
        "Median duration 20 s",
        "95th percentile 40 s",
    ):
        assert figure in shown, figure
    assert "style=" not in page.text


@pytest.mark.parametrize(
    ("handlers", "hint"),
    [
        (["closeOrders,report"], "announces the JobHandler close_order. Did you mean closeOrders?"),
        (["report"], "announces the JobHandler close_order. Edit"),
        (["report", "close_order"], None),
        (["report", None], None),
        ([], None),
        (["r" * 3_500], None),
    ],
)
def test_a_handler_that_no_executor_announces_is_shown_with_the_one_that_is_meant(
    admin: Console, handlers: list[str | None], hint: str | None
) -> None:
    job_id = add_job(add_group("my-app"), executor_handler="close_order")
    for number, text in enumerate(handlers):
        registered("my-app", f"http://10.0.0.{number}:9999/", handlers=text)
    page = text_of(admin.get(f"/jobinfo/{job_id}"))
    assert hint is None or hint in page
    assert ("announces the JobHandler" in page) is (hint is not None)


@pytest.mark.parametrize(
    ("language", "kind", "conf", "shown"),
    [
        ("en", "FIX_RATE", "30", "Every 30 seconds Fixed rate 30"),
        ("en", "NONE", "", "This job has no schedule"),
        ("zh-CN", "FIX_RATE", "30", "固定速度 30"),
    ],
)
def test_a_schedule_type_is_shown_as_the_form_names_it(
    admin: Console, language: str, kind: str, conf: str, shown: str
) -> None:
    job_id = add_job(add_group(), schedule_type=kind, schedule_conf=conf)
    page = admin.get(f"/jobinfo/{job_id}", headers={"Accept-Language": language})
    assert shown in text_of(page)


def test_statistics_cover_the_last_hundred_runs(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_runs(group_id, job_id, *[(200, 500, 1)] * 30, *[(200, 200, 1)] * 100)
    page = admin.get(f"/jobinfo/{job_id}")
    assert "Runs counted 100 Success rate 100.0%" in text_of(page)
    assert page.text.count('<rect class="bar ') == 60


def test_runs_that_never_started_have_no_scale(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_runs(group_id, job_id, (500, 0, 0), (500, 0, 0))
    page = admin.get(f"/jobinfo/{job_id}").text
    assert 'class="at"' not in page
    assert page.count('<rect class="bar danger refused"') == 2
    assert re.search(r'value="refused">.*?Not started <span class="sign">–</span> <b>2</b>', page, re.DOTALL)
    add_runs(group_id, job_id, (200, 200, 40))
    assert re.findall(r'class="at"[^>]*>([^<]+)<', admin.get(f"/jobinfo/{job_id}").text) == [
        "10 s",
        "20 s",
        "30 s",
        "40 s",
    ]


def test_a_job_whose_group_was_deleted_has_its_id(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    with session_scope() as session:
        session.query(Group).filter_by(id=group_id).delete()
    assert f"Executor {group_id} · 0 online" in text_of(admin.get(f"/jobinfo/{job_id}"))
    instances = text_of(admin.get(f"/jobinfo/{job_id}/nodes"))
    assert f"Registered instances {group_id} The executor group of this job no longer exists." in instances


def test_a_job_that_never_ran_has_no_statistics(admin: Console) -> None:
    assert "This job never ran." in text_of(admin.get(f"/jobinfo/{add_job(add_group())}"))


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("misfire", "left out by the misfire strategy"),
        ("stopped", "the schedule was switched off"),
        ("edited", "the schedule was changed"),
        ("invalid", "the schedule is invalid"),
        ("restored", "the database was restored"),
    ],
)
def test_skips_show_their_number_period_and_reason(admin: Console, reason: str, text: str) -> None:
    job_id = add_job(add_group())
    page = f"/jobinfo/{job_id}?tab=runs"
    assert "No run of the schedule was skipped." in text_of(admin.get(page))
    with session_scope() as session:
        session.add(
            Skip(job_id=job_id, from_ms=1, to_ms=900_000, skipped=3, reason=reason, recorded_ms=now_ms())
        )
    assert text in text_of(admin.get(page))


def test_the_change_history_of_a_job_is_on_its_page(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id, other_id = add_job(group_id), add_job(group_id)
    submit(admin, f"/jobinfo/{job_id}/start")
    assert "switched on" in text_of(normal_user(group_id).get(f"/jobinfo/{job_id}?tab=history"))
    assert "switched on" not in text_of(admin.get(f"/jobinfo/{other_id}?tab=history"))


def test_code_versions_are_linked_only_for_users_who_may_read_code(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    with session_scope() as session:
        version = GlueVersion(
            job_id=job_id,
            glue_type="GLUE_SHELL",
            glue_source="echo",
            glue_remark="first <one>",
            update_time=now_ms(),
        )
        session.add(version)
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    address = f"/jobinfo/{job_id}?tab=versions"
    assert f"jobId={job_id}&amp;version=" in admin.get(address).text
    page = reader.get(address).text
    assert "first &lt;one&gt;" in page
    assert "version=" not in page


def test_a_time_after_a_clock_change_is_marked(admin: Console) -> None:
    march = 1_743_120_000_000  # 2025-03-28T00:00:00Z; Paris changes on the 30th
    schedule = Schedule(type=ScheduleType.CRON, conf="0 0 12 * * ?", time_zone=str(ZoneInfo("Europe/Paris")))
    with admin.app.test_request_context():
        times = preview(schedule, "en", now_ms=march).times
    assert [time.offset for time in times] == ["+01:00", "+01:00", "+02:00", "+02:00", "+02:00"]
    assert [time.is_shifted for time in times] == [False, False, True, False, False]


def test_a_pause_when_clocks_go_back_is_named(admin: Console) -> None:
    pausing, steady = (
        {"cron": cron, "time_zone": "America/New_York"} for cron in ("0 0/5 * * * ?", "*/5 * * * *")
    )
    for form, is_named in ((pausing, True), (steady, False)):
        page = admin.get("/jobinfo/preview", query_string={"schedule_type": "CRON", **form}).text
        assert ("pauses for an hour" in page) is is_named, form


def test_the_days_on_which_a_time_does_not_exist_are_named(admin: Console) -> None:
    march = 1_806_105_600_000  # 2027-03-26T12:00:00Z; Berlin changes on the 28th
    daily, never = (
        Schedule(type=ScheduleType.CRON, conf=conf, time_zone="Europe/Berlin")
        for conf in ("0 30 2 * * ?", "0 30 2 ? 3 1L")
    )
    with admin.app.test_request_context():
        shown, ended = (preview(schedule, "en", now_ms=march) for schedule in (daily, never))
    assert [len(time.notes) for time in shown.times] == [0, 1, 0, 0, 0]
    gap = shown.times[1].notes[0]
    assert gap.text == "March 28, 2027: 02:30 does not exist in Europe/Berlin, no run"
    assert gap.is_lost
    assert gap.hint == "03:30 exists on every day."
    assert shown.notes[0].text == "October 31, 2027: 02:30 occurs twice in Europe/Berlin, runs once"
    assert "does not exist in Europe/Berlin" in ended.empty
    form = {"schedule_type": "CRON", "cron": "0 30 2 * * ?", "time_zone": "Europe/Berlin"}
    assert "does not exist in Europe/Berlin, no run" in admin.get("/jobinfo/preview", query_string=form).text


def test_the_alarms_of_a_job_and_their_delivery_are_shown(admin: Console) -> None:
    group_id = add_group()
    job_id, other = add_job(group_id), add_job(group_id)
    address = f"/jobinfo/{job_id}?tab=alarms"
    assert "No alarm yet" in text_of(admin.get(address))
    with session_scope() as session:
        rows = (
            (1, job_id, "failed", "CLOSED"),
            (2, job_id, "unresolved", "FAILED"),
            (3, other, "failed", "SENT"),
        )
        for log_id, of_job, reason, state in rows:
            outcome = '{"mail ops@example.com": "refused <b>"}' if state == "FAILED" else None
            session.add(
                Alarm(
                    log_id=log_id,
                    job_id=of_job,
                    reason=reason,
                    state=state,
                    created_ms=now_ms(),
                    outcome=outcome,
                )
            )
    page = admin.get(address).text
    shown = text_of_section(page)
    assert "Reason Run ID Time State" in shown
    assert "sent, recovered since" in shown
    assert "Unresolved 2 just now could not be delivered 1 target mail ops@example.com: refused <b>" in shown
    assert "<b>" not in page.split('id="alarms"')[1].split("</section>")[0]
    assert "/joblog/3" not in page


def test_alarms_of_one_kind_are_a_row(admin: Console) -> None:
    job_id = add_job(add_group())
    with session_scope() as session:
        for log_id in range(1, 62):
            session.add(
                Alarm(
                    log_id=log_id, job_id=job_id, reason="failed", state="SENT", created_ms=1_700_000_000_000
                )
            )
    page = admin.get(f"/jobinfo/{job_id}?tab=alarms").text
    assert "Failed: 61 since 2023-11-1" in text_of_section(page)
    assert page.count("/joblog/") == 2, "the first and the last run"


def test_each_tab_is_a_link_and_reads_only_what_it_shows(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_runs(group_id, job_id, *[(200, 500, 1)] * 30)
    page = f"/jobinfo/{job_id}"
    needed = {}
    for tab in ("", "?tab=runs", "?tab=alarms", "?tab=versions", "?tab=history", "?tab=nothing"):
        with statements() as sent:
            shown = admin.get(page + tab).text
        needed[tab] = len(sent)
        current = "" if tab == "?tab=nothing" else tab
        assert f'href="/xxl-job-admin{page}{current}" aria-current="page"' in shown
    assert shown.count('<rect class="bar ') == 30
    assert admin.get(page + "?tab=runs").text.count('class="run-cell"') == 25
    assert max(needed[tab] for tab in ("?tab=alarms", "?tab=versions", "?tab=history")) <= needed[""]


def text_of_section(page: str) -> str:
    return " ".join(
        unescape(re.sub(r"<[^>]+>", " ", page.split('id="alarms"')[1].split("</section>")[0])).split()
    )


OK, FAILED, RUNNING, UNRESOLVED = (200, 200, 1), (200, 500, 1), (200, 0, 0), (504, 0, 0)


@pytest.mark.parametrize(
    ("codes", "sentences"),
    [
        ((OK, FAILED, FAILED, RUNNING), ("Failing for 24 hours.", "2 failures in a row. Last success: #1 ,")),
        ((FAILED,), ("Failing for 1 day.", "1 failure. It has never succeeded.")),
        ((OK, UNRESOLVED), ("Unresolved: it is unknown whether the last run ran.", "Last success: #1 ,")),
    ],
)
@pytest.mark.parametrize("tab", ["overview", "runs"])
def test_a_failing_job_says_so_above_its_tabs(
    admin: Console, tab: str, codes: tuple[tuple[int, int, int], ...], sentences: tuple[str, ...]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    ids = add_runs(group_id, job_id, *codes)
    page = admin.get(f"/jobinfo/{job_id}?tab={tab}")
    for sentence in sentences:
        assert sentence.replace("#1", f"#{ids[0]}") in text_of(page)
    last = [log_id for log_id, code in zip(ids, codes, strict=True) if code != RUNNING][-1]
    assert (f'/joblog/{last}/compare?old={ids[0]}"' in markup_of(page)) == (codes[0] == OK)


@pytest.mark.parametrize("codes", [(), (FAILED, OK), (FAILED, OK, RUNNING), (RUNNING,)])
def test_a_job_that_is_not_failing_has_no_banner(
    admin: Console, codes: tuple[tuple[int, int, int], ...]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_runs(group_id, job_id, *codes)
    assert "notice failing" not in admin.get(f"/jobinfo/{job_id}").text


def test_failures_without_a_success_among_the_last_runs_are_a_lower_bound(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing, "LOOKED_AT_OF_ONE", (2, 3))
    group_id = add_group()
    job_id = add_job(group_id)
    add_runs(group_id, job_id, OK, *[FAILED] * 4)
    shown = text_of(admin.get(f"/jobinfo/{job_id}"))
    assert "Failing for more than 24 hours." in shown
    assert "More than 2 failures in a row. None of the last" in shown
