"""Job page: recent runs, history and alarms of one job."""

import json
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Millis
from app.console.ui.audit_entries import EntryRow, entry_rows
from app.console.ui.sparkline import Timeline, statistics, timeline_of
from app.console.ui.waiting import Waiting, waiting_fires
from app.domain.enums import GlueType
from app.domain.muting import is_muted
from app.domain.permissions import Actor, Right
from app.domain.run_statistics import Statistics
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.glue import GlueVersion
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.skip import Skip
from app.store import alarms, audit, glue, mutes, overview, skips
from app.store import jobs as job_store

#: rows of the short lists, bars of the timeline, runs in the statistics
SHOWN, DRAWN, COUNTED = 10, 60, 100


@dataclass(frozen=True, slots=True)
class JobPage:
    """Job page: what it shows beside the definition of the job."""

    children: list[Job]
    logs: list[JobLog]
    timeline: Timeline
    statistics: Statistics
    skips: list[Skip]
    waiting: list[Waiting]
    versions: list[GlueVersion]
    trail: list[EntryRow]
    alarms: list[Alarm]
    #: active mutes of the job and of its group
    mutes: list[Mute]


def page_of(session: Session, job: Job, *, actor: Actor, now_ms: Millis) -> JobPage:
    """Return the page of a job the actor may see."""
    logs = overview.find_job_logs(session, job.id, group_ids=actor.group_ids(Right.VIEW), limit=COUNTED)
    trail = audit.list_of_object(session, "job", job.id, limit=SHOWN)
    children = job_store.find_jobs(session, job.child_ids).values()
    return JobPage(
        children=[child for child in children if actor.may(child.job_group, Right.VIEW)],
        logs=logs[:SHOWN],
        timeline=timeline_of(logs[:DRAWN]),
        statistics=statistics(logs),
        skips=skips.list_skips(session, job.id, limit=SHOWN),
        waiting=waiting_fires(session, [job.job_group], now_ms=now_ms, job_id=job.id),
        versions=glue.list_remarks(session, job.id, limit=SHOWN) if job.glue_type != GlueType.BEAN else [],
        trail=entry_rows(session, _visible(trail, actor), actor=actor),
        alarms=alarms.list_of_job(session, job.id, group_ids=actor.group_ids(Right.VIEW), limit=SHOWN),
        mutes=[
            mute
            for mute in mutes.find_covering(session, [(job.id, job.job_group)]).get(job.id, [])
            if is_muted(mute.until_ms, now_ms)
        ],
    )


def _visible(newest_first: list[AuditEntry], actor: Actor) -> list[AuditEntry]:
    """Return the entries since the job was moved out of a group that the actor cannot see."""
    if actor.is_admin:
        return newest_first
    for number, entry in enumerate(newest_first, 1):
        if entry.action == "job.update" and not _came_from_visible(entry.changes or "{}", actor):
            return newest_first[:number]
    return newest_first


def _came_from_visible(changes: str, actor: Actor) -> bool:
    """Return whether the job was in a visible group before a change; False if the entry is unreadable."""
    try:
        moved = json.loads(changes).get("job_group")
    except ValueError:
        return False
    return not isinstance(moved, list) or actor.may(moved[0], Right.VIEW)
