"""Blackouts: who makes, ends and sees them, what is refused, and which jobs have the tag of one."""

import json
from typing import Any

import pytest

from app.clock import DAY_MS, HOUR_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.domain.schedules.schedule import RESTING
from app.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.calendar import BlackoutJob, JobBlackout, RuleChange
from app.models.job import Job
from app.services.calendars import blackouts
from app.services.calendars.blackouts import BlackoutDraft, BlackoutState, BlackoutView
from app.services.calendars.scopes import PERIOD_MS, tick_members
from app.services.executors import groups
from app.services.jobs import jobs
from app.store.calendars import current_book
from app.store.jobs import tags as job_tags
from tests.support.factories import T0, all_rows, make_due_job, make_group, make_job, only_row
from tests.support.jobs import LATER, add, update
from tests.support.plan import every_database
from tests.support.truth_table import truth_table

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
#: Sundays at two, for two hours
SUNDAYS = {"cron": "0 0 2 ? * SUN", "duration_s": 7_200, "time_zone": "UTC"}


def user(group_id: int, *rights: Right) -> Actor:
    return Actor(user_id=2, username="bob", is_admin=False, rights={group_id: frozenset(rights)})


def black_out(*, actor: Actor = ADMIN, now_ms: Millis = T0, **fields: Any) -> BlackoutView:
    """Make a blackout; it holds from ``now_ms`` on, which is one millisecond after the change."""
    draft = BlackoutDraft(**{"reason": "moving", **fields})
    with session_scope() as session:
        return blackouts.add_blackout(session, draft, actor=actor, clock=lambda: now_ms - 1)


def end(blackout_id: int, *, actor: Actor = ADMIN, now_ms: Millis = LATER) -> BlackoutView:
    with session_scope() as session:
        return blackouts.end_blackout(session, blackout_id, actor=actor, clock=lambda: now_ms - 1)


def states(*, actor: Actor = ADMIN, now_ms: Millis = T0) -> list[tuple[int, str]]:
    with read_scope() as session:
        lasting = blackouts.list_lasting(session, actor=actor, now_ms=now_ms)
        over = blackouts.list_page(session, actor=actor, now_ms=now_ms, state=BlackoutState.OVER, limit=10)
        return [(view.id, view.state.value) for view in (*lasting, *over)]


def members() -> list[tuple[int, Millis, Millis | None]]:
    return [(row.job_id, row.from_ms, row.until_ms) for row in all_rows(BlackoutJob)]


def blacked_out(job_id: int, group_id: int) -> bool:
    with read_scope() as session:
        return bool(current_book.refresh(session).blackouts_of(job_id, group_id))


@every_database
def test_a_blackout_is_added_listed_and_ended() -> None:
    group = make_group()
    lasting = black_out(group_id=group.id)
    assert (lasting.blackout.from_ms, lasting.blackout.until_ms) == (T0, None)
    assert (lasting.state, lasting.name, lasting.author) == ("on", "Demo", "ann")
    first = only_row(RuleChange).number
    coming = black_out(from_ms=T0 + HOUR_MS + 1, to_ms=T0 + 2 * HOUR_MS + 1)
    assert only_row(RuleChange).number > first
    assert (coming.blackout.from_ms, coming.blackout.until_ms) == (T0 + HOUR_MS, T0 + 2 * HOUR_MS + 1_000)
    recurring = black_out(**SUNDAYS)
    assert recurring.is_recurring
    assert recurring.window is not None
    assert recurring.window[0] > T0 + 2 * DAY_MS
    assert states() == [(lasting.id, "on"), (coming.id, "coming"), (recurring.id, "coming")]
    assert states(now_ms=T0 + DAY_MS)[-1] == (coming.id, "over")
    assert end(lasting.id).blackout.until_ms == LATER
    ended = end(coming.id)
    assert (ended.state, ended.blackout.until_ms, ended.ended_ms) == ("over", coming.blackout.from_ms, LATER)
    with pytest.raises(Conflict, match="over already"):
        end(coming.id)
    end(recurring.id)
    assert [state for _, state in states(now_ms=LATER)] == ["over"] * 3
    entries = [(row.action, row.object_id, json.loads(row.changes or "")) for row in all_rows(AuditEntry)]
    assert entries[0][2] == {"from_ms": T0, "job_group": group.id, "afterwards": "skip", "reason": "moving"}
    assert [entry[0] for entry in entries] == ["blackout.add"] * 3 + ["blackout.end"] * 3


