"""Watch over promises while rows disappear or change under it: cleared runs, lost checks, edited jobs."""

import json
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import delete, update

from app.clock import DAY_MS, MINUTE_MS
from app.database.engine import session_scope
from app.domain.completeness.expected_instants import Interval, expected_instants
from app.domain.completeness.spans import Span
from app.domain.enums import TriggerStatus
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import Incident, JobPromise, PromiseCheck
from app.services.promises.incidents import Breach, end_incidents, open_incidents
from app.services.promises.watch import PromiseWatch
from app.store.runs.clearing import delete_runs
from tests.pipeline.steps import call_back
from tests.services.promises.test_watch import (
    BEGIN,
    EVERY,
    FINISHES,
    HALF_HOUR,
    HOUR,
    SECOND,
    STARTS,
    Clock,
    Look,
    fail,
    keys,
    promising,
    run,
    steps,
    success,
)
from tests.support.factories import all_rows, make_log, make_run, only_row
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def look(database: str, clock: Clock) -> Look:
    """One round of one node at a time."""
    watch = PromiseWatch(node="one", clock=clock)

    def look_at(at_ms: int) -> None:
        clock.now_ms = at_ms
        watch.tick(at_ms)

    return look_at


def give(job: Job, *promises: dict[str, object]) -> None:
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == job.id).values(promises=json.dumps(promises)))


def clear_runs() -> None:
    with session_scope() as session:
        session.execute(delete(JobLog))


def test_a_success_whose_run_was_cleared_still_counts(look: Look) -> None:
    job = promising(EVERY)
    look(BEGIN)
    for number in range(1, 9):
        success(job, BEGIN + number * HALF_HOUR)
        look(BEGIN + number * HALF_HOUR + MINUTE_MS)
    look(BEGIN + 5 * HOUR + 2 * MINUTE_MS)
    clear_runs()
    last_ms = BEGIN + 8 * HALF_HOUR + SECOND
    look(last_ms + 2 * HOUR - MINUTE_MS)
    assert keys() == []
    look(last_ms + 2 * HOUR + MINUTE_MS)
    assert len(keys()) == 1


def test_a_window_has_one_incident_although_runs_are_cleared(look: Look) -> None:
    job = promising(EVERY)
    look(BEGIN)
    success(job, BEGIN + HALF_HOUR)
    look(BEGIN + HOUR)
    look(BEGIN + 3 * HOUR)
    assert len(keys()) == 1
    clear_runs()
    look(BEGIN + 4 * HOUR)
    assert [state for _key, state in keys()] == ["open"]


def test_a_success_every_so_often_is_watched_although_its_check_was_lost(look: Look) -> None:
    promising(EVERY)
    look(BEGIN)
    with session_scope() as session:
        session.execute(delete(PromiseCheck))
    look(BEGIN + HOUR)
    look(BEGIN + 3 * HOUR)
    assert len(keys()) == 1


def test_a_promise_that_was_away_for_a_moment_is_watched(look: Look) -> None:
    job = promising(EVERY)
    look(BEGIN)
    look(BEGIN + 3 * HOUR)
    assert [state for _key, state in keys()] == ["open"]
    give(job)
    look(BEGIN + 3 * HOUR + 4 * SECOND)
    give(job, EVERY)
    success(job, BEGIN + 3 * HOUR + MINUTE_MS)
    look(BEGIN + 3 * HOUR + 2 * MINUTE_MS)
    look(BEGIN + 3 * HOUR + 4 * MINUTE_MS)
    assert [state for _key, state in keys()] == ["kept_again"]
    look(BEGIN + 6 * HOUR)
    assert len(keys()) == 2


def test_a_promise_that_was_taken_away_switches_nothing_off(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 0, "then": "switch_off"})
    look(BEGIN + HALF_HOUR)
    give(job)
    look(fail(job, 1))
    assert only_row(Job).trigger_status == TriggerStatus.RUNNING
    assert keys() == []


def test_a_job_with_an_unknown_zone_stops_no_other(look: Look) -> None:
    job = promising(STARTS)
    other = promising({"kind": "finishes_by", "at": "06:00"}, {"kind": "takes_usual_times", "times": 3})
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == other.id).values(time_zone="Mars/Phobos"))
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    assert keys() == [(f"i:{job.id}:{BEGIN + HALF_HOUR}", "open")]


def test_shards_that_fail_in_a_row_are_reported(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 2})
    look(BEGIN)
    for number in range(1, 4):
        instant = BEGIN + number * HALF_HOUR
        for shard in range(80):
            run(job, instant, handle_code=500, handle_time=instant, executor_sharding_param=f"{shard}/81")
        values = {"fire_time": instant, "trigger_type": "CRON", "trigger_time": instant}
        made = make_run(
            job, log=values | {"executor_sharding_param": "80/81"}, due_time=instant, state="ACCEPTED",
            sent_ms=instant,
        )  # fmt: skip
        assert call_back(made.id, 500, now_ms=instant + SECOND)
        look(instant + 5 * SECOND)
        assert len(keys()) == (number == 3)


def test_a_series_of_failures_is_reported_although_each_failure_is(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 1, "then": "switch_off"})
    look(BEGIN)
    for number in (1, 2):
        look(fail(job, number))
    assert len(keys()) == 1
    assert steps() == [("opened", "PENDING")]


def test_the_first_failure_is_reported_once(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 0})
    look(BEGIN)
    look(fail(job, 1))
    assert len(keys()) == 1
    assert steps() == [("opened", "SILENT")]


