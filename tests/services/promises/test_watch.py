"""Watch over promises: what was broken is found from the schedule, once, and after a stop, too."""

import json
from collections.abc import Callable

import pytest
from sqlalchemy import delete, update

from app.clock import MINUTE_MS, Millis
from app.database.engine import session_scope
from app.domain.enums import TriggerStatus
from app.models.audit import AuditEntry
from app.models.completeness import JobSpan
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import Incident, IncidentMessage, JobPromise, PromiseCheck
from app.services.jobs.replan import switch_off, switch_on
from app.services.promises.incidents import acknowledge
from app.services.promises.watch import PromiseWatch
from tests.pipeline.steps import call_back
from tests.support.console import ACTOR
from tests.support.factories import (
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    make_log,
    make_run,
    only_row,
    save,
)
from tests.support.migrated_databases import TIME_ZONE
from tests.support.plan import every_database

pytestmark = every_database

HOUR: Millis = 3_600_000
#: midnight of 2024-05-02 in Shanghai
BEGIN: Millis = 1_714_579_200_000
SECOND: Millis = 1_000
HALF_HOUR = HOUR // 2
Look = Callable[[Millis], None]


class Clock:
    """Clock of a test."""

    def __init__(self) -> None:
        self.now_ms = BEGIN

    def __call__(self) -> Millis:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def look(database: str, clock: Clock) -> Look:
    """One round of one node at a time."""
    watch = PromiseWatch(node="one", clock=clock)

    def look_at(at_ms: Millis) -> None:
        clock.now_ms = at_ms
        watch.tick(at_ms)

    return look_at


def promising(*promises: dict[str, object], **changes: object) -> Job:
    """A job of each half hour whose history begins with the day."""
    job = make_due_job(BEGIN + HOUR, "CRON", "0 0/30 * * * ?", promises=json.dumps(promises), **changes)
    span_of(job, BEGIN - 1)
    return job


def span_of(job: Job, from_ms: Millis, conf: str = "0 0/30 * * * ?", kind: str = "CRON") -> None:
    history = {"job_id": job.id, "group_id": job.job_group, "is_on": 1, "from_ms": from_ms}
    schedule = {"schedule_type": kind, "schedule_conf": conf, "time_zone": TIME_ZONE}
    save(JobSpan(**history, **schedule, not_before_ms=0, not_after_ms=0))


def run(job: Job, instant: Millis, **changes: object) -> JobLog:
    values = {"fire_time": instant, "logical_ms": instant, "trigger_type": "CRON", "trigger_time": instant}
    return make_log(job, **values | changes)


def success(job: Job, instant: Millis, after_s: int = 1, **changes: object) -> JobLog:
    return run(job, instant, handle_code=200, handle_time=instant + after_s * SECOND, **changes)


def keys() -> list[tuple[str, str]]:
    return [(incident.incident_key, incident.state) for incident in all_rows(Incident)]


def steps() -> list[tuple[str, str]]:
    return [(message.step, message.state) for message in all_rows(IncidentMessage)]


def counts(job: Job) -> list[list[int]]:
    rows = all_rows(JobPromise, job_id=job.id)
    return [[sum(day) for day in zip(*json.loads(row.days or "{}").values(), strict=True)] for row in rows]


STARTS = {"kind": "starts_within", "s": 60}
FINISHES = {"kind": "finishes_within", "s": 300}


def test_a_run_that_never_came_is_reported_once(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    assert [check.due_ms for check in all_rows(PromiseCheck)] == [BEGIN + HALF_HOUR + MINUTE_MS]
    look(BEGIN + HALF_HOUR + MINUTE_MS + SECOND)
    assert keys() == []
    for second in range(2, 6):
        look(BEGIN + HALF_HOUR + MINUTE_MS + second * SECOND)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]
    assert steps() == [("opened", "PENDING")]
    assert all_rows(PromiseCheck) == []
    assert counts(job) == [[0, 1, 0]]


def test_a_promise_that_is_kept_says_nothing(look: Look) -> None:
    job = promising(STARTS, FINISHES)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    success(job, BEGIN + HALF_HOUR)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    assert keys() == []
    assert counts(job) == [[1, 0, 0], [1, 0, 0]]