def test_those_for_many_are_of_administrators_the_others_of_who_may_operate() -> None:
    job = make_job()
    other = make_group()
    operator, viewer = user(job.job_group, Right.VIEW, Right.OPERATE), user(job.job_group, Right.VIEW)
    for fields in ({}, {"tag": "nightly"}):
        with pytest.raises(PermissionDenied):
            black_out(actor=operator, **fields)
    for fields in ({"group_id": job.job_group}, {"job_id": job.id}):
        with pytest.raises(PermissionDenied):
            black_out(actor=viewer, **fields)
        made = black_out(actor=operator, **fields)
        with pytest.raises(PermissionDenied):
            end(made.id, actor=viewer)
        end(made.id, actor=operator)
    for fields, field in (({"group_id": other.id}, "group_id"), ({"job_id": 99}, "job_id")):
        with pytest.raises(InvalidInput, match="no such") as refused:
            black_out(actor=operator, **fields)
        assert refused.value.field == field
    of_all, of_other = black_out(), black_out(group_id=other.id)
    assert states(actor=viewer)[0] == (of_all.id, "on")
    assert of_other.id not in [key for key, _ in states(actor=viewer)]
    with pytest.raises(NotFound):
        end(of_other.id, actor=viewer)
    with pytest.raises(PermissionDenied):
        end(of_all.id, actor=operator)
    assert states(actor=Actor(user_id=3, username="eve", is_admin=False)) == []


