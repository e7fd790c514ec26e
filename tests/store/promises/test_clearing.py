"""Ends of promises and incidents: with their jobs, by retention, and a new beginning after a restore."""

import pytest

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.database.engine import session_scope, transact
from app.domain.access.permissions import system_actor
from app.models.promise import Incident, IncidentMessage, JobPromise, PromiseCheck
from app.services.jobs import jobs
from app.store.promises import clearing
from tests.support.factories import T0, all_rows, make_job, only_row, save

pytestmark = pytest.mark.usefixtures("database")
NOW: Millis = T0 + HOUR_MS


def make_incident(job_id: int, number: int, **more: object) -> Incident:
    return save(
        Incident(
            incident_key=f"i:{job_id}:{number}",
            job_id=job_id,
            group_id=1,
            logical_ms=T0,
            **{"state": "open", "opened_ms": T0, "kinds": "{}", **more},
        )
    )


def make_message(incident: Incident) -> None:
    ids = {"incident_id": incident.id, "job_id": incident.job_id}
    save(IncidentMessage(**ids, step="opened", created_ms=T0, next_ms=T0))


def make_promise(kind: str, definition: str, *checks: tuple[Millis, Millis]) -> JobPromise:
    """Store a promise with checks of these instants and due times."""
    number = len(all_rows(JobPromise)) + 1
    for logical_ms, due_ms in checks:
        times = {"logical_ms": logical_ms, "until_ms": logical_ms, "due_ms": due_ms}
        save(PromiseCheck(job_id=1, number=number, **times))
    return save(
        JobPromise(
            job_id=1, number=number, kind=kind, definition=definition, since_ms=T0, planned_until_ms=T0
        )
    )


def test_the_incidents_of_a_deleted_job_are_withdrawn() -> None:
    job, other = make_job(), make_job()
    for number, state in enumerate(("open", "acknowledged", "kept_again")):
        make_incident(job.id, number, state=state, ended_ms=T0 if state == "kept_again" else 0)
    make_incident(other.id, 0)
    with session_scope() as session:
        jobs.remove_job(session, job.id, actor=system_actor("test"), now_ms=NOW)
    assert [(row.state, row.ended_ms) for row in all_rows(Incident)] == [
        ("withdrawn", NOW),
        ("withdrawn", NOW),
        ("kept_again", T0),
        ("open", 0),
    ]


def test_incidents_that_ended_long_ago_are_deleted_in_parts() -> None:
    times = {"opened_ms": T0 - HOUR_MS, "ended_ms": T0 - 1}
    old = [make_incident(1, number, state="kept_again", **times) for number in range(3)]
    kept = [
        make_incident(2, 1, opened_ms=0),
        make_incident(2, 2, state="acknowledged", opened_ms=0),
        make_incident(2, 3, state="withdrawn", opened_ms=0, ended_ms=T0),
    ]
    for incident in (*old, *kept):
        make_message(incident)
    counts = [
        transact(lambda session: clearing.delete_ended(session, before_ms=T0, limit=2)) for _ in range(3)
    ]
    assert counts == [2, 1, 0]
    assert [row.id for row in all_rows(Incident)] == [row.id for row in kept]
    assert [row.incident_id for row in all_rows(IncidentMessage)] == [row.id for row in kept]


def test_what_was_due_before_a_restore_is_not_looked_at() -> None:
    checks = ((T0, NOW), (NOW, NOW + MINUTE_MS), (NOW + 1, NOW + 1 + MINUTE_MS))
    make_promise("starts_within", '{"kind":"starts_within","s":60}', *checks)
    transact(lambda session: clearing.restart_promises(session, now_ms=NOW))
    check = only_row(PromiseCheck)
    assert (check.logical_ms, check.due_ms) == (NOW + 1, NOW + 1 + MINUTE_MS)
    assert only_row(JobPromise).planned_until_ms == NOW


def test_checks_that_are_planned_beyond_a_restore_are_not_planned_again() -> None:
    promise = make_promise("starts_within", '{"kind":"starts_within","s":60}')
    with session_scope() as session:
        session.get_one(JobPromise, promise.id).planned_until_ms = NOW + MINUTE_MS
    transact(lambda session: clearing.restart_promises(session, now_ms=NOW))
    assert only_row(JobPromise).planned_until_ms == NOW + MINUTE_MS


def test_a_success_every_so_often_has_its_whole_time_after_a_restore() -> None:
    make_promise("succeeds_every", '{"kind":"succeeds_every","s":90}', (0, T0))
    transact(lambda session: clearing.restart_promises(session, now_ms=NOW))
    assert only_row(PromiseCheck).due_ms == NOW + 90_000


def test_messages_that_waited_in_a_backup_are_not_sent_after_its_restore() -> None:
    make_message(make_incident(1, 0))
    transact(lambda session: clearing.restart_promises(session, now_ms=NOW))
    assert only_row(IncidentMessage).state == "SILENT"
    assert only_row(Incident).state == "open"
