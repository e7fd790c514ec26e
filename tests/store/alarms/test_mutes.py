"""Mutes: which apply to which job, one row each, deleted with their group."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.database.rows import bulk
from app.models.mute import Mute
from app.store.alarms import mutes
from tests.support.factories import T0, make_job, only_row


def save(session: Session, *, job_id: int = 0, group_id: int = 0, until_ms: Millis = T0 + 100) -> None:
    row = {
        "job_id": job_id,
        "group_id": group_id,
        "since_ms": T0,
        "until_ms": until_ms,
        "username": "ann",
        "reason": "",
    }
    mutes.save_mute(session, row)
    session.flush()


def keys(found: list[Mute]) -> list[tuple[int, int]]:
    return [(mute.job_id, mute.group_id) for mute in found]


def test_lists_show_visible_mutes_that_hold_now(session: Session) -> None:
    job, other = make_job(), make_job()
    save(session, job_id=job.id, until_ms=T0 + 300)
    save(session, group_id=job.job_group, until_ms=T0 + 200)
    save(session, job_id=other.id)
    save(session, group_id=other.job_group, until_ms=T0)
    assert keys(mutes.list_holding(session, None, now_ms=T0, limit=9)) == [
        (other.id, 0),
        (0, job.job_group),
        (job.id, 0),
    ]
    assert keys(mutes.list_holding(session, {job.job_group}, now_ms=T0, limit=9)) == [
        (0, job.job_group),
        (job.id, 0),
    ]
    assert keys(mutes.list_holding(session, None, now_ms=T0, limit=1)) == [(other.id, 0)]
    assert mutes.list_holding(session, set(), now_ms=T0, limit=9) == []


def test_a_job_is_covered_by_its_own_mute_and_that_of_its_group(session: Session) -> None:
    for job_id, group_id in ((1, 0), (0, 7), (3, 0), (0, 9)):
        save(session, job_id=job_id, group_id=group_id)
    covering = mutes.find_covering(session, [(1, 7), (2, 7), (3, 8), (4, 8)])
    assert {job_id: keys(found) for job_id, found in covering.items()} == {
        1: [(1, 0), (0, 7)],
        2: [(0, 7)],
        3: [(3, 0)],
    }
    assert mutes.find_covering(session, []) == {}


def test_muting_again_moves_the_end_and_cancels_the_previous_summary(session: Session) -> None:
    save(session, job_id=1)
    (ended,) = mutes.take_ended(session, owner="one", now_ms=T0 + 100, lease_ms=50, limit=5)
    assert mutes.lock_holding(session, [ended.id]) == set()
    assert not mutes.end_mute(session, job_id=1, group_id=0, now_ms=T0 + 101)
    save(session, job_id=1, until_ms=T0 + 900)
    mute = mutes.find_mute(session, job_id=1)
    assert mute is not None
    assert (mute.until_ms, mute.since_ms, mute.attempts, mute.owner) == (T0 + 900, T0, 0, "")
    assert mutes.lock_holding(session, [mute.id]) == {mute.id}
    assert mutes.end_mute(session, job_id=1, group_id=0, now_ms=T0 + 201)


def test_mutes_of_deleted_groups_end_and_stay_until_reported(session: Session) -> None:
    save(session, group_id=7)
    save(session, group_id=8)
    deleted = mutes.find_mute(session, group_id=7)
    assert deleted is not None
    assert mutes.end_mutes(session, [deleted.id], now_ms=T0) == 1
    assert mutes.end_mutes(session, [deleted.id], now_ms=T0 + 1) == 0
    assert keys(mutes.list_holding(session, None, now_ms=T0, limit=9)) == [(0, 8)]
    assert keys(mutes.take_ended(session, owner="one", now_ms=T0, lease_ms=50, limit=5)) == [(0, 7)]


def test_muting_again_while_the_end_is_recorded_creates_a_new_mute(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not database.startswith("postgresql"):
        pytest.skip("on other databases the insert waits for the row lock")
    with session_scope() as session:
        save(session, job_id=1)
    inserting = threading.Event()

    def insert(*arguments: Any) -> None:
        insert_ignore(*arguments)
        inserting.set()

    insert_ignore = bulk.insert_ignore
    monkeypatch.setattr(bulk, "insert_ignore", insert)
    with ThreadPoolExecutor(1) as other:
        with session_scope() as session:
            ended = mutes.lock_taken(session, only_row(Mute))
            assert ended is not None
            made = other.submit(transact, lambda writing: save(writing, job_id=1, until_ms=T0 + 900))
            assert inserting.wait(10)
            mutes.delete_mute(session, ended.id)
        made.result(10)
    assert only_row(Mute).until_ms == T0 + 900
