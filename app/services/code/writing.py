"""Writing of plans: groups and channels by their services, all jobs in bulk."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock
from app.domain.access.permissions import Actor
from app.domain.code.calendar_plans import CalendarPlan
from app.domain.code.document import CALENDARS, CHANNELS, ENABLED, GROUPS, at_place
from app.domain.code.plan import Action, ObjectPlan
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.errors import InvalidInput
from app.services.alarms import channel_setup
from app.services.calendars import calendars
from app.services.code.channel_plans import ChannelPlan
from app.services.code.group_plans import GroupPlan
from app.services.code.job_plans import JobPlan
from app.services.code.plan import PlannedObject, Plans
from app.services.executors import groups
from app.services.jobs import jobs
from app.services.jobs.job_writes import JobWrite, write_jobs
from app.services.jobs.replan import switch_off, switch_on
from app.store.alarms import mutes
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB


@dataclass(slots=True)
class Ids:
    """Ids that new objects got: provisional -> stored; those of channels and calendars by name."""

    groups: dict[int, int] = field(default_factory=dict)
    jobs: dict[int, int] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)
    calendars: dict[str, int] = field(default_factory=dict)

    def group(self, group_id: int) -> int:
        """Return the stored id of a group."""
        return self.groups.get(group_id, group_id)

    def job(self, job_id: int) -> int:
        """Return the stored id of a job."""
        return self.jobs.get(job_id, job_id)

    def of(self, plan: PlannedObject) -> int:
        """Return the stored id of a planned object."""
        if isinstance(plan, GroupPlan):
            return self.group(plan.group_id)
        if isinstance(plan, JobPlan):
            return self.job(plan.wish.job_id)
        if isinstance(plan, CalendarPlan):
            return self.calendars.get(plan.name, plan.calendar_id)
        return self.channels.get(plan.name, plan.channel_id)

    def final(self, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return members of an object with stored ids in place of provisional ones."""
        stored_values = dict(values)
        if "group_id" in stored_values:
            stored_values["group_id"] = self.group(stored_values["group_id"])
        if CHILDREN in stored_values:
            stored_values[CHILDREN] = [self.job(child_id) for child_id in stored_values[CHILDREN]]
        if RUNS_AFTER in stored_values:
            ids = map(self.job, named_jobs(stored_values[RUNS_AFTER]))
            stored_values[RUNS_AFTER] = with_named(stored_values[RUNS_AFTER], ids)
        if kind == CHANNEL:
            for name, id_of in (("groups", self.group), ("jobs", self.job)):
                if name in stored_values:
                    stored_values[name] = sorted(id_of(object_id) for object_id in stored_values[name])
        return stored_values


def write_plans(session: Session, plans: Plans, *, actor: Actor, clock: Clock) -> Ids:
    """Write all plans in the transaction of the caller, who holds the locks; return the new ids."""
    ids = Ids()
    for group in plans.groups:
        if group.draft is not None:
            with _at(GROUPS, group.app_name):
                ids.groups[group.group_id] = _write_group(session, group, actor=actor, clock=clock)
    for plan in plans.calendars:
        if plan.draft is not None:
            with _at(CALENDARS, plan.name):
                calendar = calendars.put_calendar(session, plan.name, plan.draft, actor=actor, clock=clock)
                ids.calendars[plan.name] = calendar.id
    _write_jobs(session, plans.jobs, ids, actor=actor, clock=clock)
    for channel in plans.channels:
        if channel.draft is not None:
            with _at(CHANNELS, channel.name):
                ids.channels[channel.name] = _write_channel(session, channel, ids, actor=actor, clock=clock)
    _delete(session, plans.deletions, actor=actor, clock=clock)
    return ids


@contextmanager
def _at(section: str, key: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as exc:
        raise at_place(exc, section, key) from exc


def _write_group(session: Session, plan: GroupPlan, *, actor: Actor, clock: Clock) -> int:
    assert plan.draft is not None
    if plan.group_id < 0:
        return groups.add_group(session, plan.draft, actor=actor, now_ms=clock())
    groups.update_group(session, plan.group_id, plan.draft, actor=actor, now_ms=clock())
    return plan.group_id


def _write_jobs(session: Session, plans: Sequence[JobPlan], ids: Ids, *, actor: Actor, clock: Clock) -> None:
    writes = [_with_group(plan.write, ids) for plan in plans if plan.write is not None]
    now_ms = clock()
    for write in writes:
        before = write.before.get("job_group")
        if isinstance(before, int) and before != write.columns["job_group"]:
            mutes.split_off(session, write.job_id, before, now_ms=now_ms)
    # first: a schedule that is on cannot be changed to one without a further instant, and one that the scan
    # has just stopped would be on again
    switch_off(session, [plan.wish.job_id for plan in plans if _stays_off(plan)], clock=clock)
    if writes:
        ids.jobs |= write_jobs(session, writes, actor=actor, clock=clock)
    switch_on(session, [ids.job(plan.wish.job_id) for plan in plans if plan.switch], clock=clock)


def _stays_off(plan: JobPlan) -> bool:
    is_replanned = plan.write is not None and plan.write.replan is not None
    return plan.switch is False or (is_replanned and plan.wish.members.get(ENABLED) is False)


def _with_group(write: JobWrite, ids: Ids) -> JobWrite:
    if not write.columns:
        return write
    group_id = write.columns["job_group"]
    assert isinstance(group_id, int)
    return replace(write, columns={**write.columns, "job_group": ids.group(group_id)})


def _write_channel(session: Session, plan: ChannelPlan, ids: Ids, *, actor: Actor, clock: Clock) -> int:
    assert plan.draft is not None
    draft = replace(
        plan.draft,
        group_ids=[ids.group(group_id) for group_id in plan.draft.group_ids],
        job_ids=[ids.job(job_id) for job_id in plan.draft.job_ids],
    )
    if plan.channel_id == 0:
        return channel_setup.add_channel(session, draft, actor=actor, now_ms=clock())
    channel_setup.update_channel(session, plan.channel_id, draft, actor=actor, now_ms=clock())
    return plan.channel_id


def _delete(session: Session, plans: Sequence[ObjectPlan], *, actor: Actor, clock: Clock) -> None:
    """Delete jobs, then channels and calendars, then groups, which must have no jobs left."""
    object_ids: dict[str, list[int]] = {JOB: [], CHANNEL: [], CALENDAR: [], GROUP: []}
    for plan in plans:
        if plan.action is Action.DELETE and plan.object_id:
            object_ids[plan.kind].append(plan.object_id)
    if object_ids[JOB]:
        jobs.remove_jobs(session, object_ids[JOB], actor=actor, now_ms=clock())
    for channel_id in object_ids[CHANNEL]:
        channel_setup.remove_channel(session, channel_id, actor=actor, now_ms=clock())
    for calendar_id in object_ids[CALENDAR]:
        calendars.remove_by_id(session, calendar_id, actor=actor, clock=clock)
    for group_id in object_ids[GROUP]:
        groups.remove_group(session, group_id, actor=actor, now_ms=clock())
