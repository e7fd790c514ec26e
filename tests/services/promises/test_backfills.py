"""Promises and backfills: runs of these, and their retries, count for none; a success ends an incident."""

import json
from collections.abc import Callable

import pytest

from app.clock import MINUTE_MS, Millis
from app.domain.enums import TriggerStatus
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import Incident, JobPromise, PromiseCheck
from app.services.promises.watch import PromiseWatch
from tests.pipeline.steps import call_back
from tests.services.promises.test_watch import BEGIN, EVERY, HALF_HOUR, HOUR, SECOND, Clock, promising
from tests.support.factories import all_rows, make_log, make_run, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")
INSTANT: Millis = BEGIN + HALF_HOUR
Look = Callable[[Millis], None]


@pytest.fixture
def look(database: str) -> Look:
    clock = Clock()
    watch = PromiseWatch(node="one", clock=clock)

    def look_at(at_ms: Millis) -> None:
        clock.now_ms = at_ms
        watch.tick(at_ms)

    return look_at


def backfilled(job: Job, at_ms: Millis, *, source: JobLog | None = None, code: int = 0) -> JobLog:
    """Return a run of a backfill for INSTANT, or a retry of one, that has ended with a code."""
    kind = {"trigger_type": "RETRY", "source_log_id": source.id} if source else {"trigger_type": "BACKFILL"}
    ended = {"handle_code": code, "handle_time": at_ms + SECOND} if code else {}
    return make_log(job, trigger_time=at_ms, logical_ms=INSTANT, trigger_code=200, **ended, **kind)


@every_database
def test_the_end_of_a_run_of_a_backfill_is_no_check(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 0}, {"kind": "takes_at_least", "s": 60})
    look(BEGIN)
    kinds = [{"trigger_type": "BACKFILL"}, {"trigger_type": "RETRY"}]
    for kind in kinds:
        first = all_rows(JobLog)
        source = {"source_log_id": first[0].id} if first else {}
        values = {"trigger_time": INSTANT, "logical_ms": INSTANT, **kind, **source}
        run = make_run(job, log=values, due_time=INSTANT, sent_ms=INSTANT, trigger_type=kind["trigger_type"])
        assert call_back(run.id, 500, now_ms=INSTANT + SECOND)
    assert [check for check in all_rows(PromiseCheck) if check.log_id] == []
    look(INSTANT + MINUTE_MS)
    assert all_rows(Incident) == []


@every_database
def test_failures_of_backfills_are_in_no_row(look: Look) -> None:
    job = promising({"kind": "fails_at_most", "n": 1})
    look(BEGIN)
    first = backfilled(job, BEGIN + MINUTE_MS, code=500)
    backfilled(job, BEGIN + 2 * MINUTE_MS, source=first, code=500)
    values = {"fire_time": INSTANT + HALF_HOUR, "trigger_type": "CRON", "trigger_time": INSTANT + HALF_HOUR}
    run = make_run(job, log=values, due_time=INSTANT + HALF_HOUR, sent_ms=INSTANT + HALF_HOUR)
    assert call_back(run.id, 500, now_ms=INSTANT + HALF_HOUR + SECOND)
    look(INSTANT + HALF_HOUR + MINUTE_MS)
    assert (all_rows(Incident), only_row(Job).trigger_status) == ([], TriggerStatus.RUNNING)


@every_database
def test_a_success_of_a_backfill_is_none_of_a_promise(look: Look) -> None:
    job = promising(EVERY)
    look(BEGIN)
    failed = backfilled(job, BEGIN + HOUR, code=500)
    backfilled(job, BEGIN + HOUR + MINUTE_MS, source=failed, code=200)
    backfilled(job, BEGIN + HOUR + 2 * MINUTE_MS, code=200)
    look(BEGIN + 2 * HOUR + 5 * SECOND)
    assert [incident.state for incident in all_rows(Incident)] == ["open"]


@every_database
def test_a_retry_of_a_backfill_keeps_no_promise_but_ends_the_incident(look: Look) -> None:
    job = promising({"kind": "finishes_within", "s": 300})
    look(INSTANT - MINUTE_MS)
    failed = backfilled(job, INSTANT + SECOND, code=500)
    look(INSTANT + 5 * MINUTE_MS - SECOND)
    backfilled(job, INSTANT + MINUTE_MS, source=failed, code=200)
    for second in (3, 6):
        look(INSTANT + 5 * MINUTE_MS + second * SECOND)
    [row] = all_rows(JobPromise, job_id=job.id)
    assert [sum(day) for day in zip(*json.loads(row.days or "{}").values(), strict=True)] == [0, 1, 0]
    look(INSTANT + 6 * MINUTE_MS)
    assert [incident.state for incident in all_rows(Incident)] == ["kept_again"]


@pytest.mark.parametrize("kind", ["BACKFILL", "RETRY"])
def test_a_backfill_that_takes_too_long_is_no_incident(look: Look, kind: str) -> None:
    job = promising({"kind": "takes_at_most", "s": 60})
    look(BEGIN)
    source = {"source_log_id": backfilled(job, BEGIN, code=500).id} if kind == "RETRY" else {}
    log = {"trigger_type": kind, "trigger_time": BEGIN, "logical_ms": INSTANT, **source}
    make_run(job, log=log, due_time=BEGIN, sent_ms=BEGIN, trigger_type=kind)
    look(BEGIN + 5 * MINUTE_MS)
    assert all_rows(Incident) == []
