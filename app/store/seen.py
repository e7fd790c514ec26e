"""`xxl_job_seen`: forgotten executors, each with the time it was last there."""

from collections.abc import Collection
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.db import affected
from app.domain.enums import RegistryGroup
from app.models.registry import Registration
from app.models.seen import Sighting
from app.store import bulk

#: addresses remembered of one application, and of all together
APP_MAX = 50
TOTAL_MAX = 2_000


class Leaving(NamedTuple):
    """An address that the registry is about to forget."""

    app_name: str
    address: str
    seen_ms: Millis
    capabilities: str


def remember(session: Session, leaving: Collection[Leaving]) -> None:
    """Keep when these were last there: one statement for all, and of each application only the newest stay."""
    newest = sorted(
        {(each.app_name, each.address): each for each in leaving}.values(),
        key=attrgetter("seen_ms"),
        reverse=True,
    )[:TOTAL_MAX]
    bulk.upsert(session, Sighting, [each._asdict() for each in newest], key=("app_name", "address"))
    _keep_newest(session, {each.app_name for each in newest})


def _keep_newest(session: Session, app_names: Collection[str]) -> None:
    query = select(Sighting.id, Sighting.app_name).where(Sighting.app_name.in_(list(app_names)))
    rows = bulk.read_rows(
        session, query.order_by(Sighting.app_name, Sighting.seen_ms.desc(), Sighting.id.desc())
    )
    beyond = [row.id for _, of_app in groupby(rows, attrgetter("app_name")) for row in list(of_app)[APP_MAX:]]
    if beyond:
        affected(session, delete(Sighting).where(Sighting.id.in_(beyond)))


def find_of_app(session: Session, app_name: str) -> list[Sighting]:
    """Return the forgotten addresses of an application, the one seen last first."""
    query = select(Sighting).where(Sighting.app_name == app_name)
    return list(session.scalars(query.order_by(Sighting.seen_ms.desc(), Sighting.address)))


def find_last(session: Session, app_names: Collection[str]) -> dict[str, Millis]:
    """Return appname -> when any executor of it was last heard of, registered or forgotten; those nobody remembers are left out."""
    beat = func.max(Registration.update_time)
    registered = select(Registration.registry_key, beat).where(
        Registration.registry_group == RegistryGroup.EXECUTOR, Registration.registry_key.in_(list(app_names))
    )
    found = {
        row[0]: row[1]
        for row in session.execute(registered.group_by(Registration.registry_key))
        if row[1] is not None
    }
    missing = [app_name for app_name in app_names if app_name not in found]
    if missing:
        forgotten = select(Sighting.app_name, func.max(Sighting.seen_ms)).where(
            Sighting.app_name.in_(missing)
        )
        found |= {row[0]: row[1] for row in session.execute(forgotten.group_by(Sighting.app_name))}
    return found


def find_names(session: Session) -> dict[tuple[str, str], int]:
    """Return (appname, address) -> id of everything remembered."""
    rows = bulk.read_rows(session, select(Sighting.app_name, Sighting.address, Sighting.id))
    return {(row.app_name, row.address): row.id for row in rows}


def delete_sightings(session: Session, ids: Collection[int]) -> int:
    """Forget these wholly; return how many there were."""
    return affected(session, delete(Sighting).where(Sighting.id.in_(sorted(ids)))) if ids else 0


def delete_of_app(session: Session, app_name: str) -> None:
    """Forget wholly what an application had."""
    affected(session, delete(Sighting).where(Sighting.app_name == app_name))


def delete_old(session: Session, *, before_ms: Millis) -> int:
    """Delete what was last there before an instant, and all beyond TOTAL_MAX; return how many that is."""
    newest = select(Sighting.id, Sighting.seen_ms).order_by(Sighting.seen_ms.desc(), Sighting.id.desc())
    rows = bulk.read_rows(session, newest)
    return delete_sightings(
        session, [row.id for number, row in enumerate(rows) if number >= TOTAL_MAX or row.seen_ms < before_ms]
    )
