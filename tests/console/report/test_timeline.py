"""Run timeline of the dashboard, and the strips of the job list."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
from sqlalchemy import event

from app.clock import MINUTE_MS, SECOND_MS, now_ms
from app.console.ui import filters
from app.database.engine import session_scope
from app.database.flask_db import db
from app.models.base import Base
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip
from app.services.report import run_timeline
from tests.console.pages import text_of
from tests.support.console import Console, add_group, add_job

HOUR_MS = 60 * MINUTE_MS


def save(row: Base) -> None:
    with session_scope() as session:
        session.add(row)


def run(
    group_id: int,
    job_id: int,
    *,
    sent: int = 200,
    handled: int = 200,
    ago_ms: int = 5 * MINUTE_MS,
    took_ms: int = MINUTE_MS,
) -> int:
    """Store a run; return its id."""
    at_ms = now_ms() // 1000 * 1000 - ago_ms
    log = JobLog(
        job_group=group_id, job_id=job_id, trigger_time=at_ms, trigger_code=sent, handle_code=handled
    )
    log.handle_time = at_ms + took_ms if handled else None
    save(log)
    return log.id


def miss(job_id: int, skipped: int = 3, reason: str = "misfire") -> None:
    at_ms = now_ms() - 20 * MINUTE_MS
    save(
        Skip(
            job_id=job_id,
            from_ms=at_ms,
            to_ms=at_ms + MINUTE_MS,
            skipped=skipped,
            reason=reason,
            recorded_ms=at_ms,
        )
    )


def timeline(console: Console, query: str = "") -> str:
    return console.get(f"/{query}").text.split('id="run-timeline"')[1].split("</section>")[0]


@dataclass
class Shown:
    """A run as js/timeline.js reads it."""

    outcome: str
    at_ms: int
    took_ms: int | None


def runs_of(part: str) -> dict[int, Shown]:
    """Return the runs of all lanes by their ids."""
    settings = json.loads(unescape(re.findall(r'data-timeline="([^"]*)"', part)[0]))
    runs = {}
    for marks, number in re.findall(r'data-marks="([^"]*)" data-part="s\d+-(\d+)"', part):
        log_id = 0
        for text in marks.split():
            outcome, offset, took, more = text.split(".")
            log_id += int(more, 16)
            at_ms = (int(number) * settings["seconds"] + int(offset, 16)) * SECOND_MS
            runs[log_id] = Shown(settings["looks"][int(outcome)][1], at_ms, int(took, 16) if took else None)
    return runs


def others_of(part: str) -> list[list[Any]]:
    """Return missed and waiting fires: kind, start, end, label, address."""
    return [
        mark for text in re.findall(r'data-others="([^"]*)"', part) for mark in json.loads(unescape(text))
    ]


def test_a_waiting_fire_is_a_mark_until_now(admin: Console) -> None:
    job_id = add_job(add_group())
    due_ms = now_ms() - 30 * MINUTE_MS
    for number in range(2):
        save(Fire(job_id=job_id, fire_key=f"t:{number}", due_time=due_ms + number, trigger_type="CRON"))
    part = timeline(admin)
    assert "2 waiting" in part
    ((kind, start, end, label, href),) = others_of(part)
    assert (kind, start, end) == ("wait", due_ms // SECOND_MS, None)
    assert label.startswith("2 runs waiting to be sent · due ")
    assert href == f"/xxl-job-admin/jobinfo/{job_id}?tab=runs"


def test_each_run_has_its_result_and_duration(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="<i>nightly</i>")
    cases: list[tuple[str, int | None, dict[str, Any]]] = [
        ("Succeeded", 30 * MINUTE_MS, {"took_ms": 30 * MINUTE_MS}),
        ("Failed", MINUTE_MS, {"handled": 500}),
        ("Timed out", MINUTE_MS, {"handled": 502}),
        ("Not started", None, {"sent": 500, "handled": 0}),
        ("Unresolved", None, {"sent": 504, "handled": 0}),
        ("Running", None, {"handled": 0}),
        ("Waiting", None, {"sent": 0, "handled": 0}),
    ]
    ids = [
        run(group_id, job_id, ago_ms=(50 - 5 * number) * MINUTE_MS, **more)
        for number, (_label, _took_ms, more) in enumerate(cases)
    ]
    part = timeline(admin)
    shown = runs_of(part)
    assert list(shown) == ids
    for log_id, (label, took_ms, _more) in zip(ids, cases, strict=True):
        assert (shown[log_id].outcome, shown[log_id].took_ms) == (label, took_ms)
        with session_scope() as session:
            assert shown[log_id].at_ms == session.get_one(JobLog, log_id).trigger_time
    assert "&lt;i&gt;nightly&lt;/i&gt;" in part
    assert "<i>nightly" not in part
    assert "7 runs · 3 failed · 1 unresolved · 1 running · 1 waiting" in part


def test_missed_runs_are_shown_and_link_to_the_job(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    miss(job_id)
    part = timeline(admin)
    ((kind, start, end, label, href),) = others_of(part)
    assert (kind, end - start) == ("skip", MINUTE_MS // SECOND_MS)
    assert label.startswith("3 skipped runs · missed, and left out by the misfire strategy")
    assert href == f"/xxl-job-admin/jobinfo/{job_id}?tab=runs#skips"
    assert "0 runs · 3 skipped" in part
    assert 'id="skips"' in admin.get(f"/jobinfo/{job_id}?tab=runs").text


def test_a_refresh_has_the_segment_of_a_new_run_only(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    for ago in (4, 20, 40):
        run(group_id, job_id, ago_ms=ago * MINUTE_MS)
    page = admin.get("/").text
    held = "".join(re.findall(r'data-hash="([\w-]+)"', page))
    new = run(group_id, job_id, ago_ms=0)
    parts = admin.get("/", headers={"X-Parts": held}).get_json()["parts"]
    segments = "".join(text for part_id, text in parts.items() if re.fullmatch(rf"s{job_id}-\d+", part_id))
    settings = re.findall(r'data-timeline="[^"]*"', page)[0]
    assert new in runs_of(settings + segments)
    assert len(runs_of(settings + segments)) <= 2
    assert "4 runs" in parts[f"n{job_id}"]


def test_the_hours_are_chosen_in_the_url(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    log_id = run(group_id, job_id, ago_ms=5 * HOUR_MS)
    assert log_id not in runs_of(timeline(admin))
    assert log_id in runs_of(timeline(admin, "?hours=6"))
    assert log_id in runs_of(timeline(admin, "?hours=24"))
    for wrong in ("0", "7", "-1", "day", "999999999999"):
        assert log_id not in runs_of(timeline(admin, f"?hours={wrong}"))
    page = admin.get("/?range=month&hours=6").text
    assert 'href="/xxl-job-admin/?range=month&amp;hours=24#run-timeline"' in page
    assert '<input type="hidden" name="hours" value="6">' in page  # the range of the charts keeps the hours


def ticks_of(part: str) -> list[str]:
    return [label for _at, label in json.loads(unescape(re.findall(r'data-ticks="([^"]*)"', part)[0]))]


def test_times_are_in_the_readers_zone(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    run(group_id, add_job(group_id))
    ticks = ticks_of(timeline(admin))
    assert 5 <= len(ticks) <= 6
    assert all(tick.endswith("0") for tick in ticks)
    assert ">Asia/Shanghai<" in timeline(admin)
    monkeypatch.setattr(filters, "get_timezone", lambda: "Asia/Kathmandu")  # 5 h 45 min ahead
    part = timeline(admin, "?hours=6")
    assert ">Asia/Kathmandu<" in part
    ticks = ticks_of(part)
    assert len(ticks) >= 5
    assert all(tick.endswith(":00") for tick in ticks)


def test_a_normal_user_sees_the_runs_of_visible_groups(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, foreign = add_group(), add_group("other-app", "Other")
    own_job, foreign_job = add_job(own_group, job_desc="my job"), add_job(foreign, job_desc="secret job")
    log_id = run(own_group, own_job)
    run(foreign, foreign_job, handled=500)
    miss(foreign_job)
    part = timeline(normal_user(own_group))
    assert list(runs_of(part)) == [log_id]
    assert "my job" in part
    assert "secret job" not in part
    assert part.count("data-bars") == 1
    assert timeline(admin).count("data-bars") == 2


def test_without_runs_the_timeline_says_what_to_do(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    assert "Add a job and run it once." in timeline(admin)
    group_id = add_group()
    add_job(group_id)
    part = timeline(admin)
    assert "No runs in the last hour" in part
    assert "hours=24" in part.split("No runs in")[1]
    assert "No runs in the last 24 hours" in timeline(admin, "?hours=24")
    # a user without a group should request one
    assert 'id="run-timeline"' not in normal_user().get("/").text


def test_a_truncated_timeline_says_so(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    job_ids = [add_job(group_id) for _number in range(3)]
    for job_id in job_ids * 3:
        run(group_id, job_id)
    complete = timeline(admin)
    assert "Based on" not in complete
    assert "Showing " not in complete
    for name, most in (("JOBS_MAX", 2), ("RUNS_MAX", 4), ("LOOKED_AT", 6)):
        monkeypatch.setattr(run_timeline, name, most)
    part = timeline(admin)
    assert "Showing 2 jobs, those with the most problems first" in part
    assert "Showing the newest 2 runs of each job." in part
    assert "2 of 3 runs" in part
    assert "Based on the newest" in part


def test_a_timeline_of_many_jobs_needs_a_fixed_number_of_statements(admin: Console) -> None:
    group_id = add_group()
    run(group_id, add_job(group_id))
    counted: list[int] = []

    def count(*_arguments: object) -> None:
        counted.append(1)

    with admin.app.app_context():
        engine = db.engine
    admin.get("/")
    event.listen(engine, "before_cursor_execute", count)
    admin.get("/")
    count_for_one = len(counted)
    for _number in range(9):
        run(group_id, add_job(group_id))
    counted.clear()
    admin.get("/")
    event.remove(engine, "before_cursor_execute", count)
    assert len(counted) == count_for_one


def test_the_same_counts_are_in_a_table(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    for codes in ({}, {}, {"handled": 500}, {"handled": 0}, {"sent": 0, "handled": 0}):
        run(group_id, job_id, **codes)
    save(Fire(job_id=job_id, fire_key="t:0", due_time=now_ms() - 30 * MINUTE_MS, trigger_type="CRON"))
    miss(job_id, skipped=7)
    table = timeline(admin).split("<noscript>")[1]
    assert re.findall(r'class="num">(\d+)<', table) == ["2", "1", "1", "2", "7"]


def test_the_job_list_shows_the_last_runs_as_a_strip(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id, _never = add_job(group_id), add_job(group_id)
    ids = [
        run(group_id, job_id, ago_ms=(40 - number) * MINUTE_MS, took_ms=number * SECOND_MS)
        for number in range(33)
    ]
    failed = run(group_id, job_id, handled=500, ago_ms=MINUTE_MS)
    page = admin.get("/jobinfo")
    strips = re.findall(r'<svg class="chart strip".*?</svg>', page.text, re.DOTALL)
    assert len(strips) == 1
    assert [int(log_id) for log_id in re.findall(r"/joblog/(\d+)", strips[0])] == [*ids[-19:], failed]
    assert 'aria-label="The last 20 runs, oldest first; 19 succeeded"' in strips[0]
    assert strips[0].count('class="bar danger"') == 2  # the bar and the mark below it
    assert "<title>Failed · 1 min 0 s · 20" in strips[0]
    assert "Never ran" in text_of(page)
    assert f"/joblog/{failed}" in normal_user(group_id).get("/jobinfo").text