@truth_table(
    "fields, field, message",
    [
        ({"reason": " "}, "reason", "Enter a reason"),
        ({"reason": "x" * 201}, "reason", "at most 200"),
        ({"group_id": 1, "tag": "a"}, "tag", "one executor group, one job or one tag"),
        ({"tag": "a,b"}, "tag", "must not contain commas"),
        ({"afterwards": "all"}, "afterwards", "skip, run_once"),
        ({"from_ms": T0 + HOUR_MS, "to_ms": T0 + HOUR_MS}, "to", "later than the beginning"),
        ({"to_ms": T0}, "to", "in the future"),
        ({"duration_s": 60}, "cron", "when the windows begin"),
        ({**SUNDAYS, "cron": "0 0 25 * * ?"}, "cron", None),
        ({**SUNDAYS, "cron": "0 0 2 1 1 ? 2020"}, "cron", "No window begins"),
        ({**SUNDAYS, "time_zone": "Mars"}, "time_zone", "not a known time zone"),
        ({**SUNDAYS, "duration_s": None}, "duration_s", "between 60 and 2678400"),
        ({**SUNDAYS, "duration_s": 59}, "duration_s", "between 60 and 2678400"),
        ({**SUNDAYS, "cron": "0 0 * * * ?", "duration_s": 3_600}, "duration_s", "at most 3599 seconds"),
        ({"readable_by_java": True}, "reason", "XXL_JOB_SHARED_WITH_JAVA"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(
    fields: dict[str, Any], field: str, message: str | None
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        black_out(**fields)
    assert refused.value.field == field, fields
    assert all_rows(JobBlackout) == []


def test_a_group_is_switched_off_and_on_again() -> None:
    group_id = make_group().id
    operator = user(group_id, Right.VIEW, Right.OPERATE)
    with session_scope() as session:
        off = blackouts.switch_off_group(session, group_id, reason="moving", actor=operator, clock=lambda: T0)
    with session_scope() as session:
        found = blackouts.find_group_off(session, group_id, actor=operator, now_ms=LATER)
        assert found is not None
        assert found.id == off.id
        with pytest.raises(Conflict):
            blackouts.switch_off_group(session, group_id, reason="again", actor=operator, clock=lambda: LATER)
    with session_scope() as session:
        blackouts.switch_on_group(session, group_id, actor=operator, clock=lambda: LATER)
    assert only_row(JobBlackout).until_ms == LATER + 1
    with session_scope() as session, pytest.raises(Conflict):
        blackouts.switch_on_group(session, group_id, actor=operator, clock=lambda: LATER)


@every_database
def test_that_jobs_have_the_tag_of_a_blackout_is_noted_from_when_until_when() -> None:
    group_id = make_group().id
    first = add(group_id, tags=("Nightly",))
    second = add(group_id)
    made = black_out(tag="nightly", now_ms=T0 + 1)
    assert members() == [(first, T0 + 1, None)]
    update(second, group_id, tags=("NIGHTLY", "other"), now_ms=T0 + 1)
    update(first, group_id, tags=("nightly", "more"), now_ms=T0 + 2)
    with session_scope() as session:
        jobs.change_tag(session, first, "nightly", has_tag=False, actor=ADMIN, clock=lambda: T0 + 3)
    third = add(group_id, tags=("nightly",))
    assert members() == [(first, T0 + 1, T0 + 4), (second, T0 + 2, None), (third, T0 + 1, None)]
    assert blacked_out(second, group_id)
    assert blacked_out(third, group_id)
    with session_scope() as session:
        jobs.remove_job(session, third, actor=ADMIN, now_ms=T0 + 5)
    end(made.id)
    number = only_row(RuleChange).number
    update(second, group_id, tags=(), now_ms=LATER + 1)
    assert members()[1:] == [(second, T0 + 2, None), (third, T0 + 1, T0 + 5)], "it is over"
    assert only_row(RuleChange).number == number


def test_tags_that_another_program_has_changed_are_noted_later() -> None:
    group_id = make_group().id
    first, second = add(group_id, tags=("nightly",)), add(group_id)
    assert tick_members(T0) == PERIOD_MS
    black_out(tag="nightly")
    with session_scope() as session:
        job_tags.replace_tags(session, {first: (), second: ("nightly",)})
    times = iter([0, *[3_000] * 20])  # It waits for the schedule lock.
    tick_members(LATER - 3_000, lambda: next(times))
    assert members() == [(first, T0, LATER + 1), (second, LATER + 1, None)]
    number = only_row(RuleChange).number
    tick_members(LATER + 1)
    assert only_row(RuleChange).number == number


def test_a_job_that_moves_to_a_group_with_a_blackout_is_planned_anew() -> None:
    job = make_due_job(T0 + HOUR_MS, "CRON", "0 0 0 * * ?")
    group_id = make_group().id
    black_out(group_id=group_id)
    with session_scope() as session:
        jobs.move_job(session, job.id, group_id, actor=ADMIN, clock=lambda: T0)
    assert only_row(Job).trigger_next_time == RESTING
    with session_scope() as session:
        jobs.move_job(session, job.id, job.job_group, actor=ADMIN, clock=lambda: LATER)
    assert only_row(Job).trigger_next_time < T0 + DAY_MS


def test_blackouts_of_what_is_deleted_end() -> None:
    job = make_job()
    group_id = make_group().id
    of_job, of_group = black_out(job_id=job.id), black_out(group_id=group_id, from_ms=T0 + DAY_MS)
    with session_scope() as session:
        jobs.remove_job(session, job.id, actor=ADMIN, now_ms=LATER)
        groups.remove_group(session, group_id, actor=ADMIN, now_ms=LATER)
    ends = {row.id: (row.until_ms, row.ended_ms) for row in all_rows(JobBlackout)}
    assert ends == {of_job.id: (LATER, LATER), of_group.id: (T0 + DAY_MS, LATER)}
    assert states(now_ms=LATER) == [(of_group.id, "over"), (of_job.id, "over")]
