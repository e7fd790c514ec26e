"""Dashboard: current problems, and counts of the runs of a user's groups."""

import json
import re
from collections.abc import Callable

import pytest

from app.clock import DAY_MS, MINUTE_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.enums import NodeKind
from app.models.alarm import Alarm
from app.models.base import Base, local_datetime
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import CodeObject
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.node import Node
from app.models.report import DayReport
from app.services.alarms.deliveries import LEASE_MS
from app.services.alarms.targets import destinations_of
from app.services.report.reporting import Reporter, midnight_ms
from app.settings.config import Config
from app.store.runs import day_counts, reporting
from app.store.runs.reporting import Counts
from tests.console.pages import text_of
from tests.support.console import Console, add_group, add_job
from tests.support.statements import statements

ONLINE = "http://127.0.0.1:9999"


def save(*rows: Base) -> None:
    with session_scope() as session:
        session.add_all(rows)


def run(
    group_id: int, job_id: int, *, sent: int = 200, handled: int = 200, ago_ms: int = MINUTE_MS
) -> JobLog:
    at_ms = now_ms() // 1000 * 1000 - ago_ms
    return JobLog(
        job_group=group_id,
        job_id=job_id,
        trigger_time=at_ms,
        trigger_code=sent,
        handle_code=handled,
        handle_time=at_ms,
    )


def node(name: str, kind: NodeKind, ago_ms: int) -> Node:
    at_ms = now_ms() - ago_ms
    scanned_ms = at_ms if kind == NodeKind.WORKERS else 0
    return Node(
        name=name,
        kind=kind.value,
        started_ms=at_ms,
        heartbeat_ms=at_ms,
        scanned_ms=scanned_ms,
        version="0.1.0",
    )


def test_without_problems_one_line_says_so(admin: Console) -> None:
    save(node("one", NodeKind.WORKERS, 0))
    job_id = add_job(group_id := add_group(addresses=ONLINE))
    save(run(group_id, job_id))
    assert "All is well." in text_of(admin.get("/"))


@pytest.mark.parametrize("is_on", [False, True])
def test_an_executor_that_never_registered_is_missing_once_a_schedule_is_on(
    admin: Console, is_on: bool
) -> None:
    add_job(add_group(), start=is_on)
    page = text_of(admin.get("/"))
    assert ("No executor is online" in page) is ("No instance is online" in page) is is_on


def test_failing_jobs_are_those_whose_last_run_failed(admin: Console) -> None:
    group_id = add_group(addresses=ONLINE)
    failing, mended = add_job(group_id, job_desc="bad job"), add_job(group_id, job_desc="mended job")
    last = run(group_id, failing, handled=500, ago_ms=5_000)
    last.handle_msg = """Traceback (most recent call last):
  File "a.py", line 7, in run
ValueError: order 7 is no amount"""
    save(run(group_id, failing, handled=500, ago_ms=4 * DAY_MS), last)
    save(run(group_id, mended, handled=500, ago_ms=9_000), run(group_id, mended, ago_ms=5_000))
    page = admin.get("/")
    assert "1 of 2 jobs is failing" in text_of(page)
    assert 'href="/xxl-job-admin/jobinfo?last=failing">1 of 2 jobs' in page.text
    (row,) = rows_of(page.text)
    for expected in ("bad job", "ValueError: order 7 is no amount", ">2×<", ">4 days<"):
        assert expected in row, expected
    assert "All is well." not in page.text


def test_more_failing_jobs_than_there_is_room_for_are_counted_and_linked(admin: Console) -> None:
    """Also those that failed long ago: the list once ended after eight without a word."""
    group_id = add_group(addresses=ONLINE)
    jobs = [add_job(group_id, job_desc=f"job number {number}") for number in range(11)]
    save(*(run(group_id, job_id, handled=500, ago_ms=(1 + age) * DAY_MS) for age, job_id in enumerate(jobs)))
    page = admin.get("/").text
    assert "11 of 11 jobs are failing" in page
    assert re.findall(r"title=\"job number (\d+)\"", "".join(rows_of(page))) == [
        str(each) for each in range(8)
    ]
    assert '<a href="/xxl-job-admin/jobinfo?last=failing">Show all 11 failing jobs</a>' in page


