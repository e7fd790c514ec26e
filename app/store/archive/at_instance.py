"""Archived logs of the runs in progress on instances."""

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.domain.executors.addresses import spellings
from app.models.archive import LogArchive
from app.models.fire import Fire
from app.store.archive.rows import IN_PROGRESS, AcceptedRun

#: runs of which the logs are fetched at once; of the others when they are due
AT_ONCE_MAX = 2_000


def find_at_instances(session: Session, addresses: Collection[str]) -> list[tuple[AcceptedRun, bool]]:
    """Return runs in progress at addresses, and whether they have an archived log already."""
    is_there = Fire.address.in_(spellings(addresses))
    rows = session.execute(IN_PROGRESS.add_columns(LogArchive.id).where(is_there).limit(AT_ONCE_MAX))
    return [(AcceptedRun(*row[:-1]), row[-1] is not None) for row in rows]
