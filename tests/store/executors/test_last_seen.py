"""Last seen times of departed instances: one statement, bounded, merged with the registry."""

import pytest
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import transact
from app.models.last_seen import LastSeen
from app.models.registry import Registration
from app.store.executors import last_seen
from app.store.executors.last_seen import APP_MAX, TOTAL_MAX, Departure
from tests.pipeline.steps import run_concurrently
from tests.support.factories import T0, all_rows, save
from tests.support.statements import statements

A, B = "http://10.0.0.1:9999/", "http://10.0.0.2:9999/"


def departure(
    address: str = A, at_ms: Millis = T0, app_name: str = "demo", capabilities: str = ""
) -> Departure:
    return Departure(app_name, address, at_ms, capabilities)


def record(*departures: Departure) -> None:
    transact(lambda session: last_seen.record(session, departures))


def recorded(session: Session, app_name: str = "demo") -> list[tuple[str, Millis]]:
    return [(row.address, row.last_seen_ms) for row in last_seen.find_of_apps(session, [app_name])]


def test_an_address_that_departs_again_has_the_later_time(session: Session) -> None:
    last_seen.record(session, [departure(A), departure(B, T0 + 1), departure(A, T0, "other")])
    last_seen.record(session, [departure(A, T0 + 2, capabilities="durable-dedup")])
    assert recorded(session) == [(A, T0 + 2), (B, T0 + 1)]
    assert recorded(session, "other") == [(A, T0)]
    assert [row.capabilities for row in last_seen.find_of_apps(session, ["demo"])] == ["durable-dedup", ""]
    last_seen.delete_of_app(session, "demo")
    assert list(last_seen.find_ids(session)) == [("other", A)]


def test_names_that_differ_in_case_or_accents_are_different(session: Session) -> None:
    names = ("café", "cafe", "Cafe")
    last_seen.record(session, [departure(A, T0 + number, name) for number, name in enumerate(names)])
    assert [recorded(session, name) for name in names] == [[(A, T0)], [(A, T0 + 1)], [(A, T0 + 2)]]
    assert last_seen.find_last(session, names) == {"café": T0, "cafe": T0 + 1, "Cafe": T0 + 2}


def test_departures_are_written_in_one_statement_and_the_newest_are_kept(
    session: Session,
) -> None:
    all_departures = [
        departure(f"http://10.1.0.{number}:9999/", T0 + number) for number in range(APP_MAX + 5)
    ]
    with statements() as executed:
        last_seen.record(session, [*all_departures, departure(A, T0, "other")])
    assert sum(statement.startswith("INSERT") for statement in executed) == 1
    newest = [(row.address, row.last_seen_ms) for row in reversed(all_departures[5:])]
    assert recorded(session) == newest
    last_seen.record(session, [departure(A, T0 + 99)])
    assert recorded(session) == [(A, T0 + 99), *newest[:-1]]
    assert recorded(session, "other") == [(A, T0)]


def test_the_registry_wins_over_departed_addresses(session: Session) -> None:
    row = {"registry_group": "EXECUTOR", "registry_key": "demo"}
    session.add(Registration(**row, registry_value=A, update_time=T0))
    session.add(Registration(**row, registry_value=B, update_time=T0 + 5_000))
    session.add(Registration(registry_group="ADMIN", registry_key="other", registry_value=B, update_time=T0))
    session.flush()
    last_seen.record(
        session, [departure(B, T0 + 9_000), departure(A, T0 + 7, "gone"), departure(B, T0 + 8, "gone")]
    )
    assert last_seen.find_last(session, {"demo", "other", "gone", "never"}) == {
        "demo": T0 + 5_000,
        "gone": T0 + 8,
    }
    assert last_seen.find_last(session, set()) == {}


@pytest.mark.parametrize("extra", [0, 3])
def test_old_rows_and_those_beyond_the_limit_are_deleted(session: Session, extra: int) -> None:
    apps = (TOTAL_MAX + extra) // APP_MAX + 1
    for app in range(apps):
        last_seen.record(
            session,
            [
                departure(f"http://10.1.{app}.{n}:9999/", T0 + app * 100 + n, f"app{app}")
                for n in range(APP_MAX)
            ],
        )
    too_many = apps * APP_MAX - TOTAL_MAX
    assert last_seen.delete_old(session, before_ms=T0) == too_many
    assert len(last_seen.find_ids(session)) == TOTAL_MAX
    assert last_seen.delete_old(session, before_ms=T0 + apps * 100 - 50) == TOTAL_MAX
    assert last_seen.delete_rows(session, []) == 0


def test_concurrent_nodes_writing_an_address_make_one_row(database: str) -> None:
    save(LastSeen(app_name="demo", address=B, last_seen_ms=T0))
    run_concurrently(*(lambda: record(departure(A, T0 + 1), departure(B, T0 + 1)) for _ in range(4)))
    assert sorted((row.address, row.last_seen_ms) for row in all_rows(LastSeen)) == [(A, T0 + 1), (B, T0 + 1)]
