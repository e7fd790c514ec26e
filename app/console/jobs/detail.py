"""Job page: contents of its tabs, one at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.jobs.history.rows import HistoryRow, history_rows
from app.console.jobs.history.version_rows import VersionPage, version_page
from app.console.ui.backfills.rows import BackfillRow, row_of
from app.console.ui.bar_chart import BarChart
from app.console.ui.calendars.blackout_words import BlackoutLines, lines_of_job
from app.console.ui.completeness import Line, job_line
from app.console.ui.last_runs import ended_runs, last_runs_chart, statistics
from app.console.ui.limits.waiting_rows import WaitingRows, waiting_rows
from app.console.ui.limits.words import Share, shares_in
from app.console.ui.lists.listing import whole_number
from app.console.ui.rounds.of_job import After, find_after
from app.console.ui.waiting import Waiting, waiting_fires
from app.console.web.current import settings
from app.console.web.language import lazy_gettext
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.muting import is_muted
from app.domain.enums import GlueType
from app.domain.promises.promise import (
    Escalation,
    Promise,
    effective_promises,
    read_escalation,
    read_promises,
)
from app.domain.runs.statistics import Norm, Statistics, norm_of
from app.models.alarm import Alarm
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.skip import Skip
from app.services.alarms.coverage import Reach, reach_of
from app.services.backfills.views import active_of_job
from app.services.completeness.summary import find_last_days
from app.services.promises.lists import JobSummary, find_summary
from app.services.runs.planned_runs import PlannedRun, list_planned
from app.services.runs.reasons import find_reasons
from app.services.runs.waiting import WaitFilter
from app.store.alarms import alarms, mutes
from app.store.executors import groups
from app.store.jobs import glue, skips
from app.store.jobs import scheduling as job_store
from app.store.limits import listing
from app.store.pickers import overview

#: tabs, the first by default, with their titles
TABS = {
    "overview": lazy_gettext("Overview"),
    "runs": lazy_gettext("Runs"),
    "alarms": lazy_gettext("Alarms"),
    "versions": lazy_gettext("Versions"),
    "history": lazy_gettext("History"),
}
#: tabs that are refreshed, and that begin with why the job is failing
LIVE_TABS = ("overview", "runs")
#: bars of the strip, runs in the figures
BARS_MAX, RUNS_MAX = 60, 100
#: rows of the tabs
RUNS_SHOWN, SKIPS_SHOWN, VERSIONS_SHOWN = 25, 10, 25
#: planned runs of the overview
PLANNED_SHOWN = 10
#: runs of the overview that wait for a limit
WAITING_SHOWN = 5
#: alarms read, to be grouped
ALARMS_READ = 200


@dataclass(frozen=True, slots=True)
class Owed:
    """Promises of a job, its own and its group's, and its escalation, its own or its group's."""

    own: list[Promise]
    of_group: list[Promise]
    escalation: Escalation | None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that hold for a job."""

    shares: list[Share]
    #: name -> id of the named ones that exist
    ids: dict[str, int]
    #: most runs at once of its job and of its group; 0: no limit
    of_job: int
    of_group: int

    @property
    def is_set(self) -> bool:
        """Whether any limit holds."""
        return bool(self.shares or self.of_job or self.of_group)


@dataclass(frozen=True, slots=True)
class Overview:
    """Overview of the job and its last runs."""

    children: list[Job]
    logs: list[JobLog]
    #: why the last run failed or waits
    reason: str
    chart: BarChart
    statistics: Statistics
    #: the newest of them beside those before; None: too few
    norm: Norm | None
    waiting: list[Waiting]
    #: the first runs that wait for a limit
    limit_rows: WaitingRows
    mutes: list[Mute]
    #: the next runs planned for an instant
    planned_runs: list[PlannedRun]
    #: what became of the instants of the last days; None: none was due
    completeness: Line | None
    promises: JobSummary
    owed: Owed
    limits: Limits
    after: After
    #: those that are on for the job
    blackouts: BlackoutLines
    #: those that are active
    backfills: list[BackfillRow]


@dataclass(frozen=True, slots=True)
class Runs:
    """The last runs, and the scheduled times that were missed."""

    logs: list[JobLog]
    #: by log id
    reasons: dict[int, str]
    skips: list[Skip]


@dataclass(frozen=True, slots=True)
class AlarmRow:
    """Consecutive alarms with the same reason, state and outcome."""

    last: Alarm
    first: Alarm
    count: int