def test_a_restart_of_all_nodes_loses_and_repeats_nothing(database: str, clock: Clock) -> None:
    job = promising(STARTS)
    for at_ms in (
        BEGIN + HALF_HOUR - MINUTE_MS,
        BEGIN + HALF_HOUR + 5 * MINUTE_MS,
        BEGIN + HALF_HOUR + 6 * MINUTE_MS,
    ):
        clock.now_ms = at_ms
        for node in ("one", "two"):
            PromiseWatch(node=node, clock=clock).tick(at_ms)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]
    assert len(all_rows(IncidentMessage)) == 1


def test_lateness_of_one_instant_is_one_incident_until_its_success(look: Look) -> None:
    job = promising(STARTS, FINISHES)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    late = run(job, BEGIN + HALF_HOUR, trigger_time=BEGIN + HALF_HOUR + 3 * MINUTE_MS)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    (incident,) = all_rows(Incident)
    assert sorted(kind["kind"] for kind in json.loads(incident.kinds).values()) == [
        "finishes_within",
        "starts_within",
    ]
    assert steps() == [("opened", "PENDING")]
    with session_scope() as session:
        ended = {"handle_code": 200, "handle_time": BEGIN + HALF_HOUR + 7 * MINUTE_MS}
        session.execute(update(JobLog).where(JobLog.id == late.id).values(**ended))
    look(BEGIN + HALF_HOUR + 8 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "kept_again")]
    assert steps() == [("opened", "PENDING"), ("kept_again", "PENDING")]


def test_the_next_instant_that_is_kept_ends_an_incident(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    look(BEGIN + HOUR - MINUTE_MS)
    success(job, BEGIN + HOUR)
    look(BEGIN + HOUR + 2 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "kept_again")]


def test_what_was_kept_by_a_clock_that_was_ahead_ends_no_incident(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    with session_scope() as session:
        session.execute(update(JobPromise).values(kept_ms=BEGIN + 10 * HOUR))
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    look(BEGIN + HALF_HOUR + 3 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]


def test_a_failure_that_was_reported_is_not_reported_as_late_again(look: Look) -> None:
    job = promising(FINISHES)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    fire_values = {"due_time": BEGIN + HALF_HOUR, "state": "ACCEPTED", "sent_ms": BEGIN + HALF_HOUR}
    log_values = {"fire_time": BEGIN + HALF_HOUR, "trigger_type": "CRON", "trigger_time": BEGIN + HALF_HOUR}
    failed = make_run(job, log=log_values, **fire_values)
    assert call_back(failed.id, 500, now_ms=BEGIN + HALF_HOUR + MINUTE_MS)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]
    assert steps() == [("opened", "SILENT")]


def test_a_schedule_that_is_switched_off_meanwhile_excuses(look: Look, clock: Clock) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    with session_scope() as session:
        switch_off(session, [job.id], clock=clock)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    assert keys() == []
    assert all_rows(PromiseCheck) == []
    with session_scope() as session:
        switch_on(session, [job.id], clock=clock)
    look(BEGIN + HOUR - MINUTE_MS)
    look(BEGIN + HOUR + 2 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HOUR}", "open")]


def test_a_changed_schedule_is_planned_anew(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - 5 * MINUTE_MS)
    with session_scope() as session:
        changed_ms = BEGIN + HALF_HOUR - 5 * MINUTE_MS
        session.execute(update(JobSpan).values(until_ms=changed_ms))
    span_of(job, BEGIN + HALF_HOUR - 5 * MINUTE_MS, "0 27 * * * ?")
    look(BEGIN + HALF_HOUR - 4 * MINUTE_MS)
    assert [check.logical_ms for check in all_rows(PromiseCheck)] == [BEGIN + HALF_HOUR - 3 * MINUTE_MS]


def test_a_changed_promise_drops_its_checks(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == job.id).values(promises=json.dumps([FINISHES])))
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    assert keys() == []
    assert [row.kind for row in all_rows(JobPromise)] == ["finishes_within"]
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == job.id).values(promises=None))
    look(BEGIN + HALF_HOUR + 3 * MINUTE_MS)
    assert all_rows(JobPromise) == []
    assert all_rows(PromiseCheck) == []


def test_promises_of_the_group_hold_for_its_jobs(look: Look) -> None:
    job = promising()
    with session_scope() as session:
        session.execute(update(Group).where(Group.id == job.job_group).values(promises=json.dumps([STARTS])))
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]


