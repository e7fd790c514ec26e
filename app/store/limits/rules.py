"""Limits as a claim reads them: the rules of jobs, the rows to lock, and the jobs that share a limit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.enums import LimitKind, WhenFull
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit, LimitUse

#: kind and name: of a job or group its id
LimitName = tuple[LimitKind, str]


class Share(NamedTuple):
    """Named limit of a job."""

    job_id: int
    limit_id: int
    #: slots that a run takes
    weight: int
    #: all there are
    slots: int

    @classmethod
    def of(cls, row: Sequence[int]) -> Self:
        """Return the share of a row; another program may have stored any weight."""
        job_id, limit_id, weight, slots = row
        return cls(job_id, limit_id, max(weight, 1), slots)


class LimitRules(NamedTuple):
    """What a job says about its runs at once."""

    job_id: int
    job_group: int
    max_running: int
    when_full: str
    priority: int
    max_wait_s: int
    limit_key: str
    group_max: int
    shares: tuple[Share, ...] = ()

    @property
    def answer(self) -> WhenFull:
        """What to do when there is no slot; another program may have stored anything."""
        return WhenFull(self.when_full) if self.when_full in list(WhenFull) else WhenFull.WAIT

    @property
    def names(self) -> tuple[LimitName, ...]:
        """The limits of the job itself and of its group, if they have one."""
        own = ((LimitKind.JOB, str(self.job_id)),) if self.max_running > 0 else ()
        return (*own, *(((LimitKind.GROUP, str(self.job_group)),) if self.group_max > 0 else ()))


_COLUMNS = (
    Job.id,
    Job.job_group,
    Job.max_running,
    Job.when_full,
    Job.priority,
    Job.max_wait_s,
    Job.limit_key,
    Group.max_running,
)
_RULES = select(*_COLUMNS).outerjoin(Group, Group.id == Job.job_group).where(among(Job.id))
_SHARES = (
    select(LimitUse.job_id, LimitUse.limit_id, LimitUse.weight, Limit.slots)
    .join(Limit, Limit.id == LimitUse.limit_id)
    .order_by(LimitUse.limit_id)
)
_OF_JOBS, _OF_LIMITS = _SHARES.where(among(LimitUse.job_id)), _SHARES.where(among(LimitUse.limit_id))


def find_rules(session: Session, job_ids: Collection[int]) -> dict[int, LimitRules]:
    """Return the rules of the jobs that exist, by id; two statements."""
    if not job_ids:
        return {}
    shares: dict[int, list[Share]] = {}
    for row in bulk.read_among(session, _OF_JOBS, sorted(job_ids)):
        shares.setdefault(row[0], []).append(Share.of(row))
    rows = bulk.read_among(session, _RULES, sorted(job_ids))
    return {
        row[0]: LimitRules._make((*row[:-2], row[-2] or "", row[-1] or 0, tuple(shares.get(row[0], ()))))
        for row in rows
    }


_KEYS = select(Job.id, Job.limit_key, Job.executor_param).where(among(Job.id), Job.limit_key != "")


def find_keys(session: Session, job_ids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return `limit_key` and parameter of those of the jobs that have such a key, by id."""
    return {row[0]: (row[1], row[2] or "") for row in bulk.read_among(session, _KEYS, sorted(job_ids))}


def find_shares(session: Session, limit_ids: Collection[int]) -> list[Share]:
    """Return which jobs share these named limits."""
    rows = bulk.read_among(session, _OF_LIMITS, sorted(limit_ids)) if limit_ids else ()
    return [Share.of(row) for row in rows]


_IDS = select(Limit.id, Limit.kind, Limit.name).where(
    Limit.kind.in_([LimitKind.JOB.value, LimitKind.GROUP.value]), among(Limit.name)
)


def find_ids(session: Session, names: Iterable[LimitName]) -> dict[LimitName, int]:
    """Return the ids of those limits of jobs and groups that have a row."""
    unique = set(names)
    rows = bulk.read_among(session, _IDS, sorted({name for _, name in unique})) if unique else ()
    id_by_name = {(LimitKind(kind), name): int(limit_id) for limit_id, kind, name in rows}
    return {name: limit_id for name, limit_id in id_by_name.items() if name in unique}


def add_missing(session: Session, names: Iterable[LimitName]) -> dict[LimitName, int]:
    """Return the ids of limits of jobs and groups; those without a row get one."""
    unique = set(names)
    ids = find_ids(session, unique)
    if missing := sorted(unique - ids.keys()):
        rows = [
            {"kind": kind.value, "name": name, "group_id": int(name) if kind is LimitKind.GROUP else None}
            for kind, name in missing
        ]
        bulk.insert_ignore(session, Limit, rows)
        ids = find_ids(session, unique)
    return ids


_LOCKED = select(Limit.id).where(among(Limit.id)).order_by(Limit.id).with_for_update()
_TOUCHED = update(Limit).where(among(Limit.id)).values(epoch=Limit.epoch + 1)


def lock(session: Session, limit_ids: Collection[int]) -> None:
    """Lock limits until the commit, ids ascending; a cluster refuses the commit of all claims but one."""
    if limit_ids:
        bulk.read_among(session, _LOCKED, sorted(limit_ids))
        direct.change(session, _TOUCHED, {WANTED: sorted(limit_ids)})


_NAMES = select(Limit.id, Limit.kind, Limit.name).where(among(Limit.id))


def find_names(session: Session, limit_ids: Collection[int]) -> Mapping[int, LimitName]:
    """Return the kind and name of limits, by id."""
    rows = bulk.read_among(session, _NAMES, sorted(limit_ids)) if limit_ids else ()
    return {row[0]: (LimitKind(row[1]), row[2]) for row in rows}
