"""Room that archived logs take: a row for each job and day, which the pulls keep up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.database.rows import bulk
from app.domain.archive.chunks import day_of_folder
from app.models.archive import ArchiveDay, LogArchive


class JobOfDay(NamedTuple):
    """A job and a day, such as ``2026/11/30``."""

    job_id: int
    day: str

    @classmethod
    def of(cls, job_id: int, folder: str) -> Self:
        """Return the job and day of a run, by the folder of its chunks."""
        return cls(job_id, day_of_folder(folder))


class Room(NamedTuple):
    """Bytes of text, and of the files that hold it."""

    size: int = 0
    stored: int = 0

    def plus(self, other: Self) -> "Room":
        """Return both together."""
        return Room(self.size + other.size, self.stored + other.stored)


_SIZE = select(ArchiveDay.size).where(
    ArchiveDay.job_id == bindparam("of_job"), ArchiveDay.day == bindparam("of_day")
)
_DAY = func.substr(LogArchive.folder, 1, 10)
_COUNT = (
    select(LogArchive.job_id, _DAY, func.sum(LogArchive.size), func.sum(LogArchive.stored))
    .where(LogArchive.stored > 0)
    .group_by(LogArchive.job_id, _DAY)
)


def size_of(session: Session, key: JobOfDay) -> int:
    """Return the bytes of text that are stored of a job and a day."""
    rows = bulk.read_rows(session, _SIZE, {"of_job": key.job_id, "of_day": key.day})
    return int(rows[0][0]) if rows else 0


def total(changes: Iterable[tuple[JobOfDay, Room]]) -> dict[JobOfDay, Room]:
    """Return the sums of changes, by job and day."""
    rooms = defaultdict[JobOfDay, Room](Room)
    for key, change in changes:
        rooms[key] = rooms[key].plus(change)
    return rooms


def add(session: Session, rooms: Mapping[JobOfDay, Room]) -> None:
    """Add to the rooms of jobs and days; negative numbers take away."""
    for key, room in sorted(rooms.items()):
        if room == Room():
            continue
        change = (
            update(ArchiveDay)
            .where(ArchiveDay.job_id == key.job_id, ArchiveDay.day == key.day)
            .values(size=ArchiveDay.size + room.size, stored=ArchiveDay.stored + room.stored)
        )
        if not affected(session, change):
            bulk.insert_if_absent(session, ArchiveDay, {"job_id": key.job_id, "day": key.day})
            affected(session, change)


def total_stored(session: Session) -> int:
    """Return the bytes of all files that rows name, about: rows are deleted with their runs, too."""
    return int(session.scalar(select(func.sum(ArchiveDay.stored))) or 0)


def recount(session: Session) -> int:
    """Count the rooms anew, from the archived logs; return the bytes of all files."""
    rooms = {JobOfDay(row[0], row[1]): Room(int(row[2]), int(row[3])) for row in session.execute(_COUNT)}
    rows = session.execute(select(ArchiveDay.job_id, ArchiveDay.day, ArchiveDay.size, ArchiveDay.stored))
    sums = {JobOfDay(row[0], row[1]): Room(row[2], row[3]) for row in rows}
    changes = {
        key: rooms.get(key, Room()).plus(Room(-has.size, -has.stored))
        for key in rooms.keys() | sums.keys()
        if (has := sums.get(key, Room())) != rooms.get(key)
    }
    add(session, changes)
    affected(session, delete(ArchiveDay).where(ArchiveDay.stored <= 0, ArchiveDay.size <= 0))
    return sum(room.stored for room in rooms.values())
