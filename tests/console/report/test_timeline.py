"""Run timeline of the dashboard, and the strips of the job list."""

import re
from collections.abc import Callable

import pytest
from sqlalchemy import event

from app.clock import MINUTE_MS, SECOND_MS, now_ms
from app.console.ui import filters
from app.db import db, session_scope
from app.models.base import Base
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip
from app.services.report import run_timeline
from tests.console.conftest import Console, add_group, add_job
from tests.console.pages import text_of

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


def mark_of(part: str, log_id: int) -> str:
    """Return the link that is the bar of a run."""
    found = re.search(rf'<a href="/xxl-job-admin/joblog/{log_id}">.*?</a>', part, re.DOTALL)
    assert found is not None
    return found.group()


def percent(mark: str, name: str) -> float:
    found = re.search(rf'{name}="([\d.]+)%"', mark)
    assert found is not None
    return float(found.group(1))


def test_a_waiting_fire_is_a_bar_until_now(admin: Console) -> None:
    job_id = add_job(add_group())
    due_ms = now_ms() - 30 * MINUTE_MS
    for number in range(2):
        save(Fire(job_id=job_id, fire_key=f"t:{number}", due_time=due_ms + number, trigger_type="CRON"))
    part = timeline(admin)
    assert "2 waiting" in part
    mark = re.search(
        rf'<a href="/xxl-job-admin/jobinfo/{job_id}">\s*<title>2 runs waiting to be sent · due .*?</a>',
        part,
        re.DOTALL,
    )
    assert mark is not None, part
    assert 49 < percent(mark.group(), "x") < 51
    assert 49 < percent(mark.group(), "width") < 51


def test_each_result_has_its_look_and_links_to_its_log(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="<i>nightly</i>")
    cases = [
        ("success", "", "Succeeded", {}),
        ("danger", "✗", "Failed", {"handled": 500}),
        ("danger", "✗", "Timed out", {"handled": 502}),
        ("danger", "✗", "Not started", {"sent": 500, "handled": 0}),
        ("warning", "?", "Unresolved", {"sent": 504, "handled": 0}),
        ("info", "▸", "Running", {"handled": 0}),
    ]
    ids = [
        run(group_id, job_id, ago_ms=(50 - 5 * number) * MINUTE_MS, **more)
        for number, (_k, _s, _w, more) in enumerate(cases)
    ]
    part = timeline(admin)
    for log_id, (kind, sign, label, _more) in zip(ids, cases, strict=True):
        mark = mark_of(part, log_id)
        assert f'class="mark {kind}"' in mark
        assert f"<title>Run {log_id} · {label}" in mark
        assert (sign in mark) if sign else ("<text" not in mark)
    assert "&lt;i&gt;nightly&lt;/i&gt;" in part
    assert "<i>nightly" not in part
    assert "6 runs · 3 failed · 1 unresolved · 1 running" in part


def test_a_bar_is_as_long_as_its_run(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    half = run(group_id, job_id, ago_ms=45 * MINUTE_MS, took_ms=30 * MINUTE_MS)
    short = run(group_id, job_id, ago_ms=30 * MINUTE_MS, took_ms=SECOND_MS)
    part = timeline(admin)
    assert percent(mark_of(part, half), " x") == pytest.approx(25, abs=0.5)
    assert percent(mark_of(part, half), "width") == pytest.approx(50, abs=0.5)
    assert percent(mark_of(part, short), "width") >= 0.25
    rows = {re.findall(r' y="(\d+)"', mark_of(part, log_id))[0] for log_id in (half, short)}
    assert len(rows) == 2, "they overlap: each on its own line"
    wider = timeline(admin, "?hours=6")
    assert percent(mark_of(wider, half), "width") == pytest.approx(100 / 12, abs=0.5)


def test_missed_runs_are_shown_and_link_to_the_job(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    miss(job_id)
    part = timeline(admin)
    assert (
        f'<a href="/xxl-job-admin/jobinfo/{job_id}?tab=runs#skips"><title>3 missed runs · missed; the misfire'
        in part
    )
    assert "0 runs · 3 missed" in part
    assert "◇" in part
    assert 'id="skips"' in admin.get(f"/jobinfo/{job_id}?tab=runs").text


def test_the_hours_are_chosen_in_the_url(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    log_id = run(group_id, job_id, ago_ms=5 * HOUR_MS)
    link = f"/joblog/{log_id}"
    assert link not in timeline(admin)
    assert link in timeline(admin, "?hours=6")
    assert link in timeline(admin, "?hours=24")
    for wrong in ("0", "7", "-1", "day", "999999999999"):
        assert link not in timeline(admin, f"?hours={wrong}")
    page = admin.get("/?range=month&hours=6").text
    assert 'href="/xxl-job-admin/?range=month&amp;hours=24#run-timeline"' in page
    assert '<input type="hidden" name="hours" value="6">' in page  # the range of the charts keeps the hours


def test_times_are_in_the_readers_zone(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    run(group_id, add_job(group_id))
    ticks = re.findall(r'<text class="tick"[^>]*>(\d\d:\d\d)<', timeline(admin))
    assert 4 <= len(ticks) <= 6
    assert all(tick.endswith("0") for tick in ticks)
    assert ">Asia/Shanghai<" in timeline(admin)
    monkeypatch.setattr(filters, "get_timezone", lambda: "Asia/Kathmandu")  # 5 h 45 min ahead
    part = timeline(admin, "?hours=6")
    assert ">Asia/Kathmandu<" in part
    ticks = re.findall(r'<text class="tick"[^>]*>(\d\d:\d\d)<', part)
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
    assert f"/joblog/{log_id}" in part
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
    assert "No run in the last 1 hour" in part
    assert "hours=24" in part.split("No run in")[1]
    assert "No run in the last 24 hours" in timeline(admin, "?hours=24")
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
    for codes in ({}, {}, {"handled": 500}, {"handled": 0}):
        run(group_id, job_id, **codes)
    miss(job_id, skipped=7)
    table = timeline(admin).split("<details>")[1]
    assert re.findall(r'class="num">(\d+)<', table) == ["2", "1", "0", "1", "0", "7"]


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
    strips = re.findall(r'<svg class="timeline strip".*?</svg>', page.text, re.DOTALL)
    assert len(strips) == 1
    assert [int(log_id) for log_id in re.findall(r"/joblog/(\d+)", strips[0])] == [*ids[-19:], failed]
    assert 'aria-label="The last 20 runs, oldest first; 19 succeeded"' in strips[0]
    assert strips[0].count('class="bar danger"') == 2  # the bar and the mark below it
    assert "<title>Failed · 1 min 0 s · 20" in strips[0]
    assert "Never ran" in text_of(page)
    assert f"/joblog/{failed}" in normal_user(group_id).get("/jobinfo").text
