"""Archived logs as the archiver reads and writes them."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, bindparam, case, delete, func, not_, select, union_all, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.archive.kinds import FETCHED, ArchiveMode, ArchiveState
from app.domain.archive.pulls import AT_ONCE
from app.domain.enums import FireState
from app.models.archive import LogArchive
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.store.archive import room
from app.store.archive.modes import MODE, installation_mode
from app.store.archive.room import JobOfDay, Room


class AcceptedRun(NamedTuple):
    """A run in progress that has no archived log yet."""

    log_id: int
    job_id: int
    job_group: int
    logical_ms: Millis
    mode: str


#: runs in progress as AcceptedRun, with their archived logs beside them
IN_PROGRESS = (
    select(JobLog.id, JobLog.job_id, JobLog.job_group, func.coalesce(Fire.logical_ms, Fire.due_time), MODE)
    .select_from(Fire)
    .join(JobLog, JobLog.id == Fire.log_id)
    .join(Job, Job.id == Fire.job_id)
    .outerjoin(LogArchive, LogArchive.log_id == Fire.log_id)
    .where(Fire.state == FireState.ACCEPTED)
    .order_by(Fire.id)
)
_ACCEPTED = IN_PROGRESS.where(
    Fire.accepted_ms <= bindparam("before_ms"),
    Fire.accepted_ms > 0,
    LogArchive.id.is_(None),
    case((MODE.in_(list(ArchiveMode)), MODE), else_=bindparam("default")) != ArchiveMode.OFF,
).limit(bindparam("most"))


def find_accepted(*, before_ms: Millis, limit: int) -> list[AcceptedRun]:
    """Return runs to archive that were accepted before a time and have no archived log.

    Opens its own transaction.
    """
    parameters = {"before_ms": before_ms, "default": installation_mode().value, "most": limit}
    rows = single_statement.read(_ACCEPTED, parameters)
    return [AcceptedRun._make(row) for row in rows]


def insert_open(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert archived logs of runs, except those that there are."""
    bulk.insert_ignore(session, LogArchive, rows)


