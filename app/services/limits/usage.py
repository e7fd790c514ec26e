"""Use of limits: slots in use, the runs that have them, how many wait, the jobs that share them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import LimitKind
from app.errors import NotFound
from app.models.group import Group
from app.models.job import Job
from app.models.limit import Limit
from app.services.limits.limits import LIMITS_MAX, MISSING, require_visible
from app.store.base.paging import to_id
from app.store.executors import groups as group_store
from app.store.jobs import scheduling as job_store
from app.store.limits import listing, usage, waiting_list
from app.store.limits.listing import ListedLimit
from app.store.limits.waiting_list import Holder

#: named limits of the list, limits of jobs and executors that runs wait for
LISTED_MAX, OWN_MAX = LIMITS_MAX, 100
#: runs and jobs of the page of a limit
HOLDERS_MAX, JOBS_MAX = 200, 200


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """A limit and how much of it is in use."""

    kind: LimitKind
    #: of a named limit its row, of the others the job or group
    of_id: int
    #: its own name, or that of the job or group
    name: str
    #: None: jobs of all executors may use it
    group_id: int | None
    slots: int
    used: int
    waiting: int
    #: that use a named one
    jobs: int = 0
    #: of its row; None: no run of the job or group has needed it yet
    row_id: int | None = None
    #: of a job: its runs count for each value of this text
    key: str = ""


@dataclass(frozen=True, slots=True)
class Holders:
    """The runs that have the slots of a limit and that the reader may see."""

    rows: list[Holder]
    #: how many belong to other executors
    hidden_count: int
    is_cut: bool


def list_usage(session: Session, *, actor: Actor) -> list[LimitUsage]:
    """Return the named limits that an actor may see, by name, then others that runs wait for."""
    if not actor.has_anywhere(Right.VIEW):
        return []
    rows = listing.list_named(session, actor.group_ids(Right.VIEW), limit=LISTED_MAX)
    waiting = usage.count_waiting(session)
    return [*_with_names(session, rows, waiting), *_own(session, actor, waiting, {row.id for row in rows})]


def get_usage(session: Session, limit_id: int, *, actor: Actor) -> LimitUsage:
    """Return a limit of any kind by its row; raises NotFound for one that the actor may not see."""
    limit = usage.find_limits(session, [limit_id]).get(limit_id)
    if limit is None:
        raise NotFound(MISSING)
    if limit.kind == LimitKind.NAMED:
        require_visible(actor, limit.group_id)
        row = listing.find_named(session, limit.name)
        assert row is not None  # it has just been read
        return _with_names(session, [row], usage.count_waiting(session))[0]
    rows = _own(session, actor, {limit_id: 0} | usage.count_waiting(session), (), only=limit)
    if not rows:
        raise NotFound(MISSING)
    return rows[0]


def usage_of_job(session: Session, job: Job) -> LimitUsage:
    """Return the own limit of a job, which may have none."""
    limit = usage.find_own(session, LimitKind.JOB, job.id)
    waiting = usage.count_waiting(session).get(limit.id, 0) if limit is not None else 0
    used = usage.count_used_of_jobs(session, [job.id])
    return _of_job(job, used, waiting, limit.id if limit is not None else None)


def usage_of_group(session: Session, group: Group) -> LimitUsage:
    """Return the own limit of an executor group, which may have none."""
    limit = usage.find_own(session, LimitKind.GROUP, group.id)
    waiting = usage.count_waiting(session).get(limit.id, 0) if limit is not None else 0
    used = usage.count_used_of_groups(session, [group.id])
    return _of_group(group, used, waiting, limit.id if limit is not None else None)


def list_holders(session: Session, limit: LimitUsage, *, actor: Actor) -> Holders:
    """Return the runs that have the slots of a limit."""
    rows = waiting_list.list_holders(session, limit.kind, limit.of_id, limit=HOLDERS_MAX)
    visible = [row for row in rows if actor.may(row.group_id, Right.VIEW)]
    return Holders(visible, len(rows) - len(visible), len(rows) == HOLDERS_MAX)


def list_jobs(session: Session, limit: LimitUsage, *, actor: Actor) -> list[tuple[Job, int]]:
    """Return the jobs that use a named limit, with the slots of a run; those that the actor may see."""
    if limit.kind is not LimitKind.NAMED:
        return []
    rows = usage.find_jobs(session, limit.of_id, limit=JOBS_MAX)
    return [(job, weight) for job, weight in rows if actor.may(job.job_group, Right.VIEW)]


def _with_names(session: Session, rows: Sequence[ListedLimit], waiting: dict[int, int]) -> list[LimitUsage]:
    used = listing.count_used(session, [row.id for row in rows])
    return [
        LimitUsage(
            LimitKind.NAMED,
            row.id,
            row.name,
            row.group_id,
            row.slots,
            used.get(row.id, 0),
            waiting.get(row.id, 0),
            row.jobs,
            row.id,
        )
        for row in rows
    ]


def _own(
    session: Session,
    actor: Actor,
    waiting: dict[int, int],
    named_ids: Collection[int],
    *,
    only: Limit | None = None,
) -> list[LimitUsage]:
    """Return the limits of jobs and groups that runs wait for, those of groups first."""
    ids = sorted(
        (limit_id for limit_id in waiting if limit_id not in named_ids),
        key=lambda limit_id: -waiting[limit_id],
    )
    limits = {only.id: only} if only is not None else usage.find_limits(session, ids[:OWN_MAX])
    places = {
        kind: {to_id(row.name) or 0: row.id for row in limits.values() if row.kind == kind}
        for kind in (LimitKind.GROUP, LimitKind.JOB)
    }
    groups = group_store.find_groups(session, [*places[LimitKind.GROUP]])
    jobs = job_store.find_jobs(session, [*places[LimitKind.JOB]])
    of_groups = usage.count_used_of_groups(session, [*groups])
    of_jobs = usage.count_used_of_jobs(session, [*jobs])
    rows = list[LimitUsage]()
    for kind, of_id, row_id in ((scope, *place) for scope in places for place in places[scope].items()):
        group, job = groups.get(of_id), jobs.get(of_id)
        if kind is LimitKind.GROUP and group is not None and actor.may(group.id, Right.VIEW):
            rows.append(_of_group(group, of_groups, waiting[row_id], row_id))
        elif kind is LimitKind.JOB and job is not None and actor.may(job.job_group, Right.VIEW):
            rows.append(_of_job(job, of_jobs, waiting[row_id], row_id))
    return rows


def _of_job(job: Job, used: dict[int, int], waiting: int, row_id: int | None) -> LimitUsage:
    return LimitUsage(
        LimitKind.JOB,
        job.id,
        f"{job.id} {job.job_desc}",
        job.job_group,
        job.max_running,
        used.get(job.id, 0),
        waiting,
        row_id=row_id,
        key=job.limit_key or "",
    )


def _of_group(group: Group, used: dict[int, int], waiting: int, row_id: int | None) -> LimitUsage:
    return LimitUsage(
        LimitKind.GROUP,
        group.id,
        group.title,
        group.id,
        group.max_running,
        used.get(group.id, 0),
        waiting,
        row_id=row_id,
    )