def test_an_incident_is_withdrawn_with_its_promise(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == job.id).values(promises=None))
    look(BEGIN + HALF_HOUR + 3 * MINUTE_MS)
    look(BEGIN + HALF_HOUR + 4 * MINUTE_MS)
    assert [state for _key, state in keys()] == ["withdrawn"]
    assert [step for step, _state in steps()] == ["opened"]


def test_a_frequent_schedule_shares_checks(look: Look) -> None:
    job = make_due_job(BEGIN, "FIX_RATE", "1", promises=json.dumps([STARTS]))
    history = {"job_id": job.id, "group_id": job.job_group, "is_on": 1, "from_ms": BEGIN - 1}
    schedule = {"schedule_type": "FIX_RATE", "schedule_conf": "1", "time_zone": TIME_ZONE, "anchor_ms": BEGIN}
    save(JobSpan(**history, **schedule, not_before_ms=0, not_after_ms=0))
    look(BEGIN)
    assert len(all_rows(PromiseCheck)) <= 121
    for second in range(1, 61):
        if second != 40:
            success(job, BEGIN + second * SECOND)
    look(BEGIN + 3 * MINUTE_MS)
    assert keys()[0] == (f"i:{job.id}:{BEGIN + 40 * SECOND}", "kept_again")


def test_a_run_that_takes_too_long_is_reported_while_it_hangs(look: Look) -> None:
    job = promising({"kind": "takes_at_most", "s": 60})
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    sent_ms = BEGIN + HALF_HOUR + 10
    values = {"fire_time": BEGIN + HALF_HOUR, "trigger_type": "CRON", "trigger_time": BEGIN + HALF_HOUR}
    hung = make_run(job, log=values, due_time=BEGIN + HALF_HOUR, state="ACCEPTED", sent_ms=sent_ms)
    look(sent_ms + 59 * SECOND)
    assert keys() == []
    look(sent_ms + 61 * SECOND)
    look(sent_ms + 62 * SECOND)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]
    assert only_row(Incident).log_id == hung.id
    assert call_back(hung.id, 200, now_ms=sent_ms + 90 * SECOND)
    look(sent_ms + 95 * SECOND)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "kept_again")]
    assert counts(job) == [[0, 1, 0]]


def test_what_is_usual_follows_the_zone_of_the_job(look: Look) -> None:
    job = promising({"kind": "takes_usual_times", "times": 2}, time_zone="UTC")
    look(BEGIN)
    with session_scope() as session:
        # 16:30 in UTC, half past midnight in the zone of the installation
        usual = json.dumps({"16": 10_000, "0": 1_000_000, "all": 1_000_000})
        session.execute(update(JobPromise).values(usual=usual, usual_at_ms=BEGIN))
    sent_ms = BEGIN + HALF_HOUR + 10
    values = {"fire_time": BEGIN + HALF_HOUR, "trigger_type": "CRON", "trigger_time": BEGIN + HALF_HOUR}
    make_run(job, log=values, due_time=BEGIN + HALF_HOUR, state="ACCEPTED", sent_ms=sent_ms)
    look(sent_ms + 19 * SECOND)
    assert keys() == []
    look(sent_ms + 21 * SECOND)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]


def test_a_run_that_was_too_short_is_reported(look: Look) -> None:
    job = promising({"kind": "takes_at_least", "s": 60})
    look(BEGIN)
    for number, duration_s in enumerate((5, 70)):
        instant = BEGIN + HALF_HOUR * (number + 1)
        values = {"fire_time": instant, "trigger_type": "CRON", "trigger_time": instant}
        made = make_run(job, log=values, due_time=instant, state="ACCEPTED", sent_ms=instant)
        assert call_back(made.id, 200, now_ms=instant + duration_s * SECOND)
        look(instant + duration_s * SECOND + 3 * SECOND)
        look(instant + duration_s * SECOND + 6 * SECOND)
        assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", ["open", "kept_again"][number])]


def fail(job: Job, number: int, code: int = 500) -> Millis:
    instant = BEGIN + number * HALF_HOUR
    values = {"fire_time": instant, "trigger_type": "CRON", "trigger_time": instant}
    made = make_run(job, log=values, due_time=instant, state="ACCEPTED", sent_ms=instant)
    assert call_back(made.id, code, now_ms=instant + SECOND)
    return instant + 5 * SECOND