def test_a_run_by_hand_for_the_instant_ends_its_incident(look: Look) -> None:
    job = promising(FINISHES)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    assert [state for _key, state in keys()] == ["open"]
    at_ms = BEGIN + HALF_HOUR + 8 * MINUTE_MS
    make_log(
        job,
        trigger_type="MANUAL",
        logical_ms=BEGIN + HALF_HOUR,
        trigger_time=at_ms,
        handle_code=200,
        handle_time=at_ms + SECOND,
    )
    look(at_ms + 5 * SECOND)
    assert [state for _key, state in keys()] == ["kept_again"]


def test_all_incidents_are_looked_at_however_many_do_not_end(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.promises.incidents.ROUND_MAX", 2)
    first = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    others = [promising(STARTS) for _ in range(3)]
    look(BEGIN + HOUR - MINUTE_MS)
    success(first, BEGIN + HOUR)
    look(BEGIN + HOUR + 2 * MINUTE_MS)
    for second in range(0, 20, 2):
        look(BEGIN + HOUR + 3 * MINUTE_MS + second * SECOND)
    states = {row.job_id: row.state for row in all_rows(Incident)}
    assert states == {first.id: "kept_again"} | {job.id: "open" for job in others}


def test_the_instants_of_a_long_stop_are_not_listed(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    job = promising({"kind": "finishes_by", "at": "06:00"})
    look(BEGIN)
    instants: list[int] = []

    def noted(spans: Sequence[Span], interval: Interval) -> Iterator[int]:
        for instant in expected_instants(spans, interval):
            instants.append(instant)
            yield instant

    monkeypatch.setattr("app.services.promises.planning.expected_instants", noted)
    look(BEGIN + 90 * DAY_MS)
    look(BEGIN + 90 * DAY_MS + 5 * SECOND)
    assert len(instants) < 48 * 4
    assert (f"i:{job.id}:{BEGIN + HALF_HOUR}", "open") in keys()
    assert len(keys()) <= 2


def test_many_incidents_cost_no_statement_each(look: Look) -> None:
    numbers = []
    for count in (3, 30):
        at_ms = BEGIN + count * HOUR
        jobs = [promising(STARTS) for _ in range(count)]
        breaches = [Breach(f"i:{job.id}:{at_ms}", job.id, 1, json.dumps(STARTS), at_ms) for job in jobs]
        with session_scope() as session, statements() as executed:
            open_incidents(session, breaches, now_ms=at_ms)
            end_incidents(session, now_ms=at_ms)
        numbers.append(len(executed))
    assert numbers[0] == numbers[1]
    assert {state for _key, state in keys()} == {"withdrawn"}


def test_a_zone_that_is_changed_meanwhile_moves_the_time(look: Look) -> None:
    job = promising({"kind": "finishes_by", "at": "01:00"})
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    look(BEGIN + HALF_HOUR + MINUTE_MS)
    with session_scope() as session:
        session.execute(update(Job).where(Job.id == job.id).values(time_zone="UTC"))
    look(BEGIN + HOUR + MINUTE_MS)
    assert keys() == []
    look(BEGIN + 9 * HOUR + MINUTE_MS)
    assert (f"i:{job.id}:{BEGIN + HALF_HOUR}", "open") in keys()


def test_an_instant_whose_run_was_cleared_is_not_reported(look: Look) -> None:
    job, other = promising(FINISHES), promising(FINISHES)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    made = success(job, BEGIN + HALF_HOUR)
    with session_scope() as session:
        delete_runs(session, [made.id], is_clearing=True)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    assert [key for key, _state in keys()] == [f"i:{other.id}:{BEGIN + HALF_HOUR}"]


def test_rows_that_another_program_has_spoiled_stop_no_others(look: Look) -> None:
    usual = {"kind": "takes_usual_times", "times": 2}
    spoiled = [promising(STARTS, FINISHES, EVERY, usual) for _ in range(3)]
    job = promising(STARTS)
    look(BEGIN + HALF_HOUR - MINUTE_MS)
    for of_job, values in zip(
        spoiled, ({"days": "["}, {"usual": "{"}, {"days": '{"2024-05-02":[]}'}), strict=True
    ):
        with session_scope() as session:
            session.execute(update(JobPromise).where(JobPromise.job_id == of_job.id).values(**values))
    instant = BEGIN + HALF_HOUR
    log_values = {"fire_time": instant, "trigger_type": "CRON", "trigger_time": instant}
    for of_job in spoiled:
        made = make_run(of_job, log=log_values, due_time=instant, state="ACCEPTED", sent_ms=instant)
        make_run(of_job, log=log_values, due_time=instant, state="ACCEPTED", sent_ms=instant)
        assert call_back(made.id, 500, now_ms=instant + SECOND)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS)
    assert (f"i:{job.id}:{BEGIN + HALF_HOUR}", "open") in keys()
    with session_scope() as session:
        session.execute(update(Incident).where(Incident.job_id != job.id).values(kinds="["))
        session.execute(update(JobPromise).where(JobPromise.job_id != job.id).values(definition="{"))
    success(job, BEGIN + HALF_HOUR)
    look(BEGIN + HALF_HOUR + 2 * MINUTE_MS + 4 * SECOND)
    look(BEGIN + HALF_HOUR + 6 * MINUTE_MS)
    assert (f"i:{job.id}:{BEGIN + HALF_HOUR}", "kept_again") in keys()
