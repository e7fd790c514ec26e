"""The daily report, by local days of every length, and the retention in small batches."""

from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import delete, func, insert, select

from app.clock import DAY_MS, Millis
from app.database.engine import bind_engine, read_scope, session_scope, transact
from app.models.alarm import Alarm
from app.models.api_token import ApiToken, IdempotentRequest
from app.models.audit import AuditEntry
from app.models.backfill import Backfill, BackfillInstant
from app.models.channel import ChannelScope
from app.models.code import JobVersion
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.fire import Fire
from app.models.job import Job
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.node import Node
from app.models.promise import Incident, JobPromise, PromiseCheck
from app.models.report import WHOLE_DAY, DayReport, GroupDay
from app.models.right import Right
from app.models.round import After, Arrival, Round
from app.models.saved_view import SavedView
from app.models.skip import Skip
from app.models.start_page import StartPage
from app.models.tag import JobTag
from app.models.task import Task
from app.models.throttle import Throttle
from app.models.user import User
from app.models.variable import Variable
from app.services.report.reporting import (
    CLEAN_PERIOD_MS,
    DELETE_ROWS,
    DELETE_WAIT_MS,
    EARLIER_PERIOD_MS,
    LAST_SEEN_DAYS,
    LATE_DAYS,
    LATE_WAIT_MS,
    NODE_DAYS,
    TASK_DAYS,
    TODAY_PERIOD_MS,
    TOKEN_DAYS,
    TRACE_DAYS,
    Cleaner,
    Reporter,
    midnight_ms,
)
from app.settings.config import Config
from app.store.nodes import orphans
from app.store.runs import reporting
from tests.pipeline.steps import run_concurrently
from tests.support.factories import (
    T0,
    all_rows,
    make_fire,
    make_group,
    make_job,
    make_log,
    make_run,
    only_row,
    remove,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

HOUR: Millis = 3_600_000


def instant(text: str) -> Millis:
    """Return the instant of a text such as "2024-05-01 03:04:05Z"."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "now", "back", "begins", "hours"),
    [
        ("Asia/Shanghai", "2024-05-01 03:04:05Z", 0, "2024-04-30 16:00:00Z", 24),
        ("Asia/Shanghai", "2024-05-01 16:00:00Z", 0, "2024-05-01 16:00:00Z", 24),
        ("UTC", "2024-03-01 00:00:00Z", 1, "2024-02-29 00:00:00Z", 24),
        ("Europe/Berlin", "2024-03-31 12:00:00Z", 0, "2024-03-30 23:00:00Z", 23),
        ("Europe/Berlin", "2024-10-28 12:00:00Z", 1, "2024-10-26 22:00:00Z", 25),
        ("America/New_York", "2024-11-05 12:00:00Z", 2, "2024-11-03 04:00:00Z", 25),
        ("Australia/Lord_Howe", "2024-04-07 12:00:00Z", 0, "2024-04-06 13:00:00Z", 24.5),
        ("Australia/Lord_Howe", "2024-10-06 12:00:00Z", 0, "2024-10-05 13:30:00Z", 23.5),
        (
            "America/Sao_Paulo",
            "2018-11-04 12:00:00Z",
            0,
            "2018-11-04 03:00:00Z",
            23,
        ),  # midnight does not exist: 01:00 local
        (
            "America/Havana",
            "2024-11-03 12:00:00Z",
            0,
            "2024-11-03 04:00:00Z",
            25,
        ),  # midnight comes twice: the first one
    ],
)
def test_a_day_is_as_long_as_its_clocks_make_it(
    zone: str, now: str, back: int, begins: str, hours: float
) -> None:
    now_ms = instant(now)
    assert midnight_ms(now_ms, zone, back) == instant(begins)
    assert midnight_ms(now_ms, zone, back - 1) - midnight_ms(now_ms, zone, back) == hours * HOUR


def reports() -> dict[Millis | None, tuple[int, int, int]]:
    return {
        row.trigger_day: (row.running_count, row.suc_count, row.fail_count) for row in all_rows(DayReport)
    }


def test_today_and_the_two_days_before_are_counted(database: str, config: Config) -> None:
    job, today = make_job(), midnight_ms(T0, config.time_zone)
    codes = [(0, 0), (200, 0), (200, 200), (500, 200), (200, 500), (500, 0), (504, 0)]
    for day in range(5):
        for trigger_code, handle_code in codes[day:]:
            make_log(
                job, trigger_time=today - day * DAY_MS, trigger_code=trigger_code, handle_code=handle_code
            )
    assert Reporter(config).tick(T0) == TODAY_PERIOD_MS
    assert reports() == {today: (2, 2, 3), today - DAY_MS: (1, 2, 3), today - 2 * DAY_MS: (0, 2, 3)}


def by_groups() -> dict[tuple[Millis, int], tuple[int, int, int]]:
    return {
        (row.trigger_day, row.job_group): (row.running_count, row.suc_count, row.fail_count)
        for row in all_rows(GroupDay)
    }


def test_each_group_is_counted_and_one_without_runs_any_more_has_none(database: str, config: Config) -> None:
    mine, other, today = make_job(), make_job(), midnight_ms(T0, config.time_zone)
    make_log(mine, trigger_time=today, handle_code=200)
    make_log(mine, trigger_time=today, handle_code=500)
    gone = make_log(other, trigger_time=today)
    reporter = Reporter(config)
    reporter.tick(T0)
    of_today = {group: counts for (day, group), counts in by_groups().items() if day == today}
    assert of_today == {WHOLE_DAY: (0, 0, 0), mine.job_group: (0, 1, 1), other.job_group: (1, 0, 0)}
    remove(gone)
    reporter.tick(T0 + TODAY_PERIOD_MS)
    assert (by_groups()[today, other.job_group], reports()[today]) == ((0, 0, 0), (0, 1, 1))
    with session_scope() as session:
        reporting.delete_of_group(session, mine.job_group)
    assert mine.job_group not in {group for _day, group in by_groups()}


def test_a_group_that_is_gone_gets_no_new_counts(database: str, config: Config) -> None:
    """Otherwise they are deleted as without an owner and written again as long as there are runs of it."""
    job, today = make_job(), midnight_ms(T0, config.time_zone)
    make_log(job, trigger_time=today, job_group=job.job_group + 1, handle_code=200)
    Reporter(config).tick(T0)
    assert ({group for _day, group in by_groups()}, reports()[today]) == ({WHOLE_DAY}, (0, 1, 0))


def test_days_from_before_the_groups_were_counted_are_counted_some_at_a_time(
    database: str, config: Config
) -> None:
    job, today = make_job(), midnight_ms(T0, config.time_zone)
    days = [today - back * DAY_MS for back in range(10, 10 + LATE_DAYS + 2)]
    for day in days:
        make_log(job, trigger_time=day + HOUR, handle_code=200)
        save(DayReport(trigger_day=day, suc_count=1))
    save(DayReport(trigger_day=today - 40 * DAY_MS, suc_count=7))
    save(DayReport(trigger_day=today - 41 * DAY_MS))
    reporter = Reporter(config)
    assert reporter.tick(T0) == LATE_WAIT_MS
    assert {day for day, group in by_groups() if group == job.job_group} == set(days[:LATE_DAYS])
    assert reporter.tick(T0 + LATE_WAIT_MS) == TODAY_PERIOD_MS
    assert {day for day, group in by_groups() if group == job.job_group} == set(days)
    assert by_groups()[today - 40 * DAY_MS, WHOLE_DAY] == (0, 0, 0), (
        "its runs are gone: it is not looked for again"
    )
    assert reports()[today - 40 * DAY_MS] == (0, 7, 0)


def test_the_days_before_are_counted_again_now_and_then(database: str, config: Config) -> None:
    today = midnight_ms(T0, config.time_zone)
    reporter = Reporter(config)
    reporter.tick(T0)
    make_log(make_job(), trigger_time=today - 1000, handle_code=200)
    make_log(make_job(), trigger_time=today, handle_code=200)
    reporter.tick(T0 + TODAY_PERIOD_MS)
    assert (reports()[today], reports()[today - DAY_MS]) == ((0, 1, 0), (0, 0, 0))
    reporter.tick(T0 + EARLIER_PERIOD_MS)
    assert (reports()[today], reports()[today - DAY_MS]) == ((0, 1, 0), (0, 1, 0))
    assert len(all_rows(DayReport)) == 3, "one row a day, however often it is counted"


def test_a_day_over_the_end_of_summer_time_counts_each_run_once(database: str, config: Config) -> None:
    berlin = replace(config, time_zone="Europe/Berlin")
    bind_engine(berlin)
    begins = instant("2024-10-26 22:00:00Z")
    job = make_job()
    for hour in range(-1, 26):
        make_log(job, trigger_time=begins + hour * HOUR, handle_code=200)
    Reporter(berlin).tick(begins + 26 * HOUR)
    # the two equal hours are one in the column; neither belongs to a neighbour
    assert reports() == {begins - DAY_MS: (0, 1, 0), begins: (0, 25, 0), begins + 25 * HOUR: (0, 1, 0)}


def test_nodes_that_count_at_the_same_time_write_one_row(database: str, config: Config) -> None:
    make_log(make_job(), handle_code=200)
    run_concurrently(*(lambda: Reporter(config).tick(T0) for _ in range(4)))
    assert len(all_rows(DayReport)) == 3
    assert reports()[midnight_ms(T0, config.time_zone)] == (0, 1, 0)


def insert_old_logs(count: int, before_ms: Millis) -> None:
    row = {
        "job_group": 1,
        "job_id": 1,
        "trigger_code": 200,
        "handle_code": 200,
        "trigger_time": before_ms - 1000,
    }
    with session_scope() as session:
        session.execute(insert(JobLog), [row] * count)


def count_logs() -> int:
    with read_scope() as session:
        return session.scalar(select(func.count()).select_from(JobLog)) or 0


def test_old_runs_are_deleted_a_batch_at_a_time(database: str, config: Config) -> None:
    limit_ms = midnight_ms(T0, config.time_zone, config.log_retention_days)
    insert_old_logs(DELETE_ROWS * 2 + 10, limit_ms)
    kept = make_log(make_job(), trigger_time=limit_ms)
    cleaner = Cleaner(config)
    assert cleaner.tick(T0) == DELETE_WAIT_MS
    assert count_logs() == DELETE_ROWS + 11
    assert cleaner.tick(T0) == DELETE_WAIT_MS
    assert cleaner.tick(T0) == CLEAN_PERIOD_MS
    assert only_row(JobLog).id == kept.id


def test_a_run_that_is_deleted_takes_its_fire_along(database: str, config: Config) -> None:
    old = T0 - 60 * DAY_MS
    make_run(make_job(), log={"trigger_time": old})
    alarm = {"job_id": 0, "reason": "failed", "created_ms": old}
    for log_id, state in enumerate(("SENT", "FAILED", "SILENT", "CLOSED", "PENDING", "SENDING"), 1):
        save(Alarm(log_id=log_id, state=state, **alarm))
    Cleaner(config).tick(T0)
    assert all_rows(JobLog) == all_rows(Fire) == []
    assert [row.state for row in all_rows(Alarm)] == ["PENDING", "SENDING"], "unsent alarms are kept"


def test_the_last_alarm_a_mute_holds_of_a_job_is_kept_however_old(database: str, config: Config) -> None:
    held_by = save(Mute(job_id=0, group_id=1, since_ms=T0, until_ms=T0 + HOUR)).id
    alarm = {"state": "MUTED", "reason": "failed", "created_ms": T0 - 60 * DAY_MS}
    for log_id, (job_id, mute_id) in enumerate(
        [(1, held_by), (1, held_by), (2, held_by), (2, None), (2, held_by + 1)], 1
    ):
        save(Alarm(log_id=log_id, job_id=job_id, mute_id=mute_id, **alarm))
    Cleaner(config).tick(T0)
    assert [row.log_id for row in all_rows(Alarm)] == [2, 3]


def test_the_last_sent_alarm_of_a_job_is_kept_for_its_recovery_however_old(
    database: str, config: Config
) -> None:
    monthly, other = make_job(), make_job()
    old = {"reason": "failed", "created_ms": T0 - 60 * DAY_MS}
    for log_id, (job_id, state) in enumerate(
        [(monthly.id, "SENT"), (monthly.id, "PARTLY"), (monthly.id, "FAILED"), (other.id, "CLOSED")], 1
    ):
        save(Alarm(log_id=log_id, job_id=job_id, state=state, **old))
    save(Alarm(log_id=5, job_id=other.id, state="SENT", **old | {"reason": "recovered"}))
    save(Alarm(log_id=6, job_id=other.id + 1, state="SENT", **old))
    Cleaner(config).tick(T0)
    assert [row.log_id for row in all_rows(Alarm)] == [2], "a deleted job does not recover"


def test_a_retention_of_none_keeps_every_run(database: str, config: Config) -> None:
    insert_old_logs(3, T0 - 4000 * DAY_MS)
    assert Cleaner(replace(config, log_retention_days=0)).tick(T0) == CLEAN_PERIOD_MS
    assert count_logs() == 3


@pytest.mark.parametrize("days", [30, 0])
def test_runs_are_kept_for_the_days_of_their_job_or_group(database: str, config: Config, days: int) -> None:
    group = make_group(run_days=60)
    jobs = {
        1: make_job(),
        40: make_job(job_group=group.id),
        5: make_job(job_group=group.id, run_days=5),
        3: make_job(run_days=1),
    }
    for job in jobs.values():
        for age in (2, 4, 31, 61):
            make_log(job, trigger_time=T0 - age * DAY_MS, handle_code=200)
    make_run(jobs[5], log={"trigger_time": T0 - 61 * DAY_MS})  # It is in progress.
    Cleaner(replace(config, log_retention_days=days)).tick(T0)
    kept_by_job = {
        name: [(T0 - (row.trigger_time or 0)) // DAY_MS for row in all_rows(JobLog) if row.job_id == job.id]
        for name, job in jobs.items()
    }
    assert kept_by_job == {1: [2, 4] if days else [2, 4, 31, 61], 40: [2, 4, 31], 5: [2, 4, 61], 3: [2]}


def test_runs_of_jobs_that_sql_has_deleted_go_like_others(database: str, config: Config) -> None:
    make_job(run_days=60)
    gone = [make_job() for _ in range(3)]
    for job in gone:
        for age in (20, 31):
            make_log(job, trigger_time=T0 - age * DAY_MS, handle_code=200)
    with session_scope() as session:
        session.execute(delete(Job).where(Job.id.in_([gone[0].id, gone[2].id])))
    Cleaner(replace(config, log_retention_days=30)).tick(T0)
    assert [row.trigger_time for row in all_rows(JobLog)] == [T0 - 20 * DAY_MS] * 3


def test_nodes_that_have_not_run_for_a_month_are_forgotten(database: str, config: Config) -> None:
    old = T0 - NODE_DAYS * DAY_MS - 1
    for name, started_ms, heartbeat_ms in (
        ("gone", old, old),
        ("stopped long ago", old, 0),
        ("stopped", T0 - DAY_MS, 0),
        ("running", old, T0),
        ("with a fire", old, old),
    ):
        save(Node(name=name, kind="workers", version="1", started_ms=started_ms, heartbeat_ms=heartbeat_ms))
    make_fire(make_job(), owner="with a fire", due_time=T0)
    Cleaner(config).tick(T0)
    assert {node.name for node in all_rows(Node)} == {"stopped", "running", "with a fire"}


def test_traces_are_kept_for_a_year(database: str, config: Config) -> None:
    job = make_job()
    for age_ms in (TRACE_DAYS * DAY_MS + 1, TRACE_DAYS * DAY_MS):
        save(Skip(job_id=job.id, from_ms=0, to_ms=0, skipped=1, reason="misfire", recorded_ms=T0 - age_ms))
        save(AuditEntry(at_ms=T0 - age_ms, action="job.add"))
    Cleaner(config).tick(T0)
    assert only_row(Skip).recorded_ms == only_row(AuditEntry).at_ms == T0 - TRACE_DAYS * DAY_MS


def test_old_traces_are_deleted_a_batch_at_a_time(database: str) -> None:
    rows = [
        {
            "at_ms": T0 - 1,
            "action": "job.add",
            "username": "",
            "address": "",
            "object_type": "",
            "object_id": 0,
        }
    ] * 25
    with session_scope() as session:
        session.execute(insert(AuditEntry), rows)
    assert transact(lambda session: reporting.delete_traces_before(session, before_ms=T0, limit=10)) == 10
    assert len(all_rows(AuditEntry)) == 15


def owned_rows(job_id: int, group_id: int, user_id: int) -> None:
    """Commit a row of each table of ours that belongs to a job, a group or a user."""
    tag, right = (
        JobTag(job_id=job_id, tag="nightly", tag_key="nightly"),
        Right(user_id=user_id, group_id=group_id, rights="view"),
    )
    skip = Skip(job_id=job_id, from_ms=0, to_ms=0, skipped=1, reason="misfire", recorded_ms=T0)
    drain = Drain(group_id=group_id, address="http://10.0.0.1:9999", since_ms=T0)
    view = SavedView(user_id=user_id, list_name="jobs", name="mine", name_key="mine", filters="")
    day, page = GroupDay(trigger_day=T0, job_group=group_id), StartPage(user_id=user_id, target="jobs")
    version = JobVersion(job_id=job_id, number=1, fields="{}")
    token = ApiToken(user_id=user_id, name="ci", token_hash=f"{user_id:064d}")
    favourite = Favourite(user_id=user_id, job_id=job_id)
    scopes = ChannelScope(channel_id=1, job_id=job_id), ChannelScope(channel_id=1, group_id=group_id)
    variable = Variable(group_id=group_id, name="A", value="1")
    promise = JobPromise(
        job_id=job_id, number=1, kind="fails_at_most", definition="{}", since_ms=T0, planned_until_ms=T0
    )
    check = PromiseCheck(job_id=job_id, number=1, logical_ms=T0, until_ms=T0, due_ms=T0)
    for row in (tag, version, skip, drain, right, view, day, page, token, favourite, variable, *scopes):
        save(row)
    save(promise)
    save(check)
    save(After(job_id=job_id, predecessor_id=1))


def test_what_a_java_admin_leaves_of_jobs_groups_and_users_is_deleted(database: str, config: Config) -> None:
    models = {belonging.rows for belonging in orphans.BELONGINGS} | {ChannelScope}
    job = make_job()
    owner = save(User(username="ann", password="x", role=0))
    owned_rows(job.id, job.job_group, owner.id)
    save(GroupDay(trigger_day=T0, job_group=WHOLE_DAY))
    save(ApiToken(user_id=0, name="ci", token_hash="of a service"))
    kept = {model: len(all_rows(model)) for model in models}
    Cleaner(config).tick(T0)
    assert {model: len(all_rows(model)) for model in models} == kept, "what has an owner stays"
    owned_rows(job.id + 1, job.job_group + 1, owner.id + 1)
    save(Right(user_id=owner.id, group_id=job.job_group + 1, rights="view"))
    save(Favourite(user_id=owner.id, job_id=job.id + 1))
    assert all(len(all_rows(model)) > kept[model] for model in models)
    assert Cleaner(config).tick(T0) == CLEAN_PERIOD_MS
    assert {model: len(all_rows(model)) for model in models} == kept
    remove(owner)
    Cleaner(config).tick(T0)
    assert [
        model.__name__
        for model in models
        if model.__tablename__ in ("xxl_job_right", "xxl_job_view") and all_rows(model)
    ] == []


@pytest.mark.parametrize(("days", "kept"), [(30, 1), (0, 2)])
def test_ended_incidents_are_kept_as_long_as_runs(
    database: str, config: Config, days: int, kept: int
) -> None:
    for number, ended_ms in enumerate((T0 - 40 * DAY_MS, T0 - DAY_MS)):
        times = {"logical_ms": ended_ms, "opened_ms": ended_ms, "ended_ms": ended_ms}
        key = {"incident_key": f"i:1:{number}", "job_id": 1, "group_id": 1, "kinds": "{}"}
        save(Incident(state="kept_again", **key, **times))
    Cleaner(replace(config, log_retention_days=days)).tick(T0)
    assert len(all_rows(Incident)) == kept


@every_database
@pytest.mark.parametrize(("days", "age_days"), [(5, 5), (0, TASK_DAYS)])
def test_ended_backfills_are_kept_as_long_as_runs_or_tasks(
    database: str, config: Config, days: int, age_days: int
) -> None:
    asked = {"which": "all", "run_order": "oldest_first", "children": "none", "on_failure": "stop"}
    common = {
        "job_id": 1,
        "job_group": 1,
        "user_id": 1,
        "total": 1,
        "summary": "{}",
        "updated_ms": 0,
        **asked,
    }
    times = {"from_ms": 0, "to_ms": 1, "created_ms": 0}
    for state, ended_ms in (
        ("done", T0 - (age_days + 2) * DAY_MS),
        ("failed", T0 - (age_days - 1) * DAY_MS),
        ("paused", 0),
    ):
        row = save(Backfill(state=state, ended_ms=ended_ms, **common, **times))
        save(BackfillInstant(backfill_id=row.id, logical_ms=0, number=0))
    Cleaner(replace(config, log_retention_days=days)).tick(T0)
    kept = all_rows(Backfill)
    assert [row.state for row in kept] == ["failed", "paused"]
    assert [row.backfill_id for row in all_rows(BackfillInstant)] == [row.id for row in kept]


@every_database
@pytest.mark.parametrize(("days", "is_kept"), [(30, False), (0, True)])
def test_decided_rounds_are_kept_as_long_as_runs_and_the_last_of_each_job(
    database: str, config: Config, days: int, is_kept: bool
) -> None:
    job, other = make_job(), make_job()
    old_ms, rows = T0 - 40 * DAY_MS, list[Round]()
    for number, (job_id, state, opened_ms) in enumerate(
        [
            (job.id, "started", old_ms),
            (job.id, "open", old_ms),
            (job.id, "not_run", T0 - DAY_MS),
            (other.id, "started", old_ms),
            (other.id + 1, "open", old_ms),
        ]
    ):
        key = {"job_id": job_id, "round_key": f"t:{number}", "logical_ms": opened_ms, "opened_ms": opened_ms}
        rows.append(save(Round(state=state, **key)))
        save(Arrival(round_id=rows[-1].id, predecessor_id=1, outcome="succeeded", at_ms=opened_ms))
    Cleaner(replace(config, log_retention_days=days)).tick(T0)
    kept = rows if is_kept else rows[1:4]
    assert [row.id for row in all_rows(Round)] == [row.id for row in kept]
    assert [row.round_id for row in all_rows(Arrival)] == [row.id for row in kept]


def test_rounds_decided_lately_and_the_last_since_another_are_kept(database: str, config: Config) -> None:
    job, old_ms = make_job(), T0 - 40 * DAY_MS
    for key, decided_ms in (("s:0", old_ms), ("s:1", old_ms), ("t:1", T0), ("c:1", T0), ("c:2", T0)):
        names = {"job_id": job.id, "round_key": key, "logical_ms": old_ms, "opened_ms": old_ms}
        save(Round(state="not_run", decided_ms=decided_ms, **names))
    Cleaner(replace(config, log_retention_days=30)).tick(T0)
    assert [row.round_key for row in all_rows(Round)] == ["s:1", "t:1", "c:1", "c:2"]


def test_counters_of_failed_logins_are_deleted(database: str, config: Config) -> None:
    for subject, age_ms in {"account:a": DAY_MS, "account:b": DAY_MS - 1, "known:a": 2 * DAY_MS}.items():
        save(Throttle(subject=subject, failures=1, first_ms=0, last_ms=T0 - age_ms - 1))
    Cleaner(config).tick(T0)
    with read_scope() as session:
        assert set(session.scalars(select(Throttle.subject))) == {"account:b", "known:a"}


def test_a_group_that_a_java_admin_deleted_is_taken_out_of_tokens(database: str, config: Config) -> None:
    kept = make_group()
    for number, group_ids in enumerate((f"{kept.id},{kept.id + 1}", f"{kept.id + 1}", None, "0")):
        save(ApiToken(name=str(number), token_hash=str(number), rights="view", group_ids=group_ids))
    Cleaner(config).tick(T0)
    assert [row.group_ids for row in all_rows(ApiToken)] == [str(kept.id), "0", None, "0"]


def test_ended_tokens_and_old_answers_of_the_api_are_deleted(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.report.reporting.DELETE_ROWS", 3)
    ended_ms = T0 - TOKEN_DAYS * DAY_MS
    for number, (revoked_ms, expires_ms) in enumerate(
        ((0, 0), (ended_ms, 0), (ended_ms - 1, 0), (0, ended_ms), (0, ended_ms - 1))
    ):
        save(ApiToken(name="ci", token_hash=str(number), revoked_ms=revoked_ms, expires_ms=expires_ms))
    for number in range(6):
        save(IdempotentRequest(key_hash=str(number), created_ms=T0 - DAY_MS - 1 + number // 4))
    assert Cleaner(config).tick(T0) == DELETE_WAIT_MS
    assert len(all_rows(IdempotentRequest)) == 3
    assert Cleaner(config).tick(T0) == CLEAN_PERIOD_MS
    assert [row.key_hash for row in all_rows(IdempotentRequest)] == ["4", "5"]
    assert [row.token_hash for row in all_rows(ApiToken)] == ["0", "1", "3"]


def test_rows_without_owner_are_deleted_a_batch_at_a_time(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.report.reporting.DELETE_ROWS", 3)
    with session_scope() as session:
        session.execute(
            insert(JobTag), [{"job_id": 1, "tag": str(number), "tag_key": str(number)} for number in range(5)]
        )
    assert Cleaner(config).tick(T0) == DELETE_WAIT_MS
    assert len(all_rows(JobTag)) == 2
    assert Cleaner(config).tick(T0) == CLEAN_PERIOD_MS
    assert all_rows(JobTag) == []


def test_old_sightings_and_tasks_are_deleted(database: str, config: Config) -> None:
    for late_ms in (0, 1):
        save(
            LastSeen(
                app_name="demo",
                address=f"http://{late_ms}",
                last_seen_ms=T0 - LAST_SEEN_DAYS * DAY_MS - late_ms,
            )
        )
        task = {"kind": "bulk", "parameters": "{}", "user_id": 1, "state": "DONE"}
        finished_ms = T0 - TASK_DAYS * DAY_MS - late_ms
        save(Task(idempotency_key=f"a:{late_ms}", created_ms=1, finished_ms=finished_ms, **task))
    Cleaner(config).tick(T0)
    assert (only_row(LastSeen).address, only_row(Task).idempotency_key) == ("http://0", "a:0")


def test_a_mute_whose_job_or_group_a_java_admin_has_deleted_ends_and_is_left_to_the_teller(
    database: str, config: Config
) -> None:
    job = make_job()
    mute = {"since_ms": T0, "until_ms": T0 + HOUR}
    for ids in ((job.id, 0), (job.id + 1, 0), (0, job.job_group), (0, job.job_group + 1)):
        save(Mute(job_id=ids[0], group_id=ids[1], **mute))
    assert Cleaner(config).tick(T0) == CLEAN_PERIOD_MS
    assert [row.until_ms - T0 for row in all_rows(Mute)] == [HOUR, 0, HOUR, 0]
