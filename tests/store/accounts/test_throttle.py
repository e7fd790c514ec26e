"""Counters of failed attempts: when they are deleted."""

import pytest
from sqlalchemy import select

from app.database.engine import read_scope, session_scope
from app.models.throttle import Throttle
from app.store.accounts import throttle
from tests.support.factories import T0, save

pytestmark = pytest.mark.usefixtures("database")


def subjects() -> set[str]:
    with read_scope() as session:
        return set(session.scalars(select(Throttle.subject)))


def test_old_counters_are_deleted_a_batch_at_a_time_and_known_sources_later() -> None:
    for subject, age_ms in {
        "account:old": 11,
        "address:10.0.0.1": 11,
        "account:known:": 9,
        "known:0:address:10.0.0.1": 11,
        "known:0:address:10.0.0.2": 21,
    }.items():
        save(Throttle(subject=subject, failures=1, first_ms=0, last_ms=T0 - age_ms))

    def delete() -> int:
        with session_scope() as session:
            return throttle.delete_old(session, before_ms=T0 - 10, known_before_ms=T0 - 20, limit=2)

    assert (delete(), delete(), delete()) == (2, 1, 0)
    assert subjects() == {"account:known:", "known:0:address:10.0.0.1"}


def test_the_counters_of_a_beginning_are_deleted_together() -> None:
    for subject in ("known:1:a", "known:1:b", "known:10:a", "account:known:1:"):
        save(Throttle(subject=subject, failures=1, first_ms=0, last_ms=T0))
    with session_scope() as session:
        throttle.delete_below(session, "known:1:")
    assert subjects() == {"known:10:a", "account:known:1:"}