@dataclass(frozen=True, slots=True)
class Alarms:
    """The alarms of the job, newest first, and where they go."""

    reach: Reach
    rows: list[AlarmRow]
    mutes: list[Mute]


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the fields and of the code."""

    fields: VersionPage
    code: list[GlueVersion]


@dataclass(frozen=True, slots=True)
class History:
    """History of the job."""

    rows: list[HistoryRow]


Tab = Overview | Runs | Alarms | Versions | History


def page_of(session: Session, job: Job, tab: str, *, actor: Actor, now_ms: Millis) -> Tab:
    """Return what a tab of TABS shows of a job the actor may see; an unknown one is the first."""
    makers: dict[str, Callable[[], Tab]] = {
        "runs": lambda: _runs(session, job, actor),
        "alarms": lambda: _alarms(session, job, actor, now_ms),
        "versions": lambda: _versions(session, job, actor),
        "history": lambda: History(history_rows(session, job, actor=actor)),
    }
    return makers.get(tab, lambda: _overview(session, job, actor, now_ms))()


def _overview(session: Session, job: Job, actor: Actor, now_ms: Millis) -> Overview:
    logs = overview.find_job_logs(session, job.id, group_ids=actor.group_ids(Right.VIEW), limit=RUNS_MAX)
    reasons = find_reasons(session, logs[:BARS_MAX])
    children = job_store.find_jobs(session, job.child_ids).values()
    group = groups.find_groups(session, [job.job_group]).get(job.job_group)
    zone = ZoneInfo(settings().time_zone)
    return Overview(
        backfills=[row_of(view, job.time_zone) for view in active_of_job(session, job.id)],
        children=[child for child in children if actor.may(child.job_group, Right.VIEW)],
        logs=logs,
        reason=reasons.get(logs[0].id, "") if logs else "",
        chart=last_runs_chart(logs[:BARS_MAX], reasons),
        statistics=statistics(logs),
        norm=norm_of(ended_runs(logs)),
        waiting=waiting_fires(session, [job.job_group], now_ms=now_ms, job_id=job.id),
        limit_rows=waiting_rows(
            session, actor=actor, criteria=WaitFilter(job_id=job.id), limit=WAITING_SHOWN
        ),
        mutes=_mutes(session, job, now_ms),
        planned_runs=list_planned(session, job.id, now_ms=now_ms, limit=PLANNED_SHOWN),
        promises=find_summary(session, job, actor=actor),
        owed=_owed(group, job),
        limits=_limits(session, group, job),
        after=find_after(session, job, actor=actor),
        blackouts=lines_of_job(session, job.id, job.job_group, actor=actor, now_ms=now_ms),
        completeness=job_line(job.id, *find_last_days(session, actor, job.id, zone=zone, now_ms=now_ms)),
    )


def _owed(group: Group | None, job: Job) -> Owed:
    defaults = (group.promises, group.escalation) if group is not None else (None, None)
    promises = effective_promises(job.promises, defaults[0], job.schedule_type)
    own = read_promises(job.promises)
    return Owed(
        [promise for promise in promises if promise in own],
        [promise for promise in promises if promise not in own],
        read_escalation(job.escalation) or read_escalation(defaults[1]),
    )


def _limits(session: Session, group: Group | None, job: Job) -> Limits:
    shares = shares_in(job.limits)
    limits = listing.find_known(session, [share.limit for share in shares], None) if shares else {}
    ids = {name: limit.id for name, limit in limits.items()}
    return Limits(shares, ids, job.max_running, group.max_running if group is not None else 0)


def _runs(session: Session, job: Job, actor: Actor) -> Runs:
    logs = overview.find_job_logs(session, job.id, group_ids=actor.group_ids(Right.VIEW), limit=RUNS_SHOWN)
    return Runs(logs, find_reasons(session, logs), skips.list_skips(session, job.id, limit=SKIPS_SHOWN))


def _mutes(session: Session, job: Job, now_ms: Millis) -> list[Mute]:
    """Return the active mutes of the job and of its group."""
    all_mutes = mutes.find_covering(session, [(job.id, job.job_group)]).get(job.id, [])
    return [mute for mute in all_mutes if is_muted(mute.until_ms, now_ms)]


def _alarms(session: Session, job: Job, actor: Actor, now_ms: Millis) -> Alarms:
    group = groups.find_groups(session, [job.job_group]).get(job.job_group)
    rows = alarms.list_of_job(session, job.id, group_ids=actor.group_ids(Right.VIEW), limit=ALARMS_READ)
    reach = reach_of(session, job, group, settings())
    return Alarms(reach, group_alarms(rows), _mutes(session, job, now_ms))


def group_alarms(newest_first: Sequence[Alarm]) -> list[AlarmRow]:
    """Return alarms as rows, one for consecutive ones that differ only in their run."""
    rows: list[AlarmRow] = []
    for alarm in newest_first:
        last = rows[-1].last if rows else None
        if last is not None and (last.reason, last.state, last.outcome) == (
            alarm.reason,
            alarm.state,
            alarm.outcome,
        ):
            rows[-1] = AlarmRow(last, alarm, rows[-1].count + 1)
        else:
            rows.append(AlarmRow(alarm, alarm, 1))
    return rows


def _versions(session: Session, job: Job, actor: Actor) -> Versions:
    is_code = job.glue_type != GlueType.BEAN
    return Versions(
        fields=version_page(session, job, actor=actor, before=whole_number("before", 0)),
        code=glue.list_remarks(session, job.id, limit=VERSIONS_SHOWN) if is_code else [],
    )
