"""Calendars: who sets them, which versions are kept, what is imported, and when one is not deleted."""

import json
from datetime import date
from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.drafts import CalendarDraft
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, Conflict, InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.calendar import CalendarVersion
from app.services.calendars import calendars
from app.services.calendars.calendars import NamedCalendar
from app.services.calendars.days import CountryDays
from app.services.calendars.lookup import StoredCalendars
from app.store.calendars import current_book
from tests.support.factories import T0, all_rows, make_group, make_job
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
CN = CalendarDraft(days={"2026-10-01": "holiday"}, names={"2026-10-01": "国庆节"}, valid_until="2026-12-31")
USER = Actor(user_id=2, username="bob", is_admin=False, rights={1: frozenset({Right.VIEW, Right.EDIT})})


def put(
    name: str, draft: CalendarDraft = CN, *, actor: Actor = ADMIN, now_ms: Millis = T0, loaded: str = ""
) -> NamedCalendar:
    with session_scope() as session:
        return calendars.put_calendar(session, name, draft, actor=actor, clock=lambda: now_ms, loaded=loaded)


def take(name: str, imported: CountryDays, *, actor: Actor = ADMIN, **options: Any) -> NamedCalendar:
    with session_scope() as session:
        return calendars.import_days(session, name, imported, actor=actor, clock=lambda: T0, **options)


def remove(name: str, *, actor: Actor = ADMIN, loaded: str = "") -> None:
    with session_scope() as session:
        calendars.remove_calendar(session, name, actor=actor, clock=lambda: T0, loaded=loaded)


def names(**wanted: Any) -> list[str]:
    with read_scope() as session:
        return [row.name for row in calendars.list_calendars(session, actor=USER, **wanted)]


def days_of(year: int, *names: str) -> CountryDays:
    days = {date(year, 10, number): name for number, name in enumerate(names, 1)}
    kinds = dict.fromkeys(days, DayKind.HOLIDAY)
    return CountryDays(kinds, days, frozenset({7}), date(year, 12, 31))


@every_database
def test_a_calendar_is_made_changed_listed_and_deleted() -> None:
    made = put("  cn ")
    assert (made.name, made.number, made.from_ms, made.author, made.jobs) == ("cn", 1, T0 + 1, "ann", 0)
    assert put("cn", now_ms=T0 + 1).number == 1, "it says that already"
    put("Cn")
    changed = put("cn", CalendarDraft(days={"2026-10-01": "holiday", "2026-10-10": "workday"}), now_ms=T0 + 2)
    assert (changed.id, changed.number, changed.from_ms) == (made.id, 2, T0 + 3)
    assert names() == sorted(["Cn", "cn"])
    assert names(after="Cn", limit=1) == ["cn"]
    with read_scope() as session:
        listed = calendars.list_versions(session, changed)
        assert [(row.number, row.from_ms, len(row.calendar.days)) for row in listed] == [
            (2, T0 + 3, 2),
            (1, T0 + 1, 1),
        ]
        book = current_book.refresh(session)
        assert book.calendars["cn"][-1].calendar.kind_of(date(2026, 10, 10)) is DayKind.WORKDAY
    remove("cn")
    assert names() == ["Cn"]
    assert len(all_rows(CalendarVersion, name="cn")) == 2, "the past goes by them"
    with pytest.raises(NotFound):
        remove("cn")


def test_only_administrators_change_calendars_and_others_read_them() -> None:
    put("cn")
    for change in (lambda: put("cn", actor=USER), lambda: remove("cn", actor=USER)):
        with pytest.raises(PermissionDenied):
            change()
    with pytest.raises(PermissionDenied):
        take("cn", days_of(2027, "国庆节"), actor=USER)
    with read_scope() as session:
        assert calendars.get_calendar(session, "cn", actor=USER).number == 1
        with pytest.raises(NotFound):
            calendars.get_calendar(session, "CN", actor=USER)


