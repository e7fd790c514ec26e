"""What needs attention: failing jobs, unresolved runs, executors and alarm channels, the worst few of each.

Only what the groups are about that a user may view. Failing jobs that are muted are counted, not listed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.executors.draining import leave_out
from app.domain.jobs.failing import Failing
from app.models.group import Group
from app.models.log import JobLog
from app.services.alarms import mutes
from app.services.alarms.channel_health import find_broken
from app.services.alarms.mutes import Muted
from app.services.answer_cache import LATELY_MS, AnswerCache
from app.services.promises.lists import IncidentRow, count_open, find_open
from app.services.report import failing as failing_jobs
from app.services.runs import reasons
from app.store.executors import drains, last_seen
from app.store.jobs import scheduling as job_store
from app.store.jobs.scheduling import JobName
from app.store.pickers import overview
from app.store.pickers.overview import OpenRun
from app.store.runs.recent import Run

#: rows of failing jobs, and of any other kind
SHOWN, SHOWN_OTHERS = 8, 4
#: newest failing jobs among which those that are not muted are looked for
LOOKED_AT = 200
#: mutes that are read
MUTES_MAX = 200
#: how long it may be shown which channels were broken, which the alarms of seven days decide
CHANNELS_KEPT_MS: Millis = 15 * SECOND_MS


@dataclass(frozen=True, slots=True)
class FailingJob:
    """Job whose newest ended run is no success."""

    job: JobName
    last: Run
    #: its failures in a row; None: it has succeeded meanwhile, or its failures are not counted yet
    failing: Failing[Run] | None
    #: why the last run failed, in English
    reason: str
    may_operate: bool


@dataclass(frozen=True, slots=True)
class UnresolvedRun:
    """Unresolved run whose job is not failing; job None: it was deleted or is not visible to the reader."""

    log: JobLog
    job: JobName | None


@dataclass(frozen=True, slots=True)
class Offline:
    """Group without instances, and when the last one was seen; None if unknown."""

    group: Group
    last_seen_ms: Millis | None


class BrokenChannel(NamedTuple):
    """Alarm channel that loses its messages: how many, since when, and the last error."""

    id: int
    name: str
    lost: int
    since_ms: Millis
    problem: str


@dataclass(frozen=True, slots=True)
class Attention:
    """Rows, each the worst few of a kind, and how many there are."""

    failing: list[FailingJob]
    #: failing jobs, with those that are muted, of the newest LOOKED_AT
    failing_count: int
    muted_count: int
    #: newest open incidents
    incidents: list[IncidentRow]
    incident_count: int
    unresolved_runs: list[UnresolvedRun]
    unresolved_count: int
    offline: list[Offline]
    #: groups whose instances are all drained, so that every run fails
    drained_groups: list[Group]
    channels: list[BrokenChannel]
    #: mutes in effect, which are no problem
    mutes: list[Muted]

    @property
    def rows(self) -> int:
        """Number of rows of failing jobs that are listed or not; muted ones are not."""
        return self.failing_count - self.muted_count


_broken = AnswerCache[list[BrokenChannel]](CHANNELS_KEPT_MS)
_rows = AnswerCache[dict[int, Failing[Run]]](LATELY_MS)


def find_attention(
    session: Session,
    actor: Actor,
    groups: Sequence[Group],
    open_runs: Sequence[OpenRun],
    *,
    now_ms: Millis,
) -> Attention:
    """Return what needs attention; ``groups`` and ``open_runs`` are those that the actor may view."""
    group_ids = actor.group_ids(Right.VIEW)
    last_failures = failing_jobs.find_failing_lately(session, group_ids)
    muted_rows = mutes.list_muted(session, actor, now_ms=now_ms, limit=MUTES_MAX)
    candidates = list(last_failures.values())[:LOOKED_AT]
    names = job_store.find_names(session, [run.job_id for run in candidates])
    is_loud = _loudness(muted_rows)
    loud = [run for run in candidates if run.job_id in names and is_loud(names[run.job_id])]
    last_ids = {run.id for run in last_failures.values()}
    unknown_runs = [run for run in open_runs if overview.is_unresolved(run) and run.id not in last_ids]
    incident_count = count_open(session, group_ids)
    return Attention(
        failing=_failing(session, actor, loud[:SHOWN], names),
        failing_count=len(last_failures),
        muted_count=sum(run.job_id in names for run in candidates) - len(loud),
        incidents=find_open(session, actor, limit=SHOWN_OTHERS) if incident_count else [],
        incident_count=incident_count,
        unresolved_runs=_unresolved_runs(session, actor, unknown_runs),
        unresolved_count=len(unknown_runs),
        offline=find_offline(session, groups),
        drained_groups=find_drained(session, groups),
        channels=_broken.get(group_ids, lambda: _channels(session, actor, now_ms)),
        mutes=muted_rows,
    )


def find_offline(session: Session, groups: Sequence[Group]) -> list[Offline]:
    """Return the groups without instances.

    One that never had any counts only if it has a schedule that is on.
    """
    empty = [group for group in groups if not group.addresses]
    last = last_seen.find_last(session, {group.app_name for group in empty}) if empty else {}
    busy_ids = overview.find_groups_with_schedules(session, [group.id for group in empty]) if empty else set()
    without_instances = [group for group in empty if group.id in busy_ids or group.app_name in last]
    return [Offline(group, last.get(group.app_name)) for group in without_instances]


def find_drained(session: Session, groups: Sequence[Group]) -> list[Group]:
    """Return the groups that have instances, all of them drained."""
    rows = drains.find_drained(session, [group.id for group in groups])
    return [
        group
        for group in groups
        if group.id in rows and group.addresses and not leave_out(group.addresses, rows[group.id]).open
    ]


def _channels(session: Session, actor: Actor, now_ms: Millis) -> list[BrokenChannel]:
    return [
        BrokenChannel(
            row.channel.id,
            row.channel.name,
            row.health.lost,
            row.health.since_ms or now_ms,
            row.health.problem,
        )
        for row in find_broken(session, actor=actor, now_ms=now_ms)
    ]


def _failing(
    session: Session, actor: Actor, last: Sequence[Run], names: Mapping[int, JobName]
) -> list[FailingJob]:
    job_ids = [run.job_id for run in last]
    group_ids = actor.group_ids(Right.VIEW)
    rows = _rows.get(group_ids, lambda: failing_jobs.of_jobs(session, job_ids, group_ids=group_ids))
    why = reasons.find_reasons(session, last)
    return [
        FailingJob(
            names[run.job_id],
            run,
            rows.get(run.job_id),
            why.get(run.id, ""),
            may_operate=actor.may(names[run.job_id].job_group, Right.OPERATE),
        )
        for run in last
    ]


def _unresolved_runs(session: Session, actor: Actor, open_runs: Sequence[OpenRun]) -> list[UnresolvedRun]:
    runs = overview.find_unresolved(session, open_runs, limit=SHOWN_OTHERS)
    names = find_visible_names(session, actor, {run.job_id for run in runs})
    return [UnresolvedRun(run, names.get(run.job_id)) for run in runs]


def find_visible_names(session: Session, actor: Actor, job_ids: Collection[int]) -> dict[int, JobName]:
    """Return the names of the jobs visible to the actor; a job may have been moved since it ran."""
    names = job_store.find_names(session, job_ids)
    return {job_id: name for job_id, name in names.items() if actor.may(name.job_group, Right.VIEW)}


def _loudness(rows: Sequence[Muted]) -> Callable[[JobName], bool]:
    """Return whether a job is not muted by any of these mutes."""
    job_ids = {row.mute.job_id for row in rows if row.mute.job_id}
    group_ids = {row.mute.group_id for row in rows if row.mute.group_id}
    return lambda job: job.id not in job_ids and job.job_group not in group_ids
