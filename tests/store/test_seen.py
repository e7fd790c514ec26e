"""When executors were last there: written in one statement, bounded, found beside the registry; and names that are taken once."""

import pytest
from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import transact
from app.models.once import Once
from app.models.registry import Registration
from app.models.seen import Sighting
from app.store import once, seen
from app.store.seen import APP_MAX, TOTAL_MAX, Leaving
from tests.factories import T0, all_rows, only_row, save
from tests.pipeline.steps import at_once
from tests.statements import statements

A, B = "http://10.0.0.1:9999/", "http://10.0.0.2:9999/"


def leaving(address: str = A, at_ms: Millis = T0, app_name: str = "demo", capabilities: str = "") -> Leaving:
    return Leaving(app_name, address, at_ms, capabilities)


def remember(*those: Leaving) -> None:
    transact(lambda session: seen.remember(session, those))


def remembered(session: Session, app_name: str = "demo") -> list[tuple[str, Millis]]:
    return [(each.address, each.seen_ms) for each in seen.find_of_app(session, app_name)]


def test_an_address_that_leaves_again_has_the_later_time(session: Session) -> None:
    seen.remember(session, [leaving(A), leaving(B, T0 + 1), leaving(A, T0, "other")])
    seen.remember(session, [leaving(A, T0 + 2, capabilities="durable-dedup")])
    assert remembered(session) == [(A, T0 + 2), (B, T0 + 1)]
    assert remembered(session, "other") == [(A, T0)]
    assert [each.capabilities for each in seen.find_of_app(session, "demo")] == ["durable-dedup", ""]
    seen.delete_of_app(session, "demo")
    assert list(seen.find_names(session)) == [("other", A)]


def test_names_that_are_only_alike_are_not_the_same(session: Session) -> None:
    names = ("café", "cafe", "Cafe")
    seen.remember(session, [leaving(A, T0 + number, name) for number, name in enumerate(names)])
    assert [remembered(session, name) for name in names] == [[(A, T0)], [(A, T0 + 1)], [(A, T0 + 2)]]
    assert seen.find_last(session, names) == {"café": T0, "cafe": T0 + 1, "Cafe": T0 + 2}


def test_a_round_is_written_by_one_statement_and_keeps_the_newest_of_each_application(
    session: Session,
) -> None:
    many = [leaving(f"http://10.1.0.{number}:9999/", T0 + number) for number in range(APP_MAX + 5)]
    with statements() as told:
        seen.remember(session, [*many, leaving(A, T0, "other")])
    assert sum(statement.startswith("INSERT") for statement in told) == 1
    newest = [(each.address, each.seen_ms) for each in reversed(many[5:])]
    assert remembered(session) == newest
    seen.remember(session, [leaving(A, T0 + 99)])
    assert remembered(session) == [(A, T0 + 99), *newest[:-1]]
    assert remembered(session, "other") == [(A, T0)]


def test_the_registry_comes_before_what_is_remembered(session: Session) -> None:
    row = {"registry_group": "EXECUTOR", "registry_key": "demo"}
    session.add(Registration(**row, registry_value=A, update_time=T0))
    session.add(Registration(**row, registry_value=B, update_time=T0 + 5_000))
    session.add(Registration(registry_group="ADMIN", registry_key="other", registry_value=B, update_time=T0))
    session.flush()
    seen.remember(session, [leaving(B, T0 + 9_000), leaving(A, T0 + 7, "gone"), leaving(B, T0 + 8, "gone")])
    assert seen.find_last(session, {"demo", "other", "gone", "never"}) == {"demo": T0 + 5_000, "gone": T0 + 8}
    assert seen.find_last(session, set()) == {}


@pytest.mark.parametrize("extra", [0, 3])
def test_old_ones_and_those_beyond_the_limit_are_deleted(session: Session, extra: int) -> None:
    apps = (TOTAL_MAX + extra) // APP_MAX + 1
    for app in range(apps):
        seen.remember(
            session,
            [
                leaving(f"http://10.1.{app}.{n}:9999/", T0 + app * 100 + n, f"app{app}")
                for n in range(APP_MAX)
            ],
        )
    too_many = apps * APP_MAX - TOTAL_MAX
    assert seen.delete_old(session, before_ms=T0) == too_many
    assert len(seen.find_names(session)) == TOTAL_MAX
    assert seen.delete_old(session, before_ms=T0 + apps * 100 - 50) == TOTAL_MAX
    assert seen.delete_sightings(session, []) == 0


def test_nodes_that_write_the_same_at_once_make_one_row(database: str) -> None:
    save(Sighting(app_name="demo", address=B, seen_ms=T0))
    at_once(*(lambda: remember(leaving(A, T0 + 1), leaving(B, T0 + 1)) for _ in range(4)))
    assert sorted((row.address, row.seen_ms) for row in all_rows(Sighting)) == [(A, T0 + 1), (B, T0 + 1)]


def test_a_name_is_taken_once_until_it_is_deleted(database: str) -> None:
    assert transact(lambda session: once.claim_name(session, "a:1", now_ms=T0))
    assert not transact(lambda session: once.claim_name(session, "a:1", now_ms=T0 + 5))
    assert transact(lambda session: once.claim_name(session, "a:2", now_ms=T0 + 5))
    assert transact(lambda session: once.delete_before(session, before_ms=T0 + 5, limit=10)) == 1
    assert only_row(Once).name == "a:2"
    assert transact(lambda session: once.claim_name(session, "a:1", now_ms=T0 + 9))