def test_other_rows_that_are_left_out_are_counted_too(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    groups = [add_group(f"app-{number}", f"Executor {number}") for number in range(6)]
    for group_id in groups:
        add_job(group_id, start=True)
    job_id = add_job(group_id := add_group(addresses=ONLINE))
    save(*(run(group_id, job_id, sent=504, handled=0, ago_ms=ago * MINUTE_MS) for ago in range(2, 9)))
    save(run(group_id, job_id))
    for console, link in ((admin, '<a href="/xxl-job-admin/jobgroup">'), (normal_user(*groups), "<span>")):
        page = console.get("/").text
        foot = page.split('class="box-foot"')[1].split("</section>")[0]
        assert f"{link}6 executors are offline<" in foot or "No executor is online" in foot
        assert len([row for row in rows_of(page) if "No instance is online" in row]) == 4
    assert ">7 runs are unresolved</a>" in admin.get("/").text.split('class="box-foot"')[1]


def test_muted_jobs_are_folded_and_make_room_for_others(admin: Console) -> None:
    group_id = add_group(addresses=ONLINE)
    muted, loud = add_job(group_id, job_desc="quiet one"), add_job(group_id, job_desc="loud one")
    save(run(group_id, muted, handled=500), run(group_id, loud, handled=500, ago_ms=DAY_MS))
    save(
        Mute(
            job_id=muted, since_ms=now_ms(), until_ms=now_ms() + DAY_MS, username="lina", reason="being moved"
        )
    )
    page = admin.get("/").text
    (row,) = rows_of(page)
    assert "loud one" in row
    folded = page.split('class="mutes"')[1].split("</details>")[0]
    assert "1 failing job is muted" in folded
    assert "quiet one" in folded
    assert "being moved" in folded
    assert "2 of 2 jobs are failing" in page


def test_a_broken_channel_is_shown_to_those_whose_jobs_it_serves(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    job_id = add_job(group_id := add_group(addresses=ONLINE))
    save(
        channel := AlarmChannel(
            name="Broken pager", kind="webhook", settings='{"url": "http://127.0.0.1:1/x"}', for_all=0
        )
    )
    save(ChannelScope(channel_id=channel.id, group_id=group_id))
    (name,) = destinations_of(channel)
    for minutes in (5, 20):
        save(log := run(group_id, job_id))
        at_ms = now_ms() - minutes * MINUTE_MS
        outcome = json.dumps({name: "the webhook answered with the status 500"})
        values = {"job_id": job_id, "log_id": log.id, "reason": "failed", "state": "FAILED"}
        save(Alarm(**values, created_ms=at_ms, lease_until=at_ms + LEASE_MS, outcome=outcome))
    for console in (admin, normal_user(group_id)):
        page = text_of(console.get("/"))
        assert "1 alarm channel is broken" in page
        assert "the webhook answered with the status 500, 2 messages lost" in page
    assert "Webhook 返回状态 500" in text_of(admin.get("/", headers={"Accept-Language": "zh-CN"}))
    assert "Broken pager" not in text_of(
        normal_user(add_group("other-app", "Other"), username="stan").get("/")
    )


def test_failures_of_the_day_stand_beside_no_claim_that_all_is_well(admin: Console) -> None:
    save(node("one", NodeKind.WORKERS, 0))
    group_id = add_group(addresses=ONLINE)
    job_id = add_job(group_id)
    save(run(group_id, job_id, handled=500, ago_ms=9_000), run(group_id, job_id, ago_ms=5_000))
    page = text_of(admin.get("/"))
    assert "No job is failing now." in page
    assert "All is well." not in page


def rows_of(page: str) -> list[str]:
    """Return the rows that need attention."""
    rows = page.split('data-part="attention-rows"')[1].split("</tbody>")[0]
    return re.findall(r"<tr .*?</tr>", rows, re.DOTALL)


def test_the_figures_are_of_a_week_and_compared_with_the_one_before(admin: Console, settings: Config) -> None:
    job_id = add_job(group_id := add_group(addresses=ONLINE))
    save(run(group_id, job_id, ago_ms=0))
    today = midnight_ms(now_ms(), settings.time_zone)
    for back in range(1, 14):
        day_ms = midnight_ms(now_ms(), settings.time_zone, back)
        save(DayReport(trigger_day=day_ms, suc_count=90, fail_count=10 if back < 7 else 0))
    save(DayReport(trigger_day=today, suc_count=0, fail_count=0))
    figures = text_of(admin.get("/")).partition("Runs, 7 days")[2].partition("Needs attention")[0]
    assert " 600 " in figures
    assert "Success rate, 7 days −10.0 points 90 %" in figures
    assert "Failing jobs 60 failures in 7 days 0 of 1" in figures
    assert "Instances online 1 in 1 executor" in figures


def test_on_the_first_day_the_figures_are_of_today(admin: Console, settings: Config) -> None:
    add_job(add_group())
    assert "Runs, 7 days 0" in text_of(admin.get("/"))
    today = midnight_ms(now_ms(), settings.time_zone)
    save(DayReport(trigger_day=today, suc_count=0, fail_count=1))
    page = text_of(admin.get("/"))
    assert "Runs today 1" in page
    assert "Success rate today 0 %" in page
    assert "1 failure today" in page
    assert "7 days" not in page.partition("Needs attention")[0]


def test_unresolved_runs_late_fires_and_silent_nodes_are_shown(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id, foreign = add_group(), add_group("other-app", "Other")
    job_id, their_id = add_job(group_id, job_desc="mine"), add_job(foreign, job_desc="theirs")
    save(run(group_id, job_id, sent=504, handled=0), run(foreign, their_id, sent=504, handled=0))
    for number, owner in enumerate((job_id, their_id, their_id)):
        key = f"cron:{owner}:{number}"
        save(
            Fire(
                job_id=owner,
                fire_key=key,
                due_time=now_ms() - 3 * MINUTE_MS,
                trigger_type="CRON",
                state="PENDING",
            )
        )
    save(
        node("live-node", NodeKind.WORKERS, 0),
        node("dead-node", NodeKind.CONSOLE, MINUTE_MS),
        node("old-node", NodeKind.CONSOLE, 2 * DAY_MS),
    )
    page = text_of(admin.get("/"))
    for expected in (
        "2 of 2 jobs are failing",
        "mine Unresolved",
        "3 runs are late",
        "3 runs are due and not sent yet",
        "the oldest was due 3 minutes ago",
        "live-node",
        "dead-node",
        "not responding",
    ):
        assert expected in page, expected
    assert "old-node" not in page
    seen = text_of(normal_user(group_id).get("/"))
    assert "1 run is due and not sent yet" in seen
    assert "theirs" not in seen
    assert "live-node" not in seen


def test_workers_that_scan_no_more_are_shown_though_they_are_alive(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    stuck = node("one", NodeKind.WORKERS, -MINUTE_MS)  # alive for the length of this test
    stuck.scanned_ms = now_ms() - 3 * MINUTE_MS
    save(stuck)
    for page in (text_of(console.get("/")) for console in (admin, normal_user(add_group()))):
        assert "No scheduler is scanning. The workers are running, but no jobs fire" in page
        assert "The last scan was 3 minutes ago" in page
        assert "No scheduler is running." not in page


def test_workers_that_never_scanned_are_shown(admin: Console) -> None:
    stuck = node("one", NodeKind.WORKERS, -MINUTE_MS)
    stuck.scanned_ms = 0
    save(stuck)
    page = text_of(admin.get("/"))
    assert "No scheduler is scanning." in page
    assert "The last scan was" not in page


def test_jobs_fire_while_only_the_heartbeats_are_missing(admin: Console) -> None:
    silent = node("one", NodeKind.WORKERS, MINUTE_MS)
    silent.scanned_ms = now_ms()
    save(silent)
    page = text_of(admin.get("/"))
    assert "No scheduler is" not in page
    assert "not responding" in page


def test_a_killed_node_whose_clock_was_ahead_does_not_respond(admin: Console) -> None:
    killed = node("fast", NodeKind.CONSOLE, 3 * MINUTE_MS - DAY_MS)
    killed.skew_ms = DAY_MS
    save(killed)
    page = text_of(admin.get("/"))
    assert "not responding 3 minutes ago" in page
    assert "The clock of fast" not in page


def test_a_node_that_fires_nothing_because_of_its_clock_is_shown(admin: Console) -> None:
    wrong, right, dead = (
        node("ahead", NodeKind.WORKERS, -5_000),
        node("steady", NodeKind.WORKERS, 0),
        node("gone", NodeKind.WORKERS, MINUTE_MS),
    )
    wrong.skew_ms, right.skew_ms, dead.skew_ms = 5_000, 400, -9_000
    save(wrong, dead)
    page = text_of(admin.get("/"))
    assert "The clock of ahead is wrong. It differs from the database's clock by +5.0 s" in page
    assert "The clock of gone" not in page
    assert "No scheduler is running." not in page, "that would mislead"
    save(right)
    page = text_of(admin.get("/"))
    assert "The clock of ahead is wrong." in page
    assert "The clock of steady" not in page


def test_a_console_whose_clock_is_wrong_is_shown(admin: Console, normal_user: Callable[..., Console]) -> None:
    """Another one, ``west``, and this one, by whose clock the others are late."""
    wrong, right = node("west", NodeKind.CONSOLE, -600_000), node("east", NodeKind.WORKERS, 0)
    own = node("own", NodeKind.CONSOLE, 0)
    wrong.skew_ms, own.skew_ms = 600_000, 86_400_000
    save(wrong, right, own)
    page = text_of(admin.get("/"))
    assert "The clock of west is wrong. It differs from the database's clock by +600.0 s" in page
    assert "The clock of own is wrong." in page
    assert "is planned for wrong times" in page
    assert "fires no jobs" not in page
    assert "All is well." not in page
    assert "clock" not in text_of(normal_user(add_group()).get("/"))


def test_a_normal_user_sees_that_a_clock_is_wrong_but_not_which(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    wrong = node("ahead", NodeKind.WORKERS, -5_000)
    wrong.skew_ms = 5_000
    save(wrong)
    page = text_of(normal_user(add_group()).get("/"))
    assert "The clock of a scheduler is wrong." in page
    assert "ahead" not in page
    assert "No scheduler is running." not in page
    assert "All is well." not in page


def test_runs_of_a_users_groups_are_counted_by_day(admin: Console, settings: Config) -> None:
    group_id, foreign = add_group(), add_group("other-app", "Other")
    job_id = add_job(group_id)
    save(
        run(group_id, job_id),
        run(group_id, job_id, handled=500),
        run(group_id, job_id, handled=0),
        run(group_id, job_id, sent=500, handled=0),
    )
    save(
        run(foreign, job_id),
        run(group_id, job_id, ago_ms=DAY_MS + MINUTE_MS),
        run(group_id, job_id, sent=504, handled=0),
    )
    Reporter(settings).tick(now_ms())
    with read_scope() as session:
        found = day_counts.day_counts_of_groups(
            session, [group_id], from_ms=now_ms() - 3 * DAY_MS, to_ms=now_ms()
        )
        none = day_counts.day_counts_of_groups(session, [], from_ms=now_ms() - 3 * DAY_MS, to_ms=now_ms())
    assert sum(day.success for day in found) == 2
    assert (sum(day.failed for day in found), sum(day.running for day in found)) == (3, 1)
    assert none == []


def test_uncounted_days_are_left_out_with_a_hint(
    normal_user: Callable[..., Console], admin: Console, settings: Config
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    norman = normal_user(group_id)
    today = midnight_ms(now_ms(), settings.time_zone)
    save(*[run(group_id, job_id, handled=500, ago_ms=2 * DAY_MS) for _number in range(2)])
    save(DayReport(trigger_day=today - 2 * DAY_MS, fail_count=2))
    two_ago = local_datetime(today - 2 * DAY_MS).strftime("%Y-%m-%d")
    assert "on these days have not been counted yet" in text_of(
        norman.get(f"/?range=custom&from={two_ago}&to={two_ago}")
    )
    save(run(group_id, job_id, handled=500, ago_ms=0))
    with session_scope() as session:
        reporting.save_report(session, today, {group_id: Counts(0, 0, 1)}, now_ms=now_ms())
    one_ago, day = (local_datetime(now_ms() - back * DAY_MS).strftime("%Y-%m-%d") for back in (1, 0))
    assert f"Runs of your executor groups before {one_ago} have not been counted yet" in text_of(
        norman.get("/")
    )
    assert [(entry["day"], entry["failed"]) for entry in norman.get("/report").get_json()["days"]] == [
        (one_ago, 0),
        (day, 1),
    ]
    assert "not been counted yet" not in text_of(admin.get("/"))
    Reporter(settings).tick(now_ms())
    assert "not been counted yet" not in text_of(norman.get("/"))
    days = norman.get("/report").get_json()["days"]
    assert (len(days), sum(day["failed"] for day in days)) == (7, 3)


def test_a_chart_of_few_runs_has_whole_numbers(
    normal_user: Callable[..., Console], admin: Console, settings: Config
) -> None:
    group_id = add_group()
    norman = normal_user(group_id)
    assert "not been counted yet" not in text_of(norman.get("/"))
    save(run(group_id, add_job(group_id), ago_ms=0))
    Reporter(settings).tick(now_ms())
    assert "not been counted yet" not in text_of(norman.get("/"))
    assert len(norman.get("/report").get_json()["days"]) == 7


def test_any_days_can_be_requested(admin: Console) -> None:
    group_id = add_group(addresses=ONLINE)
    job_id = add_job(group_id)
    save(run(group_id, job_id))
    days = admin.get("/report?range=custom&from=2026-01-30&to=2026-02-02").get_json()["days"]
    assert [day["day"] for day in days] == ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"]
    page = admin.get("/?range=custom&from=2026-01-30&to=2026-02-02").text
    assert 'name="from"\n        value="2026-01-30"' in page


@pytest.mark.parametrize(
    ("query", "count", "last"),
    [
        ("from=2026-02-02&to=2026-01-30", 4, "2026-02-02"),
        ("from=2020-01-01&to=2026-01-01", 366, "2026-01-01"),
        ("to=2026-01-30", 7, "2026-01-30"),
        ("from=2026-01-30", 7, "2026-02-05"),
        ("from=9999-12-31&to=0001-01-01", 7, ""),
        ("from=x&to=", 7, ""),
    ],
)
def test_invalid_days_still_make_a_range(admin: Console, query: str, count: int, last: str) -> None:
    days = admin.get(f"/report?range=custom&{query}").get_json()["days"]
    assert len(days) == count
    assert not last or days[-1]["day"] == last


def test_what_runs_can_be_killed_by_those_who_may_operate_it(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    job_id = add_job(group_id := add_group(addresses=ONLINE), job_desc="long one")
    save(*(run(group_id, job_id, handled=0, ago_ms=ago * MINUTE_MS) for ago in range(1, 8)))
    longest = run(group_id, job_id, handled=0, ago_ms=60 * MINUTE_MS)
    longest.progress = '{"done": 93, "total": 200, "text": "pages"}'
    save(longest)
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    stranger = normal_user(add_group("other-app", "Other"), username="stan")
    page = admin.get("/")
    first = page.text.split('class="running"')[1]
    assert f"/joblog/{longest.id}/kill" in first
    assert "93 of 200 pages" in first
    assert page.text.count("/kill") == 5
    assert "and 3 more running" in text_of(page)
    assert "long one" in (seen := reader.get("/").text)
    assert "/kill" not in seen
    assert "long one" not in stranger.get("/").text


def test_a_kill_leads_back_to_the_dashboard(admin: Console) -> None:
    job_id = add_job(group_id := add_group(addresses=ONLINE))
    save(log := run(group_id, job_id, handled=0))
    page = admin.get(f"/joblog/{log.id}/kill", headers={"Referer": "http://localhost/xxl-job-admin/"}).text
    assert '<input type="hidden" name="next" value="/xxl-job-admin/">' in page


def test_a_job_that_is_not_started_leads_to_its_remedy(admin: Console) -> None:
    group_id = add_group(addresses=ONLINE)
    job_id = add_job(group_id)
    refused = run(group_id, job_id, sent=500, handled=0)
    refused.trigger_msg = "Result: not sent, no executor of my-app is registered"
    save(refused)
    (row,) = rows_of(admin.get("/").text)
    assert f'href="/xxl-job-admin/jobgroup/{group_id}" title="Executor ' in row
    assert "Not started: no executor of my-app is registered" in row


def test_jobs_that_differ_from_their_code_are_counted_for_those_who_see_them(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    save(node("one", NodeKind.WORKERS, 0))
    drifted = add_job(group_id := add_group(addresses=ONLINE), job_desc="renamed here")
    same = add_job(group_id, job_desc="as in the code")
    for job_id, name in ((drifted, "its name in the code"), (same, "as in the code")):
        fields = json.dumps({"description": name})
        save(CodeObject(kind="job", managed_key=f"key/{job_id}", object_id=job_id, fields=fields))
    page = admin.get("/")
    assert "All is well. · 1 job differs from its code" in text_of(page).replace("  ", " ")
    assert 'href="/xxl-job-admin/jobinfo?code=drifted"' in page.text
    assert "1 job differs" in text_of(normal_user(group_id).get("/"))
    stranger = normal_user(add_group("other-app", "Other"), username="stan")
    assert "differs" not in text_of(stranger.get("/"))


def test_the_number_of_statements_does_not_grow_with_what_is_wrong(admin: Console) -> None:
    group_id = add_group(addresses=ONLINE)

    def add_troubles() -> None:
        failing, running, unresolved = (add_job(group_id) for _number in range(3))
        save(
            run(group_id, failing, handled=500),
            run(group_id, running, handled=0),
            run(group_id, unresolved, sent=504, handled=0, ago_ms=2 * MINUTE_MS),
            run(group_id, unresolved),
            run(add_group(f"app-{failing}", "Gone"), failing, sent=500, handled=0),
            Mute(job_id=running, since_ms=now_ms(), until_ms=now_ms() + DAY_MS, username="lina"),
        )

    def count() -> int:
        with statements() as seen:
            admin.get("/")
        return len(seen)

    add_troubles()
    count()
    once = count()
    for _number in range(9):
        add_troubles()
    assert count() == once


def test_a_new_installation_shows_the_first_steps(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    page = admin.get("/").text
    assert "Get started" in page
    steps = page.split('id="first-steps"')[1].split("</section>")[0]
    assert (steps.count("bi-check-circle-fill"), steps.count("bi-circle")) == (0, 5)
    assert "<code>xxl-job-workers</code>" in steps, "no page says how to start them"
    save(node("one", NodeKind.WORKERS, 0))
    group_id = add_group(addresses=ONLINE)
    assert (
        admin.get("/").text.split('id="first-steps"')[1].split("</section>")[0].count("bi-check-circle-fill")
        == 3
    )
    add_job(group_id)
    assert "Get started" not in admin.get("/").text
    assert "Get started" not in normal_user().get("/").text
