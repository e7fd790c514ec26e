"""Counting: hours are added to days, open runs later, days are sealed, deleted rows are explained."""

import json
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import delete, update

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.completeness.equation import Tally, tally_of
from app.domain.completeness.expected_instants import Interval
from app.models.completeness import DaySeal, JobDay, JobSpan
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import Node
from app.models.skip import Skip
from app.services.completeness.counting import CompletenessCounter, seal_next
from app.services.completeness.report import Scope, report
from app.services.completeness.verification import verify_day
from app.store.completeness import days as store
from app.store.runs.clearing import Clearing, clear_batch
from tests.pipeline.steps import call_back
from tests.support.factories import all_rows, make_due_job, make_fire, make_log, only_row, save
from tests.support.migrated_databases import TIME_ZONE
from tests.support.plan import every_database

pytestmark = every_database

ZONE = ZoneInfo(TIME_ZONE)
HOUR: Millis = 3_600_000
DAY = date(2024, 5, 2)
#: midnight of that day in Shanghai
BEGIN: Millis = 1_714_579_200_000
ALL = Scope(None, 0)


@pytest.fixture
def job(database: str) -> Job:
    """A job of each half hour, whose history begins with the day."""
    made = make_due_job(BEGIN + HOUR, "CRON", "0 0/30 * * * ?")
    history = {"job_id": made.id, "group_id": made.job_group, "is_on": 1, "from_ms": BEGIN - 1}
    schedule = {"schedule_type": "CRON", "schedule_conf": "0 0/30 * * * ?", "time_zone": TIME_ZONE}
    save(JobSpan(**history, **schedule, not_before_ms=0, not_after_ms=0))
    node = {"name": "one", "kind": "workers", "started_ms": 0, "heartbeat_ms": 0, "version": "1"}
    save(Node(**node, scanned_ms=BEGIN + 400 * HOUR))
    return made


def run(job: Job, instant: Millis, **changes: object) -> JobLog:
    values = {"fire_time": instant, "logical_ms": instant, "trigger_type": "CRON", "trigger_time": instant}
    ended = {"handle_code": 200, "handle_time": instant + 1_000, "late_ms": 4}
    return make_log(job, **values | ended | changes)


def tick(now_ms: Millis) -> None:
    with session_scope() as session:
        session.execute(update(Node).values(scanned_ms=now_ms))
    CompletenessCounter(TIME_ZONE).tick(now_ms)


def numbers(now_ms: Millis, *, until_ms: Millis | None = None) -> Tally:
    with read_scope() as session:
        interval = Interval(BEGIN, now_ms if until_ms is None else until_ms)
        return report(session, ALL, interval, zone=ZONE, now_ms=now_ms).total


def stored(job: Job) -> JobDay:
    return only_row(JobDay, job_id=job.id, day="2024-05-02")