def note_ends(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert archived logs of runs that end, or note the end in those that there are."""
    bulk.upsert(session, LogArchive, rows, key=("log_id",), constant=("folder",))


class ArchivedLog(NamedTuple):
    """An archived log, as a pull reads it."""

    id: int
    log_id: int
    job_id: int
    job_group: int
    folder: str
    state: str
    is_provisional: int
    epoch: int
    next_ms: Millis
    pause_ms: Millis
    ended_ms: Millis
    pulled_ms: Millis
    last_line: int
    size: int
    gap_from: int
    gap_to: int
    reason: str
    chunks: str | None
    stored: int = 0

    @property
    def key(self) -> JobOfDay:
        """Its job and day."""
        return JobOfDay.of(self.job_id, self.folder)


_COLUMNS = tuple(getattr(LogArchive, name) for name in ArchivedLog._fields)
_ADDRESS = func.coalesce(JobLog.executor_address, "")
#: an address that no executor has, as a list may not be empty
_NOWHERE = "-"


def _due(state: ArchiveState) -> Select[Any]:
    """Return the due logs in a state: an index has them in their order, however many there are."""
    due = (
        select(LogArchive.id, LogArchive.next_ms, _ADDRESS.label("address"))
        .outerjoin(JobLog, JobLog.id == LogArchive.log_id)
        .where(
            LogArchive.state == state.value,
            LogArchive.next_ms <= bindparam("now_ms"),
            LogArchive.lease_until <= bindparam("now_ms"),
            not_(among(_ADDRESS)),
        )
        .order_by(LogArchive.next_ms, LogArchive.id)
        .limit(bindparam("most"))
    )
    return select(due.subquery())


_DUE = union_all(*map(_due, FETCHED)).order_by("next_ms", "id").limit(bindparam("most"))


class DueLog(NamedTuple):
    """An archived log that is to be fetched, and the address of its executor."""

    id: int
    address: str


def find_due(*, now_ms: Millis, limit: int, without: Collection[str] = ()) -> list[DueLog]:
    """Return the archived logs that are to be fetched by now, but for those at some addresses.

    Opens its own transaction.
    """
    parameters = {"now_ms": now_ms, "most": limit, WANTED: sorted(without) or [_NOWHERE]}
    return [DueLog(row[0], row[2]) for row in single_statement.read(_DUE, parameters)]


_FETCHED = select(LogArchive.id).where(LogArchive.state.in_(FETCHED)).limit(1)


def has_fetched() -> bool:
    """Return whether any log is still fetched, due or not; opens its own transaction."""
    return bool(single_statement.read(_FETCHED, {}))


_LOCKED = (
    select(*_COLUMNS)
    .with_hint(LogArchive, "FORCE INDEX (PRIMARY)", "mysql")
    .where(
        among(LogArchive.id),
        LogArchive.state.in_(FETCHED),
        LogArchive.next_ms <= bindparam("now_ms"),
        LogArchive.lease_until <= bindparam("now_ms"),
    )
    .order_by(LogArchive.id)
    .with_for_update(skip_locked=True)
)


def claim(
    session: Session, archive_ids: Collection[int], *, owner: str, now_ms: Millis, lease_ms: Millis
) -> list[ArchivedLog]:
    """Lease archived logs to a node; return those that are due and that no other has."""
    rows = direct.read(session, _LOCKED, {WANTED: sorted(archive_ids), "now_ms": now_ms})
    logs = [ArchivedLog._make(row) for row in rows]
    columns = {"owner": owner, "lease_until": now_ms + lease_ms}
    bulk.update_many(session, LogArchive, [{"id": log.id, "epoch": log.epoch + 1, **columns} for log in logs])
    return [log._replace(epoch=log.epoch + 1) for log in logs]


def give_back(session: Session, archive_ids: Collection[int], *, owner: str) -> None:
    """End the leases of a node on archived logs that it has not fetched."""
    mine = and_(LogArchive.id.in_(list(archive_ids)), LogArchive.owner == owner)
    affected(session, update(LogArchive).where(mine).values(lease_until=0))


def write_pull(session: Session, log: ArchivedLog, now_ms: Millis, **columns: Any) -> bool:
    """Write what a pull has found and give the lease back; False if another node has it by now."""
    return bool(write_pulls(session, [FoundRow(log, now_ms, columns)]))


class FoundRow(NamedTuple):
    """What a pull of a leased log has found."""

    log: ArchivedLog
    now_ms: Millis
    columns: dict[str, Any]


_HELD = (
    select(LogArchive.id, LogArchive.epoch, LogArchive.ended_ms, LogArchive.state, LogArchive.next_ms)
    .with_hint(LogArchive, "FORCE INDEX (PRIMARY)", "mysql")
    .where(among(LogArchive.id))
    .order_by(LogArchive.id)
    .with_for_update()
)


def write_pulls(session: Session, pulls: Sequence[FoundRow]) -> set[int]:
    """Write what pulls have found and give the leases back; return the ids that no other node has by now.

    ``columns`` of a row have the state and the next time as they follow from the pull; a run that has ended
    since, or whose instance is about to be gone since, is fetched once more at once.
    """
    row_by_id = {row.log.id: row for row in pulls}
    written_ids, growth = set[int](), list[tuple[JobOfDay, Room]]()
    changes = defaultdict[tuple[str, ...], list[bulk.Row]](list)
    for archive_id, epoch, ended_ms, state, next_ms in bulk.read_among(session, _HELD, sorted(row_by_id)):
        log, now_ms, columns = row_by_id[archive_id]
        if epoch != log.epoch:
            continue
        change = {"id": archive_id, "lease_until": 0, **columns}
        if ended_ms != log.ended_ms:
            change |= {"state": state, "next_ms": now_ms}
        elif next_ms == AT_ONCE != log.next_ms:
            change["next_ms"] = AT_ONCE
        if "chunks" in columns:
            change["segment"] = 0  # The index has not its new lines.
        changes[(*change,)].append(change)
        size, stored_size = columns.get("size", log.size), columns.get("stored", log.stored)
        growth.append((log.key, Room(size - log.size, stored_size - log.stored)))
        written_ids.add(log.id)
    for alike in changes.values():
        bulk.update_many(session, LogArchive, alike)
    room.add(session, room.total(growth))
    return written_ids


def write_end(session: Session, log: ArchivedLog, *, ended_ms: Millis) -> bool:
    """Note the end of the run of a leased log; False if that was done, or another node has it by now."""
    is_unended = and_(LogArchive.id == log.id, LogArchive.epoch == log.epoch, LogArchive.ended_ms == 0)
    columns = {"state": ArchiveState.ENDING.value, "ended_ms": ended_ms}
    return affected(session, update(LogArchive).where(is_unended).values(columns)) == 1


def take_over(session: Session, log: ArchivedLog) -> bool:
    """Begin to write a log as it was read, also a leased one; False if another has written it since."""
    statement = (
        update(LogArchive)
        .where(LogArchive.id == log.id, LogArchive.epoch == log.epoch, LogArchive.last_line == log.last_line)
        .values(epoch=log.epoch + 1)
    )
    return affected(session, statement) == 1


def delete_archive(session: Session, log: ArchivedLog) -> bool:
    """Delete the row of a leased log; False if another node has it by now."""
    statement = delete(LogArchive).where(LogArchive.id == log.id, LogArchive.epoch == log.epoch)
    if affected(session, statement) != 1:
        return False
    room.add(session, {log.key: Room(-log.size, -log.stored)})
    return True


def find_of_logs(session: Session, log_ids: Collection[int]) -> dict[int, ArchivedLog]:
    """Return the archived logs of runs, by log id."""
    query = select(*_COLUMNS).where(LogArchive.log_id.in_(list(log_ids)))
    return {row[1]: ArchivedLog._make(row) for row in bulk.read_rows(session, query)} if log_ids else {}


def hasten(session: Session, log_ids: Collection[int], *, next_ms: Millis) -> int:
    """Have the open logs of these runs fetched from a time on; return how many."""
    statement = update(LogArchive).where(
        LogArchive.log_id.in_(list(log_ids)), LogArchive.state == ArchiveState.OPEN
    )
    return affected(session, statement.values(next_ms=next_ms)) if log_ids else 0
