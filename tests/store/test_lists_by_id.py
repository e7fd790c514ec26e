"""Lists that go on below an id or behind a row: alarms, change history, users and mutes."""

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.enums import AlarmState
from app.models.alarm import Alarm
from app.models.user import User
from app.store.accounts import audit, rights, users
from app.store.accounts.audit import AuditFilter
from app.store.accounts.users import UserFilter
from app.store.alarms import listing as alarm_lists
from app.store.alarms import mutes
from app.store.alarms.listing import AlarmFilter
from tests.support.factories import T0, make_job, make_log, remove, save

ALL = AlarmFilter()


def make_alarm(job_id: int, log_id: int, **values: object) -> Alarm:
    return save(Alarm(job_id=job_id, log_id=log_id, reason="failed", created_ms=T0 + log_id, **values))


def listed(wanted: AlarmFilter, group_ids: set[int] | None = None, before_id: int | None = None) -> list[int]:
    with read_scope() as session:
        found = alarm_lists.list_before(session, wanted, group_ids, before_id=before_id, limit=9)
        return [alarm.log_id for alarm in found.rows]


def test_alarms_are_found_by_job_group_state_and_time(database: str) -> None:
    job, other = make_job(), make_job()
    assert listed(ALL) == []
    first, second, third = make_log(job), make_log(other), make_log(job)
    make_alarm(job.id, first.id, state="SENT")
    make_alarm(other.id, second.id)
    make_alarm(job.id, third.id)
    assert listed(ALL) == [third.id, second.id, first.id]
    assert listed(AlarmFilter(job_id=job.id)) == [third.id, first.id]
    assert listed(AlarmFilter(group_id=other.job_group)) == [second.id]
    assert listed(ALL, {job.job_group}) == [third.id, first.id]
    assert listed(AlarmFilter(group_id=other.job_group), {job.job_group}) == []
    assert listed(AlarmFilter(states=[AlarmState.SENT])) == [first.id]
    assert listed(AlarmFilter(from_ms=T0 + second.id, to_ms=T0 + second.id)) == [second.id]
    remove(third)
    assert listed(ALL, {job.job_group}) == [first.id]
    assert listed(ALL) == [third.id, second.id, first.id]


def test_a_list_of_alarms_goes_on_and_reads_a_bounded_number(database: str) -> None:
    job = make_job()
    for number in range(1, 10):
        make_alarm(job.id, number, state="SENT" if number in (1, 9) else "PENDING")
    parts, before_id = [], None
    while True:
        with read_scope() as session:
            wanted = AlarmFilter(states=[AlarmState.SENT])
            part = alarm_lists.list_before(
                session, wanted, None, before_id=before_id, limit=2, searched_max=4
            )
        parts.append([alarm.log_id for alarm in part.rows])
        before_id = part.before_id
        if before_id is None:
            break
    assert parts == [[9], [1]]
    with read_scope() as session:
        part = alarm_lists.list_before(session, AlarmFilter(job_id=job.id), None, before_id=None, limit=2)
    assert ([alarm.log_id for alarm in part.rows], part.before_id) == ([9, 8], part.rows[-1].id)


def test_the_change_history_goes_on_below_an_id(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SEARCHED_MAX", 4)
    monkeypatch.setattr(audit, "NUMBERED_WITHIN", 0)
    with session_scope() as session:
        audit.insert_entries(
            session,
            [
                {"at_ms": T0 + number, "username": "ann" if number % 5 == 0 else "bob", "action": "login"}
                for number in range(10)
            ],
        )
    for wanted, expected in (
        (AuditFilter(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (AuditFilter(username="ann"), [5, 0]),
        (AuditFilter(to_ms=T0 + 3), [3, 2, 1, 0]),
    ):
        found, before_id = [], None
        while True:
            with read_scope() as session:
                part = audit.list_before(session, wanted, before_id=before_id, limit=3)
            found += [entry.at_ms - T0 for entry in part.rows]
            assert len(part.rows) <= 3
            before_id = part.before_id
            if before_id is None:
                break
        assert found == expected


def test_users_are_listed_behind_another_with_the_rights_of_each(database: str) -> None:
    ids = [
        save(User(username=name, password="x", role=role)).id
        for name, role in (("carol", 0), ("ann", 1), ("bob", 0))
    ]
    with session_scope() as session:
        rights.replace_rights(session, ids[0], {7: "view", 8: ""})

    def names(after: tuple[str, int], *, username: str = "", role: int = -1, limit: int = 9) -> list[str]:
        with read_scope() as session:
            found = users.list_after(session, UserFilter(username, role), after, limit=limit)
            return [user.username for user in found]

    assert names(("", 0), limit=2) == ["ann", "bob"]
    assert names(("bob", ids[2])) == ["carol"]
    assert names(("", 0), role=0) == ["bob", "carol"]
    assert names(("", 0), username="AN") == ["ann"]
    with read_scope() as session:
        assert rights.rights_of_users(session, ids).get(ids[0]) == {7: "view", 8: ""}
        assert rights.rights_of_users(session, ids[1:]) == {}


def test_mutes_are_listed_behind_another(database: str) -> None:
    with session_scope() as session:
        for job_id, until_ms in ((1, T0 + 5), (2, T0 + 5), (3, T0 + 9), (4, T0)):
            row = {"job_id": job_id, "group_id": 0, "since_ms": T0, "until_ms": until_ms}
            mutes.save_mute(session, {**row, "username": "ann", "reason": ""})
            session.flush()
    with read_scope() as session:
        first = mutes.list_holding(session, None, now_ms=T0, limit=1)[0]
        rest = mutes.list_holding(session, None, now_ms=T0, limit=9, after=(first.until_ms, first.id))
        assert [first.job_id, *(mute.job_id for mute in rest)] == [1, 2, 3]
        assert mutes.find_holding(session, first.id, now_ms=T0) is not None
        assert mutes.find_holding(session, first.id, now_ms=T0 + 5) is None