def test_a_change_is_audited_with_numbers_of_days() -> None:
    put("cn")
    put("cn", CalendarDraft(days={"2026-10-02": "holiday"}, unknown="holiday"))
    remove("cn")
    entries = [(row.action, json.loads(row.changes or "")) for row in all_rows(AuditEntry)]
    assert entries[1] == (
        "calendar.set",
        {
            "name": "cn",
            "valid_until": ["2026-12-31", None],
            "unknown": ["weekday", "holiday"],
            "days_changed": 2,
        },
    )
    assert [action for action, _ in entries] == ["calendar.set", "calendar.set", "calendar.remove"]
    assert entries[0][1]["holidays"] == [None, 1]


def test_a_calendar_that_jobs_name_is_not_deleted() -> None:
    put("cn")
    group = make_group()
    seen = make_job(job_group=group.id, job_desc="pay", calendar=json.dumps({"name": "cn", "on": "workdays"}))
    make_job(job_desc="other", calendar=json.dumps({"name": "CN"}))
    with pytest.raises(Conflict, match=rf"pay \({seen.id}\)$"):
        remove("cn")
    reader = Actor(user_id=2, username="bob", is_admin=False, rights={group.id + 1: frozenset({Right.VIEW})})
    with read_scope() as session:
        assert calendars.get_calendar(session, "cn", actor=USER).jobs == 1
        assert calendars.list_jobs(session, "cn", actor=reader) == []
        assert [job.id for job in calendars.list_jobs(session, "cn", actor=ADMIN)] == [seen.id]


def test_a_change_of_something_else_is_noticed() -> None:
    made = put("cn")
    loaded = fingerprint(calendars.state_of(made))
    put("cn", CalendarDraft())
    with pytest.raises(ChangedMeanwhile):
        put("cn", loaded=loaded)
    with pytest.raises(ChangedMeanwhile):
        remove("cn", loaded=loaded)


def test_calendars_are_refused_beside_a_java_admin() -> None:
    with pytest.raises(InvalidInput, match="XXL_JOB_SHARED_WITH_JAVA"):
        put("cn", CalendarDraft(readable_by_java=True))
    with pytest.raises(InvalidInput, match="XXL_JOB_SHARED_WITH_JAVA"):
        take("cn", days_of(2026, "国庆节"), readable_by_java=True)


def test_imported_days_take_the_place_of_those_of_their_years() -> None:
    made = take("cn", days_of(2026, "国庆节", "x" * 70))
    assert (made.calendar.weekend, made.calendar.valid_until) == ({7}, date(2026, 12, 31))
    assert made.calendar.names == {date(2026, 10, 1): "国庆节", date(2026, 10, 2): "x" * 64}
    put("cn", CalendarDraft(weekend=["sunday"], days={"2026-05-01": "holiday", "2025-05-01": "workday"}))
    grown = take("cn", days_of(2026, "国庆节")).calendar
    assert sorted(grown.days) == [date(2025, 5, 1), date(2026, 10, 1)]
    assert grown.valid_until == date(2026, 12, 31)
    assert take("cn", days_of(2027, "国庆节")).calendar.valid_until == date(2027, 12, 31)
    assert take("cn", days_of(2029, "国庆节")).calendar.valid_until == date(2027, 12, 31), "2028 is unknown"
    replaced = take("cn", days_of(2030, "国庆节"), replace=True).calendar
    assert (list(replaced.days), replaced.valid_until) == ([date(2030, 10, 1)], date(2030, 12, 31))


@every_database
def test_a_name_that_no_database_has_is_not_found() -> None:
    with read_scope() as session, pytest.raises(NotFound):
        calendars.get_calendar(session, "a\x00b", actor=ADMIN)
    with pytest.raises(NotFound):
        remove("a\x00b")
    with read_scope() as session:
        assert StoredCalendars(session).find("a\x00b") is None
