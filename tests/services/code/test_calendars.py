"""Calendars as code: made with the jobs that name them, changed, adopted, drifted, pruned and undone."""

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.drafts import CalendarDraft
from app.domain.code.plan import Action
from app.errors import Conflict, InvalidInput, PermissionDenied
from app.models.job import Job
from app.services.calendars import calendars
from app.services.code.drift import find_drift
from app.services.code.export import export_document
from app.services.code.importing import ImportOptions, prepare_import, write_import
from app.services.code.job_file import read_file
from app.services.code.plan import plan_document
from app.services.code.undo import prepare_undo, undo_apply
from app.services.code.undo_plans import UndoRequest
from tests.services.code.steps import ADMIN, CLOSE, apply, plan, request
from tests.support.factories import T0, make_group, only_row

pytestmark = pytest.mark.usefixtures("database")

#: T0 is a Wednesday, 2024-05-01 03:04:05 UTC
DAY_MS = 86_400_000
NINE = T0 // DAY_MS * DAY_MS + 9 * 3_600_000
DAILY = {"schedule_type": "CRON", "schedule": "0 0 9 * * ?", "time_zone": "UTC", "enabled": True}
CN = {"days": {"2024-05-01": "holiday"}, "names": {"2024-05-01": "劳动节"}, "valid_until": "2024-12-31"}
KEY = "demo-executor/close"
JOB = {**CLOSE, **DAILY, "calendar": {"name": "cn"}}


def document(*, cn: Any = CN, **jobs: Any) -> dict[str, Any]:
    return {"calendars": {"cn": cn} if cn is not None else {}, "jobs": jobs or {KEY: JOB}}


def next_day() -> int:
    return (only_row(Job).trigger_next_time - NINE) // DAY_MS


def kinds() -> dict[date, DayKind]:
    with read_scope() as session:
        return dict(calendars.get_calendar(session, "cn", actor=ADMIN).calendar.days)


def test_a_calendar_is_made_before_the_jobs_that_name_it() -> None:
    make_group()
    shown = plan(document())
    assert [(item.kind, item.key, item.action) for item in shown.objects] == [
        ("calendar", "cn", Action.CREATE),
        ("job", KEY, Action.CREATE),
    ]
    fields = {change.field: change.new for change in shown.objects[0].fields}
    assert fields == {"days": 1, "names": 1, "valid_until": "2024-12-31"}
    assert shown.objects[1].next_after is not None
    assert shown.objects[1].next_after[0] == NINE + DAY_MS
    apply(document())
    assert next_day() == 1
    assert plan(document()).is_empty


def test_a_changed_calendar_shows_the_days_that_differ_and_plans_its_jobs() -> None:
    make_group()
    apply(document())
    more = {**CN, "days": {"2024-05-01": "holiday", "2024-05-02": "holiday"}}
    (shown,) = plan(document(cn=more)).objects
    assert [(change.field, change.old, change.new) for change in shown.fields] == [
        ("days", {}, {"2024-05-02": "holiday"})
    ]
    result = apply(document(cn=more))
    assert next_day() == 2
    undo(result.apply_id)
    assert (next_day(), list(kinds())) == (1, [date(2024, 5, 1)])


def test_a_calendar_of_the_console_is_adopted_and_its_drift_shown() -> None:
    put("cn", days={"2024-05-01": "holiday"}, unknown="holiday")
    apply({"calendars": {"cn": {"unknown": "holiday"}}})
    assert plan({"calendars": {"cn": {"unknown": "holiday"}}}).is_empty
    put("cn", unknown="workday")
    with read_scope() as session:
        (drift,) = find_drift(session, actor=ADMIN)
        exported = export_document(session, actor=ADMIN).document["calendars"]
    assert [(change.field, change.old, change.new) for change in drift.fields] == [
        ("unknown", "holiday", "workday")
    ]
    expected = {"weekend": ["saturday", "sunday"], "days": {}, "names": {}, "valid_until": None}
    assert exported == {"cn": {**expected, "unknown": "workday"}}


def test_a_calendar_is_pruned_and_made_again_by_an_undo() -> None:
    make_group()
    apply(document())
    with pytest.raises(InvalidInput, match="calendar:cn is to be deleted"):
        plan(document(cn=None), prune=["calendar:cn"])
    with pytest.raises(Conflict, match="Jobs use this calendar"):
        apply({}, prune=["calendar:cn"])
    result = apply({}, prune=["calendar:cn", KEY])
    with read_scope() as session:
        assert calendars.list_calendars(session, actor=ADMIN) == []
    undo(result.apply_id)
    assert (kinds(), next_day()) == ({date(2024, 5, 1): DayKind.HOLIDAY}, 1)
    assert plan(document()).is_empty


def test_wrong_members_and_rights_are_refused() -> None:
    group = make_group()
    with pytest.raises(InvalidInput) as error:
        plan(document(cn={"days": {"2024-05-41": "holiday"}, "names": {"2024-05-02": "x"}}))
    assert [item.field for item in error.value.errors] == [
        "calendars.cn.days.2024-05-41",
        "calendars.cn.names.2024-05-02",
    ]
    with pytest.raises(InvalidInput) as error:
        plan(document(cn=None))
    assert error.value.field == f"jobs.{KEY}.calendar.name"
    user = Actor(user_id=2, username="bob", is_admin=False, rights={group.id: ALL_RIGHTS})
    with pytest.raises(PermissionDenied, match="calendars"):
        plan(document(), actor=user)


def put(name: str, **entered: Any) -> None:
    with session_scope() as session:
        calendars.put_calendar(session, name, CalendarDraft(**entered), actor=ADMIN, clock=lambda: T0)


def undo(apply_id: int) -> None:
    request = UndoRequest(apply_id, ADMIN)
    with read_scope() as session:
        prepared = prepare_undo(session, request, now_ms=T0)
    with session_scope() as session:
        undo_apply(session, prepared, clock=lambda: T0)


def test_an_import_of_the_console_takes_the_calendars_of_a_file() -> None:
    make_group()
    document = read_file(json.dumps({"calendars": {"cn": CN}, "jobs": {KEY: JOB}}))
    with read_scope() as session:
        prepared = prepare_import(session, document, ImportOptions(), actor=ADMIN, now_ms=T0)
    with session_scope() as session:
        lines = write_import(session, prepared, file_name="jobs.json", clock=lambda: T0)
    assert [(line.name, bool(line.object_id)) for line in lines] == [("cn", False), (KEY, True)]
    assert list(kinds()) == [date(2024, 5, 1)]


def test_a_calendar_is_refused_beside_a_java_admin_but_one_that_stays_is_not() -> None:
    make_group()
    refused = replace(request(document()), readable_by_java=True)
    with pytest.raises(InvalidInput) as error, read_scope() as session:
        plan_document(session, refused, now_ms=T0)
    assert [item.field for item in error.value.errors][0] == "calendars.cn.name"

    apply({"calendars": {"cn": CN}})
    same = replace(request({"calendars": {"cn": CN}}), readable_by_java=True)
    with read_scope() as session:
        assert plan_document(session, same, now_ms=T0).summary.unchanged == 1
