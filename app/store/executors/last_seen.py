"""Statements on `xxl_job_last_seen`: former addresses of executors and when each was last seen."""

from collections.abc import Collection
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.enums import RegistryGroup
from app.models.last_seen import LastSeen
from app.models.registry import Registration

#: addresses kept per application, and in total
APP_MAX = 50
TOTAL_MAX = 2_000


class Departure(NamedTuple):
    """An address that is leaving the registry."""

    app_name: str
    address: str
    last_seen_ms: Millis
    capabilities: str


def record(session: Session, departures: Collection[Departure]) -> None:
    """Store when these addresses were last seen, in one statement, and keep the newest per application."""
    newest = sorted(
        {(departure.app_name, departure.address): departure for departure in departures}.values(),
        key=attrgetter("last_seen_ms"),
        reverse=True,
    )[:TOTAL_MAX]
    rows = [departure._asdict() for departure in newest]
    bulk.upsert(session, LastSeen, rows, key=("app_name", "address"))
    _keep_newest(session, {departure.app_name for departure in newest})


def _keep_newest(session: Session, app_names: Collection[str]) -> None:
    query = select(LastSeen.id, LastSeen.app_name).where(LastSeen.app_name.in_(list(app_names)))
    rows = bulk.read_rows(
        session, query.order_by(LastSeen.app_name, LastSeen.last_seen_ms.desc(), LastSeen.id.desc())
    )
    excess = [
        row.id for _, app_rows in groupby(rows, attrgetter("app_name")) for row in list(app_rows)[APP_MAX:]
    ]
    if excess:
        affected(session, delete(LastSeen).where(LastSeen.id.in_(excess)))


def find_of_apps(session: Session, app_names: Collection[str]) -> list[LastSeen]:
    """Return the former addresses of applications, the most recent first."""
    query = select(LastSeen).where(LastSeen.app_name.in_(list(app_names)))
    return list(session.scalars(query.order_by(LastSeen.last_seen_ms.desc(), LastSeen.address)))


def find_last(session: Session, app_names: Collection[str]) -> dict[str, Millis]:
    """Return application -> when any of its executors was last seen, registered or not.

    Applications without any record are left out.
    """
    beat = func.max(Registration.update_time)
    query = select(Registration.registry_key, beat).where(
        Registration.registry_group == RegistryGroup.EXECUTOR, Registration.registry_key.in_(list(app_names))
    )
    last_by_app = {
        row[0]: row[1]
        for row in session.execute(query.group_by(Registration.registry_key))
        if row[1] is not None
    }
    other_apps = [app_name for app_name in app_names if app_name not in last_by_app]
    if other_apps:
        former = select(LastSeen.app_name, func.max(LastSeen.last_seen_ms)).where(
            LastSeen.app_name.in_(other_apps)
        )
        last_by_app |= {row[0]: row[1] for row in session.execute(former.group_by(LastSeen.app_name))}
    return last_by_app


def find_ids(session: Session) -> dict[tuple[str, str], int]:
    """Return (application, address) -> id of all rows."""
    rows = bulk.read_rows(session, select(LastSeen.app_name, LastSeen.address, LastSeen.id))
    return {(row.app_name, row.address): row.id for row in rows}


def delete_rows(session: Session, ids: Collection[int]) -> int:
    """Delete these rows; return how many there were."""
    return affected(session, delete(LastSeen).where(LastSeen.id.in_(sorted(ids)))) if ids else 0


def delete_of_app(session: Session, app_name: str) -> None:
    """Delete all rows of an application."""
    affected(session, delete(LastSeen).where(LastSeen.app_name == app_name))


def delete_old(session: Session, *, before_ms: Millis) -> int:
    """Delete rows last seen before an instant and those beyond TOTAL_MAX; return how many."""
    newest = select(LastSeen.id, LastSeen.last_seen_ms).order_by(
        LastSeen.last_seen_ms.desc(), LastSeen.id.desc()
    )
    rows = bulk.read_rows(session, newest)
    return delete_rows(
        session,
        [row.id for number, row in enumerate(rows) if number >= TOTAL_MAX or row.last_seen_ms < before_ms],
    )
