"""Calendars and blackouts that another program has written wrongly, and a database that cannot be read."""

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.clock import HOUR_MS
from app.database.engine import read_scope, session_scope
from app.domain.calendars.rule_book import RuleBook
from app.models.calendar import CalendarVersion, JobBlackout, RuleChange
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.calendars.changes import Change
from app.pipeline.scan import scan
from app.store.calendars import current_book, rules
from tests.pipeline.calendar_steps import (
    WORKDAYS,
    ZONE,
    add_blackout,
    change_rules,
    pass_time,
    put_calendar,
    ruled_job,
)
from tests.support.factories import T0, all_rows, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


def spoil(model: type, **values: object) -> None:
    """Write into a row as another program does, and have all read it."""
    with session_scope() as session:
        row = session.query(model).one()
        for name, value in values.items():
            setattr(row, name, value)
        session.query(RuleChange).one().number += 1


@pytest.mark.parametrize(
    "values",
    [
        {"days": "{"},
        {"days": "[1]"},
        {"days": '{"2024-02-30": "holiday", "x": "y", "2024-05-02": 7}'},
        {"weekend": "6,x"},
        {"valid_until": "soon"},
        {"unknown": "maybe"},
    ],
)
def test_a_calendar_that_cannot_be_read_stops_no_job(values: dict[str, object]) -> None:
    put_calendar({})
    job = ruled_job(T0 + 1_000, "CRON", "* * * * * ?", calendar=WORKDAYS)
    other = ruled_job(T0 + 1_000, "FIX_RATE", "1")
    spoil(CalendarVersion, **values)

    pass_time(T0 + 1_000)

    assert {run.job_id for run in all_rows(JobLog)} == {job.id, other.id}
    assert {only_row(Job, id=each.id).trigger_status for each in (job, other)} == {1}


@pytest.mark.parametrize("values", [{"cron": "every day"}, {"zone": "Mars/Base"}, {"duration_s": 0}])
def test_a_blackout_that_cannot_be_read_is_never_on(values: dict[str, object]) -> None:
    hour_ms = T0 - T0 % HOUR_MS + HOUR_MS
    job = ruled_job(hour_ms, "CRON", "* * * * * ?")
    add_blackout(T0, None, cron="0 0 * * * ?", duration_s=600)
    with session_scope() as session:
        session.get_one(Job, job.id).trigger_next_time = hour_ms
    spoil(JobBlackout, **values)

    pass_time(hour_ms)

    assert only_row(Job, id=job.id).trigger_status == 1
    assert all_rows(JobLog)


def test_a_read_that_fails_once_stops_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    add_blackout(T0 + HOUR_MS, None)
    job = ruled_job(T0 + 1_000, "CRON", "* * * * * ?")
    current_book.reset()
    errors, read = [OperationalError("SELECT", {}, Exception("connection lost"))], rules.read_book

    def fail_once(session: Session) -> RuleBook:
        if errors:
            raise errors.pop()
        return read(session)

    monkeypatch.setattr(rules, "read_book", fail_once)
    with pytest.raises(OperationalError):
        scan(node="one", zone=ZONE, now_ms=T0)

    assert only_row(Job, id=job.id).trigger_status == 1


def test_a_book_is_read_once_although_it_has_changed_since_the_jobs_were_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_blackout(T0 + HOUR_MS, None)
    former = only_row(RuleChange).number
    add_blackout(T0 + 2 * HOUR_MS, None)
    current_book.reset()
    reads, read = list[int](), rules.read_book

    def count(session: Session) -> RuleBook:
        reads.append(1)
        return read(session)

    monkeypatch.setattr(rules, "read_book", count)

    books = {id(current_book.of_number(former)) for _ in range(5)}

    assert (len(books), len(reads)) == (1, 1)


def test_a_change_reads_the_book_as_often_for_many_jobs_of_a_fixed_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, read = list[int](), rules.read_book

    def count(session: Session) -> RuleBook:
        reads.append(1)
        return read(session)

    monkeypatch.setattr(rules, "read_book", count)
    for _ in range(4):
        ruled_job(T0 + 60_000, "FIX_RATE", "60")
    add_blackout(T0 + HOUR_MS, None)
    reads.clear()

    add_blackout(T0 + 2 * HOUR_MS, None)

    assert len(reads) <= 3


@every_database
def test_former_versions_of_a_calendar_are_not_read() -> None:
    for hour in range(4):
        put_calendar({f"2024-05-0{hour + 1}": "holiday"}, now_ms=T0 + hour * HOUR_MS)
    put_calendar({}, name="new", now_ms=T0 + 3 * HOUR_MS)

    with read_scope() as session:
        history = rules.read_history(session, ["cn", "new"], since_ms=T0 + 2 * HOUR_MS)

    begins = {name: [each.from_ms for each in versions] for name, versions in history.calendars.items()}
    assert begins == {
        "cn": [T0 + HOUR_MS + 1, T0 + 2 * HOUR_MS + 1, T0 + 3 * HOUR_MS + 1],
        "new": [T0 + 3 * HOUR_MS + 1],
    }


def test_a_change_that_is_rolled_back_leaves_no_book_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    add_blackout(T0 + HOUR_MS, None)
    number = current_book.current().number
    monkeypatch.setattr(current_book, "CHECK_S", 1_000.0)

    def fail(session: Session, change: Change) -> None:
        session.add(JobBlackout(from_ms=T0, until_ms=None, reason="x", created_ms=T0))
        change.finish(session)
        current_book.refresh(session)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        change_rules(fail)

    assert current_book.current().number == number