def test_failures_in_a_row_switch_the_schedule_off(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 2, "then": "switch_off"})
    look(BEGIN)
    for number in (1, 2):
        look(fail(job, number))
    assert keys() == []
    assert only_row(Job).trigger_status == TriggerStatus.RUNNING
    look(fail(job, 3))
    first = all_rows(JobLog)[0]
    assert keys() == [(f"r:{job.id}:{first.id}", "open")]
    assert only_row(Job).trigger_status == TriggerStatus.STOPPED
    assert [entry.action for entry in all_rows(AuditEntry)] == ["job.switched_off"]
    look(fail(job, 4))
    assert len(keys()) == 1
    look(fail(job, 5, 200))
    look(BEGIN + 5 * HALF_HOUR + MINUTE_MS)
    assert keys() == [(f"r:{job.id}:{first.id}", "kept_again")]


def test_a_failed_instant_whose_retry_waits_has_not_ended(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 0}, executor_fail_retry_count=1)
    look(BEGIN)
    look(fail(job, 1))
    assert only_row(Fire).trigger_type == "RETRY"
    assert keys() == []


EVERY = {"kind": "succeeds_every", "s": 7_200}


def test_a_job_without_a_success_for_too_long_is_reported_until_the_next(look: Look) -> None:
    job = promising(EVERY)
    look(BEGIN)
    success(job, BEGIN + HALF_HOUR)
    end_ms = BEGIN + HALF_HOUR + SECOND + 2 * HOUR
    look(end_ms - SECOND)
    assert keys() == []
    for second in (3, 6, 9):
        look(end_ms + second * SECOND)
    assert keys() == [(f"w:{job.id}:1:{BEGIN + HALF_HOUR + SECOND}", "open")]
    assert counts(job) == [[1, 1, 0]]
    success(job, end_ms + MINUTE_MS // SECOND * SECOND - end_ms % SECOND)
    look(end_ms + 2 * MINUTE_MS)
    look(end_ms + 2 * MINUTE_MS + 3 * SECOND)
    assert [state for _key, state in keys()] == ["kept_again"]


def test_a_job_without_a_schedule_counts_from_its_promise(look: Look) -> None:
    job = make_job(schedule_type="NONE", promises=json.dumps([EVERY]))
    look(BEGIN)
    look(BEGIN + 2 * HOUR)
    assert keys() == []
    look(BEGIN + 2 * HOUR + 5 * SECOND)
    assert keys() == [(f"w:{job.id}:1:{BEGIN}", "open")]


def test_the_time_in_which_the_schedule_is_off_does_not_count(look: Look, clock: Clock) -> None:
    job = promising(EVERY)
    look(BEGIN)
    clock.now_ms = BEGIN + HOUR
    with session_scope() as session:
        switch_off(session, [job.id], clock=clock)
    look(BEGIN + 5 * HOUR)
    assert keys() == []
    with session_scope() as session:
        switch_on(session, [job.id], clock=clock)
    look(BEGIN + 6 * HOUR - MINUTE_MS)
    assert keys() == []
    look(BEGIN + 6 * HOUR + MINUTE_MS)
    assert len(keys()) == 1


def test_a_deleted_fire_of_a_running_schedule_is_reported(look: Look) -> None:
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    make_fire(job, due_time=BEGIN + HALF_HOUR)
    with session_scope() as session:
        session.execute(delete(Fire))
    look(BEGIN + HALF_HOUR + MINUTE_MS + 3 * SECOND)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]


def test_acknowledged_is_noted_once(look: Look) -> None:
    promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    incident_id = only_row(Incident).id
    for at_ms in (BEGIN + HOUR, BEGIN + 2 * HOUR):
        with session_scope() as session:
            acknowledge(session, incident_id, actor=ACTOR, now_ms=at_ms)
    incident = only_row(Incident)
    assert (incident.state, incident.acknowledged_by) == ("acknowledged", ACTOR.username)
    assert incident.acknowledged_ms == BEGIN + HOUR


def test_24_healthy_hours_give_no_incident(look: Look) -> None:
    job = promising(
        STARTS, FINISHES, EVERY, {"kind": "finishes_by", "at": "06:00"}, {"kind": "fails_at_most", "n": 0}
    )
    for number in range(1, 49):
        instant = BEGIN + number * HALF_HOUR
        look(instant - MINUTE_MS)
        fail(job, number, 200)
        for minute in (1, 2, 6, 15):
            look(instant + minute * MINUTE_MS)
    assert keys() == []
    assert all(kept and not broken for kept, broken, _excused in counts(job))