def test_hours_are_added_and_the_rest_is_counted_from_its_rows(job: Job) -> None:
    for number in range(7):
        run(job, BEGIN + number * HOUR // 2, late_ms=4 if number else 1_500)
    now_ms = BEGIN + 3 * HOUR + 12 * 60_000
    tick(now_ms)
    assert (stored(job).expected, stored(job).on_time, stored(job).late) == (6, 5, 1)
    total = numbers(now_ms)
    assert (total.expected, total.on_time, total.late, total.finished) == (7, 6, 1, 7)
    assert total.is_complete
    tick(now_ms + 60_000)
    assert numbers(now_ms + 60_000) == total


def test_a_day_is_counted_up_to_a_run_that_is_open(job: Job) -> None:
    first, second = run(job, BEGIN), run(job, BEGIN + HOUR // 2, handle_code=0, handle_time=None)
    for number in range(2, 8):
        run(job, BEGIN + number * HOUR // 2)
    now_ms = BEGIN + 4 * HOUR + 12 * 60_000
    run(job, BEGIN + 4 * HOUR)
    tick(now_ms)
    assert (stored(job).expected, stored(job).open_from_ms) == (1, second.fire_time)
    total = numbers(now_ms)
    assert (total.expected, total.finished, total.running, total.unexplained) == (9, 8, 1, 0)
    with session_scope() as session:
        session.execute(update(JobLog).where(JobLog.id == second.id).values(handle_code=500))
    run(job, BEGIN + 9 * HOUR // 2)
    run(job, BEGIN + 5 * HOUR)
    tick(now_ms + HOUR)
    assert (stored(job).expected, stored(job).failed, stored(job).open_from_ms) == (10, 1, 0)
    assert first.id
    assert numbers(now_ms + HOUR).expected == 11


@pytest.mark.parametrize("hours", [1, 4])
def test_cleared_rows_leave_nothing_unexplained(job: Job, hours: int) -> None:
    """Of instants that are counted already, and of those that are not."""
    for number in range(3):
        run(job, BEGIN + number * HOUR // 2)
    make_fire(job, due_time=BEGIN + 3 * HOUR // 2)
    now_ms = BEGIN + 3 * HOUR // 2 + 60_000
    if hours == 4:
        tick(BEGIN + HOUR + 12 * 60_000)
        assert stored(job).expected == 2
    with session_scope() as session:
        clear_batch(session, Clearing(0, 0))
    total = numbers(now_ms)
    assert (total.expected, total.on_time, total.waiting, total.unexplained) == (4, 3, 1, 0)
    assert stored(job).cleared == (1 if hours == 4 else 0)


def test_a_deleted_row_is_unexplained_in_report_and_metric(job: Job) -> None:
    rows = [run(job, BEGIN + number * HOUR // 2) for number in range(3)]
    now_ms = BEGIN + HOUR + 60_000
    tick(now_ms)
    with session_scope() as session:
        session.execute(delete(JobLog).where(JobLog.id == rows[1].id))
    tick(now_ms + 60_000)
    assert numbers(now_ms + 60_000).unexplained == 1
    with read_scope() as session:
        assert store.count_unexplained(session, from_day="2024-05-01") == 1


def test_deleted_rows_of_one_day_do_not_explain_those_of_another(job: Job) -> None:
    for instant in (BEGIN, BEGIN + HOUR):
        run(job, instant)
    removed = '{"on_time": 3}'
    save(JobDay(job_id=job.id, day="2024-05-03", group_id=job.job_group, removed=removed))
    now_ms = BEGIN + HOUR + 60_000
    tick(now_ms)
    total = numbers(now_ms)
    assert (total.expected, total.on_time, total.unexplained) == (3, 2, 1)


def whole_day(job: Job, *, unresolved: int = -1) -> Millis:
    """Run, count and seal a day; one run has no result. Returns the time after it."""
    for number in range(49):
        changes = {"trigger_code": 504, "handle_code": 0, "handle_time": None} if number == unresolved else {}
        run(job, BEGIN + number * HOUR // 2, **changes)
    now_ms = BEGIN + 25 * HOUR + 11 * 60_000
    run(job, BEGIN + 49 * HOUR // 2)
    run(job, BEGIN + 25 * HOUR)
    tick(now_ms)
    return now_ms


def test_a_day_is_sealed_and_verified(job: Job) -> None:
    now_ms = whole_day(job)
    seal = only_row(DaySeal)
    assert (seal.day, seal.number) == ("2024-05-02", 0)
    assert '"expected":48' in seal.totals
    with read_scope() as session:
        result = verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms)
    assert (result.sealed, result.intact, result.unexplained, result.different) == (True, True, 0, [])
    assert not transact(lambda session: seal_next(session, zone=ZONE, now_ms=now_ms))


@pytest.mark.parametrize("kind", ["CRON", "FIX_RATE"])
def test_runs_of_backfills_are_in_no_equation(job: Job, kind: str) -> None:
    if kind == "FIX_RATE":
        schedule = {"schedule_type": kind, "schedule_conf": "1800"}
        with session_scope() as session:
            session.execute(update(JobSpan).values(**schedule, anchor_ms=BEGIN))
            session.execute(update(Job).values(**schedule))
    run(job, BEGIN + HOUR // 2)
    for instant, code in ((BEGIN, 200), (BEGIN + HOUR // 2, 500)):
        backfill = {"trigger_type": "BACKFILL", "fire_time": None, "logical_ms": instant}
        failed = run(job, instant, **backfill | {"trigger_time": BEGIN + HOUR, "handle_code": code})
        run(job, instant, **backfill | {"trigger_type": "RETRY", "source_log_id": failed.id})
    now_ms = BEGIN + 3 * HOUR // 2 + 12 * 60_000
    tick(now_ms)
    total = numbers(now_ms, until_ms=BEGIN + HOUR)
    assert (total.expected, total.on_time, total.unexplained, total.finished) == (2, 1, 1, 1)


def test_runs_of_a_java_admin_stand_for_their_instants(job: Job) -> None:
    """Each for one; its rows have no instant, and times in whole seconds."""
    theirs = {"trigger_type": None, "fire_time": None, "logical_ms": None, "late_ms": None}
    run(job, BEGIN)
    for late_ms in (0, 5_000):
        run(job, BEGIN + HOUR // 2, **theirs | {"trigger_time": BEGIN + HOUR // 2 + late_ms})
    run(job, BEGIN + HOUR, **theirs | {"trigger_time": BEGIN + HOUR + 9_000})
    total = numbers(BEGIN + HOUR + 60_000)
    assert (total.expected, total.on_time, total.late, total.java) == (3, 2, 1, 2)
    assert total.is_complete


def test_a_late_result_corrects_its_day_and_its_seal(job: Job) -> None:
    now_ms = whole_day(job, unresolved=7)
    assert stored(job).unresolved == 1
    late = next(log for log in all_rows(JobLog) if log.trigger_code == 504)
    assert call_back(late.id, now_ms=now_ms)
    tick(now_ms)
    assert (stored(job).finished, stored(job).unresolved, stored(job).changed) == (48, 0, 0)
    assert [(seal.day, seal.number) for seal in all_rows(DaySeal)] == [("2024-05-02", 0), ("2024-05-02", 1)]
    with read_scope() as session:
        result = verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms)
    assert (result.sealed, result.intact, result.different) == (True, True, [])
    next_day_ms = now_ms + 25 * HOUR
    tick(next_day_ms)
    assert [seal.day for seal in all_rows(DaySeal)][-1] == "2024-05-03"
    with read_scope() as session:
        assert verify_day(session, ALL, DAY, zone=ZONE, now_ms=next_day_ms).intact


def test_a_late_result_of_a_day_with_deleted_rows_changes_nothing(job: Job) -> None:
    now_ms = whole_day(job, unresolved=7)
    late = next(log for log in all_rows(JobLog) if log.trigger_code == 504)
    with session_scope() as session:
        session.execute(update(JobDay).where(JobDay.job_id == job.id).values(cleared=1))
    assert call_back(late.id, now_ms=now_ms)
    tick(now_ms)
    assert (stored(job).unresolved, stored(job).changed, len(all_rows(DaySeal))) == (1, 0, 1)


def test_the_first_seal_after_a_restore_says_so(job: Job) -> None:
    now_ms = whole_day(job)
    save(
        Skip(
            job_id=job.id,
            from_ms=now_ms,
            to_ms=now_ms + HOUR,
            skipped=2,
            reason="restored",
            recorded_ms=now_ms + HOUR,
        )
    )
    for days in (1, 2):
        tick(now_ms + days * 25 * HOUR)
    assert [seal.restored for seal in all_rows(DaySeal)] == [0, 1, 0]


def test_the_reasons_of_a_day_are_sealed_and_read_again(job: Job) -> None:
    run(job, BEGIN, not_started="no_instance", trigger_code=500)
    for number in range(1, 48):
        run(job, BEGIN + number * HOUR // 2)
    tick(BEGIN + 25 * HOUR + 11 * 60_000)
    tally = tally_of(json.loads(only_row(DaySeal).totals))
    assert (tally.expected, tally.on_time, tally.not_started) == (48, 47, {"no_instance": 1})
    assert tally.as_dict()["not_started"] == {"no_instance": 1}


@pytest.mark.parametrize(
    "change",
    [
        update(JobDay).where(JobDay.job_id > 0).values(late=1, on_time=47),
        update(DaySeal).values(totals="{}"),
        update(DaySeal).values(rows_hash="0" * 64),
        delete(JobDay).where(JobDay.job_id > 0),
    ],
)
def test_a_changed_total_or_seal_is_found(job: Job, change: object) -> None:
    now_ms = whole_day(job)
    with session_scope() as session:
        session.execute(change)  # type: ignore[call-overload]
    with read_scope() as session:
        assert not verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms).intact


def test_a_vanished_row_of_a_sealed_day_is_found_by_a_count(job: Job) -> None:
    now_ms = whole_day(job)
    with session_scope() as session:
        session.execute(delete(JobLog).where(JobLog.fire_time == BEGIN + 6 * HOUR))
    assert numbers(now_ms, until_ms=BEGIN + 24 * HOUR).unexplained == 0
    with read_scope() as session:
        result = verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms)
    assert (result.unexplained, result.different) == (1, [job.id])
    with session_scope() as session:
        session.execute(delete(Fire))


def test_shards_of_a_broadcast_may_be_sent_in_any_order(job: Job) -> None:
    for shard in ("1/3", "0/3", "2/3"):
        run(job, BEGIN, executor_sharding_param=shard)
    assert numbers(BEGIN + HOUR // 4).is_complete
    run(job, BEGIN, executor_sharding_param="1/3")
    assert numbers(BEGIN + HOUR // 4).unexpected == 1


@pytest.mark.parametrize(
    ("window", "count"),
    [({"not_before_ms": BEGIN + 3 * HOUR}, 0), ({"not_after_ms": BEGIN + HOUR // 2}, 0), ({}, 1)],
)
def test_a_fixed_delay_is_overdue_in_its_window_alone(
    job: Job, window: dict[str, Millis], count: int
) -> None:
    bounds = {"not_before_ms": 0, "not_after_ms": 0} | window
    with session_scope() as session:
        session.execute(update(JobSpan).values(schedule_type="FIX_DELAY", schedule_conf="3600", **bounds))
        session.execute(update(Node).values(scanned_ms=BEGIN + 2 * HOUR))
    assert numbers(BEGIN + 2 * HOUR).unexplained == count


def test_a_fixed_delay_counts_from_its_skip(job: Job) -> None:
    with session_scope() as session:
        session.execute(update(JobSpan).values(schedule_type="FIX_DELAY", schedule_conf="3600"))
        session.execute(update(Node).values(scanned_ms=BEGIN + 2 * HOUR))
    run(job, BEGIN, handle_time=BEGIN + 1_000)
    due_ms = BEGIN + HOUR + 1_020  # The result was noted after its time.
    skip = {"from_ms": due_ms, "to_ms": due_ms, "skipped": 1, "reason": "misfire"}
    save(Skip(job_id=job.id, recorded_ms=due_ms + 300_000, **skip))
    total = numbers(BEGIN + 2 * HOUR)
    assert (total.expected, total.skipped["misfire"], total.unexplained) == (2, 1, 0)


def test_a_deleted_seal_at_the_end_shows(job: Job) -> None:
    now_ms = BEGIN + 10 * 24 * HOUR
    with session_scope() as session:
        session.execute(update(JobSpan).values(until_ms=BEGIN))
    tick(now_ms)
    with read_scope() as session:
        assert verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms).intact
    with session_scope() as session:
        session.execute(delete(DaySeal))
    with read_scope() as session:
        result = verify_day(session, ALL, DAY, zone=ZONE, now_ms=now_ms)
    assert (result.sealed, result.intact) == (False, False)


def test_runs_that_began_in_another_time_zone_are_found(job: Job) -> None:
    for number in range(4):
        run(job, BEGIN + number * HOUR // 2, trigger_time=BEGIN - 6 * HOUR)
    with session_scope() as session:
        session.execute(update(Node).values(scanned_ms=BEGIN + 2 * HOUR))
    total = numbers(BEGIN + 2 * HOUR)
    assert (total.expected, total.on_time, total.unexplained) == (4, 4, 0)


def test_a_run_that_waited_for_days_is_late(job: Job) -> None:
    run(job, BEGIN, trigger_time=BEGIN + 72 * HOUR, late_ms=72 * HOUR)
    for number in range(1, 4):
        run(job, BEGIN + number * HOUR // 2)
    with session_scope() as session:
        session.execute(update(Node).values(scanned_ms=BEGIN + 80 * HOUR))
    total = numbers(BEGIN + 80 * HOUR, until_ms=BEGIN + 2 * HOUR)
    assert (total.expected, total.on_time, total.late, total.unexplained) == (4, 3, 1, 0)
