"""Week of a job: the drawing on its page, and jobs that start together with it, there and in the form."""

import re
from collections.abc import Callable

from app.clock import DAY_MS, MINUTE_MS, now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.schedules.planned_starts import next_days
from app.models.job import Job
from app.services.report.group_week import group_week
from tests.console.pages import text_of
from tests.support.console import Console, add_group, add_job
from tests.support.statements import statements

DAILY = "0 30 2 * * ?"
TOGETHER = "of this executor starts in the same minute"


def test_the_week_has_a_dot_for_each_start_and_shades_of_the_other_jobs(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, schedule_conf=DAILY, start=True)
    for _number in range(3):
        add_job(group_id, schedule_conf="0 0 5 * * ?", start=True)
    page = admin.get(f"/jobinfo/{job_id}").text
    assert len(re.findall(r'<circle cx="81" cy="\d+" r="3.5"/>', page)) in (6, 7), "02:30 of each day"
    assert len(re.findall(r'<rect class="level-3" x="112"', page)) in (6, 7), "05:00 of each day"
    assert "style=" not in page


def test_hours_that_hardly_differ_have_one_middle_shade(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, schedule_conf=DAILY, start=True)
    add_job(group_id, schedule_conf="0 * * * * ?", start=True)
    strip = admin.get(f"/jobinfo/{job_id}").text.partition("week-strip")[2].partition("</svg>")[0]
    assert set(re.findall(r"level-\d", strip)) <= {"level-0", "level-2"}


def test_a_job_that_is_off_has_hollow_dots_and_one_without_a_schedule_no_week(admin: Console) -> None:
    group_id = add_group()
    off = add_job(group_id, schedule_conf=DAILY)
    assert '<circle class="off"' in admin.get(f"/jobinfo/{off}").text
    none = add_job(group_id, schedule_type="NONE", schedule_conf="")
    assert "week-strip" not in admin.get(f"/jobinfo/{none}").text


def test_the_next_run_is_named_once(admin: Console) -> None:
    job_id = add_job(add_group(), schedule_conf="0 30 2 1 1 ? 2099", start=True)
    page = text_of(admin.get(f"/jobinfo/{job_id}"))
    assert page.count("2099-01-01 02:30:00") == 1


def test_jobs_that_start_in_the_same_minute_are_counted(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, schedule_conf=DAILY, start=True)
    assert TOGETHER not in text_of(admin.get(f"/jobinfo/{job_id}")), "the job itself is none"
    add_job(group_id, schedule_conf="20 30 2 * * ?", start=True)
    add_job(group_id, schedule_conf="0 31 2 * * ?", start=True)
    add_job(group_id, schedule_conf=DAILY)
    add_job(group_id, schedule_conf="0 * * * * ?", start=True)
    add_job(add_group("other-app"), schedule_conf=DAILY, start=True)
    page = admin.get(f"/jobinfo/{job_id}")
    assert f"1 other job {TOGETHER}" in text_of(page)
    assert re.search(r'/load\?hour=\d+#starters">', page.text)


def test_the_form_names_them_beside_the_times(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id, schedule_conf=DAILY, start=True)
    path = f"/jobinfo/preview?job_group={group_id}&schedule_type=CRON&cron=0+30+2+*+*+?"
    beside = "1 other job"
    assert text_of(admin.get(path)).count(beside) == 5
    assert "Other jobs: those of this executor" in text_of(admin.get(path))
    assert beside not in text_of(admin.get(f"{path}&jobId={job_id}")), "the job that is edited"
    assert beside in text_of(admin.get(f"{path}&jobId={job_id}&copy=1"))
    assert beside in text_of(admin.get(f"/jobinfo/{job_id}/copy"))
    assert beside not in text_of(admin.get(f"/jobinfo/{job_id}/edit"))
    other = add_group("other-app")
    stranger = normal_user(other, rights={other: frozenset({Right.VIEW, Right.EDIT})})
    answer = text_of(stranger.get(path))
    assert "Next run times" in answer
    assert beside not in answer


def test_one_query_reads_a_bounded_number_of_schedules(admin: Console) -> None:
    group_id, at_ms = add_group(), now_ms()
    job_id = add_job(group_id, schedule_conf=DAILY, start=True)
    for minute in range(5):
        add_job(group_id, schedule_conf=f"0 {minute} 4 * * ?", start=True)
    window = next_days(at_ms, "UTC", days=7)
    together_ms = (at_ms // DAY_MS + 1) * DAY_MS + 243 * MINUTE_MS
    with read_scope() as session, statements() as executed:
        job = session.get_one(Job, job_id)
        week = group_week(session, group_id, job, [together_ms], window, now_ms=at_ms, budget_ms=1_000)
    assert len(executed) == 3, "the job, the schedules, and whether calendars have changed"
    assert sum(week.starts) >= 5 * 6
    assert week.clashes in ({}, {together_ms: 1}), "by the zone of the test"
