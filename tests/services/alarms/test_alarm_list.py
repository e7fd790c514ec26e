"""Alarms and mutes by id: only of groups the reader may see, and what targets answered."""

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.errors import InvalidInput, NotVisible, PermissionDenied
from app.models.alarm import Alarm
from app.models.mute import Mute
from app.services.alarms import alarm_list, mutes
from app.services.alarms.mutes import MuteDraft
from app.store.alarms.listing import AlarmFilter
from tests.support.console import ACTOR
from tests.support.factories import T0, make_job, make_log, only_row, save


def reader(group_id: int, *rights: Right) -> Actor:
    return Actor(7, "eve", is_admin=False, rights={group_id: frozenset({Right.VIEW, *rights})})


def test_alarms_of_other_groups_are_not_listed(database: str) -> None:
    job, other = make_job(), make_job()
    for each in (job, other):
        save(Alarm(job_id=each.id, log_id=make_log(each).id, reason="failed", created_ms=T0))
    eve = reader(job.job_group)
    with read_scope() as session:
        found = alarm_list.list_before(session, AlarmFilter(), actor=eve, before_id=None, limit=9)
        assert [alarm.job_id for alarm in found.rows] == [job.id]
        for wanted in (AlarmFilter(job_id=other.id), AlarmFilter(group_id=other.job_group)):
            with pytest.raises(NotVisible):
                alarm_list.list_before(session, wanted, actor=eve, before_id=None, limit=9)


def test_an_unreadable_outcome_has_no_results() -> None:
    assert alarm_list.results_of(Alarm(outcome='{"mail a@b.c": "ok"}')) == [("mail a@b.c", "ok")]
    assert [alarm_list.results_of(Alarm(outcome=text)) for text in (None, "", "{", "[1]")] == [[]] * 4


def test_a_mute_ends_at_a_given_instant_in_the_future(database: str) -> None:
    job = make_job()
    with session_scope() as session:
        mutes.mute_job(session, job.id, MuteDraft(until_ms=T0 + 5), actor=ACTOR, now_ms=T0)
    assert only_row(Mute).until_ms == T0 + 5
    with session_scope() as session, pytest.raises(InvalidInput) as refused:
        mutes.mute_job(session, job.id, MuteDraft(until_ms=T0), actor=ACTOR, now_ms=T0)
    assert refused.value.field == "until"


def test_a_mute_is_found_with_the_right_on_its_group(database: str) -> None:
    job, other = make_job(), make_job()
    mute = save(Mute(job_id=job.id, since_ms=T0, until_ms=T0 + 9))
    whole = save(Mute(group_id=other.job_group, since_ms=T0, until_ms=T0 + 9))
    eve = reader(job.job_group)
    with read_scope() as session:
        found = mutes.get_mute(session, mute.id, actor=eve, right=Right.VIEW, now_ms=T0)
        assert found.name == job.job_desc
        with pytest.raises(PermissionDenied):
            mutes.get_mute(session, mute.id, actor=eve, right=Right.OPERATE, now_ms=T0)
        with pytest.raises(NotVisible):
            mutes.get_mute(session, whole.id, actor=eve, right=Right.VIEW, now_ms=T0)
        assert mutes.get_mute(session, whole.id, actor=ACTOR, right=Right.VIEW, now_ms=T0).name == "Demo"
