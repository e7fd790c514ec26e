"""What the form of a backfill is about: a job, or instants: missed ones, those of runs or of a backfill."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from flask import request
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.ui.backfills.rows import zone_of
from app.console.ui.lists.listing import ticked_ids, whole_number
from app.console.ui.lists.ranges import read_day
from app.console.web.current import current_actor, settings
from app.domain.access.permissions import Right, require_right
from app.domain.backfills.instants import Standing
from app.domain.backfills.kinds import INSTANTS_MAX, InstantState
from app.domain.completeness.days import interval_of
from app.domain.completeness.expected_instants import Interval
from app.domain.runs.logical_times import logical_of
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.backfills.backfills import BackfillDraft, get_backfill, plan_backfill
from app.services.completeness.job_day import find_missed, find_spans
from app.services.completeness.report import scope_of
from app.services.jobs import jobs
from app.services.runs import logs
from app.store.backfills.records import find_instants
from app.store.jobs import scheduling as job_store

#: most runs whose instants are taken: those of a page of the list
RUNS_MAX = 100
#: what is left of a backfill that is over
UNSUCCESSFUL_STATES = (InstantState.FAILED, InstantState.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Target:
    """A job, and the logical times that are named; without any they are those of a range."""

    job: Job
    times: tuple[Millis, ...] = ()

    @property
    def zone(self) -> ZoneInfo:
        """Zone of its schedule."""
        return zone_of(self.job.time_zone)


@dataclass(frozen=True, slots=True)
class Targets:
    """What the form is about: several jobs only where instants are named."""

    of_jobs: Sequence[Target]
    #: whether instants are named
    is_named: bool = False


def requested_targets(session: Session) -> Targets:
    """Return what the address names: ``?id=`` runs, ``?rest=`` of a backfill, or ``?job=``.

    With ``missed`` it is what was missed in certain days.

    Raises NotFound, PermissionDenied, and InvalidInput for too many runs.
    """
    if "id" in request.args:
        return Targets(_of_runs(session), is_named=True)
    if "rest" in request.args:
        return Targets([_rest_of(session, whole_number("rest", 0))], is_named=True)
    job = jobs.get_job(session, whole_number("job", 0), actor=current_actor(), right=Right.OPERATE)
    if "missed" not in request.args:
        return Targets([Target(job)])
    return Targets([Target(job, tuple(_missed_instants(session, job)))], is_named=True)


def _of_runs(session: Session) -> list[Target]:
    ids, actor = ticked_ids(RUNS_MAX), current_actor()
    if len(ids) > RUNS_MAX:
        raise InvalidInput("id", N_("at most %(limit)s runs", limit=RUNS_MAX))
    times = defaultdict[int, set[Millis]](set)
    for log in logs.list_existing(session, ids, actor=actor):
        if (logical_ms := logical_of(log)) is not None:
            times[log.job_id].add(logical_ms)
    job_by_id = job_store.find_jobs(session, [*times])
    for job in job_by_id.values():
        require_right(actor, job.job_group, Right.OPERATE, missing=jobs.MISSING)
    if not job_by_id:
        raise NotFound(jobs.MISSING)
    # In the order in which groups are locked.
    rows = sorted(job_by_id.values(), key=lambda job: (job.job_group, job.id))
    return [Target(job, tuple(sorted(times[job.id]))) for job in rows]


def _rest_of(session: Session, backfill_id: int) -> Target:
    """Return the instants of a backfill that have not succeeded in it."""
    actor = current_actor()
    backfill = get_backfill(session, backfill_id, actor=actor, right=Right.OPERATE)
    job = jobs.get_job(session, backfill.job_id, actor=actor, right=Right.OPERATE)
    rows = find_instants(session, backfill_id, states=UNSUCCESSFUL_STATES, limit=INSTANTS_MAX)
    return Target(job, tuple(sorted(row.logical_ms for row in rows)))


def _missed_instants(session: Session, job: Job) -> list[Millis]:
    """Return the instants of the days of the report that were due and did not run."""
    days = sorted(day for name in ("from", "to") if (day := read_day(request.args.get(name, ""))) is not None)
    if not days:
        return []
    zone = ZoneInfo(settings().time_zone)
    interval = Interval(interval_of(days[0], zone).from_ms, interval_of(days[-1], zone).until_ms)
    scope = scope_of(current_actor(), job_id=job.id)
    return find_missed(session, find_spans(session, scope, interval), interval, zone=zone, now_ms=now_ms())


def without_succeeded(session: Session, target: Target) -> Target:
    """Return a target with those of its named instants of which no run has succeeded."""
    plan = plan_backfill(
        session,
        target.job.id,
        BackfillDraft(times=target.times),
        actor=current_actor(),
        zone=settings().time_zone,
        now_ms=now_ms(),
    )
    left = (instant.logical_ms for instant in plan.instants if instant.standing is not Standing.SUCCEEDED)
    return replace(target, times=tuple(left))
