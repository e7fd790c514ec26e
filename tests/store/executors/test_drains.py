"""Drained addresses: read per batch of groups, stored once, deleted with their group."""

import pytest
from sqlalchemy.orm import Session

from app.store.executors import drains
from app.store.executors.drains import READ_MAX
from tests.support.factories import T0

A, B = "http://10.0.0.1:9999/", "http://10.0.0.2:9999"


def insert(session: Session, group_id: int, *addresses: str) -> None:
    for address in addresses:
        drains.insert_drain(session, group_id, address, username="ann", now_ms=T0)


@pytest.mark.parametrize("others", [0, READ_MAX], ids=["a small table", "a large one"])
def test_only_the_requested_groups_are_returned(session: Session, others: int) -> None:
    insert(session, 7, A, B)
    insert(session, 8, B)
    insert(session, 9, *(f"http://10.1.0.0:{1024 + number}" for number in range(others)))
    assert drains.find_drained(session, {7, 8, 11}) == {7: {A.rstrip("/"), B}, 8: {B}}
    assert drains.find_drained(session, set()) == {}


def test_an_address_is_stored_once_and_unchanged(session: Session) -> None:
    insert(session, 7, A)
    drains.insert_drain(session, 7, A.rstrip("/"), username="bob", now_ms=T0 + 5)
    (drain,) = drains.find_of_groups(session, [7])
    assert (drain.address, drain.username, drain.since_ms) == (A.rstrip("/"), "ann", T0)


def test_delete_returns_whether_it_existed(session: Session) -> None:
    insert(session, 7, A)
    insert(session, 8, A)
    assert drains.delete_drain(session, 7, A)
    assert not drains.delete_drain(session, 7, A)
    insert(session, 7, A, B)
    for invalid in (f"{A}\x00", f"{A}\ud800", A * 20):
        assert not drains.delete_drain(session, 7, invalid), "no column holds it"
    drains.delete_of_group(session, 7)
    assert drains.find_drained(session, {7, 8}) == {8: {A.rstrip("/")}}
