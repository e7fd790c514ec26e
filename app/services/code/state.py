"""Stored state that a plan is compared with: groups, jobs and channels, read by a few statements."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.archive.kinds import KEEPING
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.drafts import read_draft
from app.domain.code import calendar_plans
from app.domain.code.calendar_plans import CalendarPlan, PresentCalendar, calendar_values
from app.domain.code.document import (
    ALARM_CHANNELS,
    AUTOMATIC,
    CALENDARS,
    CODE,
    ENABLED,
    MANUAL,
    place,
    trim,
)
from app.domain.code.plan import code_shown
from app.domain.enums import AddressType, GlueType, TriggerStatus
from app.domain.jobs.members import MEMBER_OF, read_members
from app.domain.jobs.structures import GROUP_STRUCTURES
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.domain.text.texts import fold
from app.errors import InvalidInput, PermissionDenied
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.services.alarms.targets import settings_of
from app.services.calendars.calendars import WITHOUT_JAVA
from app.services.code.circles import find_links
from app.settings.sealing import sealer
from app.store.alarms import channels
from app.store.alarms.channels import ScopedChannel
from app.store.calendars.calendars import StoredCalendar, list_calendars
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists
from app.store.jobs import tags as job_tags
from app.store.jobs.managed_objects import CALENDAR, CHANNEL, GROUP, JOB, ManagedObject, list_managed


@dataclass(frozen=True)
class State:
    """Stored state that a plan is based on."""

    #: those the actor may see
    groups: Mapping[int, Group]
    #: columns of the jobs, by id
    definitions: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    #: of these jobs, all that follow them and their predecessors: group id and ids of children
    links: Mapping[int, tuple[int, Collection[int]]] = field(default_factory=dict)
    #: of the same jobs: ids of those that run after them
    followers: Mapping[int, Collection[int]] = field(default_factory=dict)
    tags: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    channels: Mapping[int, ScopedChannel] = field(default_factory=dict)
    calendars: Mapping[int, StoredCalendar] = field(default_factory=dict)
    #: by kind and key
    managed_by_key: Mapping[tuple[str, str], ManagedObject] = field(default_factory=dict)
    #: group ids of the managed jobs that exist, where it matters which groups they are in now
    group_id_by_job: Mapping[int, int] = field(default_factory=dict)
    #: present key -> key of managed jobs whose group was renamed, for references to what a document lacks
    renamed_keys: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> dict[int, Job]:
        """The jobs by id."""
        return {job_id: Job(**columns) for job_id, columns in self.definitions.items()}

    @cached_property
    def keys(self) -> dict[tuple[str, int], str]:
        """Kind and id of an object -> its key, of those that are managed."""
        return {(owner.kind, owner.object_id): owner.key for owner in self.managed_by_key.values()}

    @property
    def first_provisional(self) -> int:
        """Id from which new jobs count down.

        Theirs have as many digits as the final ids will have, because the text of children is limited.
        """
        return -max(self.links, default=0) - 1

    @cached_property
    def routes(self) -> dict[int, list[str]]:
        """Job id -> names of the channels that name the job."""
        names_by_job: dict[int, list[str]] = {}
        for channel in self.channels.values():
            for job_id in channel.job_ids:
                names_by_job.setdefault(job_id, []).append(channel.channel.name)
        return {job_id: sorted(names) for job_id, names in names_by_job.items()}

    def job_values(self, job: Job) -> dict[str, Any]:
        """Return member -> present value of a job, its code as length and hash."""
        members = read_members(job, self.tags.get(job.id, ()))
        values = {name: trim(name, value) for name, value in members.items()}
        values["children"] = [child for child in values["children"] if child in self.links]
        predecessors = (job_id for job_id in named_jobs(values[RUNS_AFTER]) if job_id in self.links)
        values[RUNS_AFTER] = with_named(values[RUNS_AFTER], predecessors)
        values[ENABLED] = job.trigger_status == TriggerStatus.RUNNING
        values[ALARM_CHANNELS] = self.routes.get(job.id, [])
        if job.glue_type != GlueType.BEAN:
            values[CODE] = code_value(job.glue_type, job.glue_source or "")
        return values

    def predecessors_of(self, job_id: int) -> list[int]:
        """Return the jobs after which a job runs now."""
        return [predecessor_id for predecessor_id, followers in self.followers.items() if job_id in followers]

    def present(self, kind: str, object_id: int) -> dict[str, Any] | None:
        """Return member -> present value of an object; None if it is gone, or not visible."""
        if kind == JOB:
            job = self.jobs.get(object_id)
            return self.job_values(job) if job is not None else None
        if kind == GROUP:
            group = self.groups.get(object_id)
            return group_values(group) if group is not None else None
        if kind == CALENDAR:
            row = self.calendars.get(object_id)
            return calendar_values(row.calendar) if row is not None else None
        channel = self.channels.get(object_id)
        return channel_values(channel) if channel is not None else None

    def is_same_as(self, other: "State") -> bool:
        """Whether what is planned from the one holds for the other."""
        return self._compared_values() == other._compared_values()

    def _compared_values(self) -> tuple[object, ...]:
        # Values are compared: each transaction has its own objects, and registrations change addresses.
        groups = {group_id: (group.app_name, group_values(group)) for group_id, group in self.groups.items()}
        channels = {key: (item.channel.name, channel_values(item)) for key, item in self.channels.items()}
        links = self.links, self.followers
        versions = {key: row.number for key, row in self.calendars.items()}
        return groups, self.definitions, links, self.tags, channels, versions, self.managed_by_key

    def managed_object(self, kind: str, key: str) -> ManagedObject | None:
        """Return a managed object; None if it is not managed or gone."""
        existing: Mapping[str, Collection[int]] = {
            JOB: self.jobs,
            GROUP: self.groups,
            CHANNEL: self.channels,
            CALENDAR: self.calendars,
        }
        owner = self.managed_by_key.get((kind, key))
        return owner if owner is not None and owner.object_id in existing[kind] else None

    def owner_of(self, kind: str, object_id: int) -> ManagedObject | None:
        """Return what an object is managed as, also if it was renamed since; None if it is not managed."""
        return self.managed_by_key.get((kind, self.keys.get((kind, object_id), "")))

    def name_of(self, kind: str, object_id: int) -> str:
        """Return the AppName of a group or the name of another; nothing if it is gone, and for jobs."""
        if kind == CALENDAR and object_id in self.calendars:
            return self.calendars[object_id].calendar.name
        group, channel = self.groups.get(object_id), self.channels.get(object_id)
        if kind == GROUP and group is not None:
            return group.app_name
        return channel.channel.name if kind == CHANNEL and channel is not None else ""

    def present_name(self, kind: str, key: str) -> str:
        """Return the present name of a managed group or channel; the key of any other, and if it is gone."""
        owner = self.managed_by_key.get((kind, key))
        return (self.name_of(kind, owner.object_id) if owner is not None else "") or key

    def renamed_to(self, kind: str, key: str) -> str:
        """Return the present name of a managed group or channel that was renamed; nothing for any other."""
        name = self.present_name(kind, key)
        return "" if comparable(kind, name) == comparable(kind, key) else name

    def id_named(self, kind: str, name: str) -> int:
        """Return the id of a group with this AppName or another with this name; 0: none, and for jobs."""
        objects = {GROUP: self.groups, CHANNEL: self.channels, CALENDAR: self.calendars}
        ids: Collection[int] = objects.get(kind, {})
        target = comparable(kind, name)
        return next((own_id for own_id in ids if comparable(kind, self.name_of(kind, own_id)) == target), 0)

    def present_key(self, key: str, group_id: int) -> str:
        """Return the key of a managed job with the AppName of its group, if the actor may see that."""
        group = self.groups.get(group_id)
        return f"{group.app_name}/{key.rpartition('/')[2]}" if group is not None else key

    def managed_key(self, key: str) -> str:
        """Return the key of the managed job that a document names by its present key; any other as it is."""
        return self.renamed_keys.get(key, key)

    def notes_on_new(self, kind: str, key: str) -> tuple[str, ...]:
        """Return the notes of a plan that makes a group or channel beside one that was renamed."""
        name = self.renamed_to(kind, key)
        return (f"it was renamed to {name} in the console; this makes another {kind}",) if name else ()


def comparable(kind: str, name: str) -> str:
    """Return a name as it is compared: letter case makes no difference in those of channels."""
    return fold(name) if kind == CHANNEL else name


def code_value(language: str, source: str | None) -> dict[str, Any]:
    """Return the value of a job's code: its language, and length and hash of its source if that is given."""
    return {"language": language, **(code_shown(source) or {})}


def whole_code(job: Job) -> dict[str, str]:
    """Return a job's code with its source, as an undo writes it back."""
    return {
        "language": job.glue_type,
        "source": job.glue_source or "",
        "remark": job.glue_remark or "",
    }


def group_values(group: Group) -> dict[str, Any]:
    """Return member -> present value of a group; an automatic one has no addresses of its own."""
    is_manual = group.address_type == AddressType.MANUAL
    return {
        "title": group.title,
        "address_type": MANUAL if is_manual else AUTOMATIC,
        "addresses": group.addresses if is_manual else [],
        **{name: MEMBER_OF[name].read(getattr(group, name)) for name in GROUP_STRUCTURES},
        "max_running": group.max_running,
        **{name: getattr(group, name) for name in KEEPING},
    }


def channel_values(row: ScopedChannel) -> dict[str, Any]:
    """Return member -> present value of a channel; of secrets their fingerprints, scopes as ids."""
    kind = row.channel.kind
    settings = settings_of(row.channel)
    return {
        "kind": kind,
        **{f"settings.{name}": setting_value(kind, name, value) for name, value in settings.items()},
        "for_all": bool(row.channel.for_all),
        "groups": sorted(row.group_ids),
        "jobs": sorted(row.job_ids),
        "daily": bool(row.channel.daily),
    }


def setting_value(kind: str, name: str, value: str) -> str:
    """Return a setting as it is compared and remembered: a secret as its fingerprint."""
    return sealer().fingerprint(value) if value and is_secret(kind, name) else value


def is_secret(kind: str, name: str) -> bool:
    """Whether a setting is a secret; those of an unknown kind are."""
    if kind not in list(ChannelKind):
        return True
    return any(setting.name == name and setting.is_secret for setting in KINDS[ChannelKind(kind)].fields)


def own_settings(channel: AlarmChannel) -> dict[str, str]:
    """Return the settings of a channel that are no secrets."""
    return {name: value for name, value in settings_of(channel).items() if not is_secret(channel.kind, name)}


def find_state(session: Session, actor: Actor) -> State:
    """Return the groups that the actor may see, all channels, calendars and managed objects."""
    groups = group_lists.find_visible(session, actor.group_ids(Right.VIEW))
    return State(
        {group.id: group for group in groups},
        channels={channel.channel.id: channel for channel in channels.list_channels(session)},
        calendars={row.id: row for row in list_calendars(session)},
        managed_by_key={(owner.kind, owner.key): owner for owner in list_managed(session)},
    )


def with_places(session: Session, state: State) -> State:
    """Return the state with the groups of the managed jobs."""
    job_ids = [owner.object_id for owner in state.managed_by_key.values() if owner.kind == JOB]
    return replace(state, group_id_by_job=job_lists.find_groups_of(session, job_ids)) if job_ids else state


def with_jobs(session: Session, state: State, job_ids: Collection[int], *, lock: bool = False) -> State:
    """Return the state with those of the jobs that exist; ``lock`` keeps them and the groups unchanged."""
    rows = job_lists.read_definitions(session, job_ids, lock=lock)
    definitions = {row["id"]: row for row in rows}
    if lock:
        group_lists.hold_groups(session, state.groups)
    links, followers = find_links(session, list(definitions))
    tags = job_tags.find_tags(session, list(definitions))
    return replace(state, definitions=definitions, links=links, followers=followers, tags=tags)


def plan_calendar(
    state: State,
    name: str,
    members: Mapping[str, Any],
    *,
    actor: Actor,
    is_import: bool = False,
    readable_by_java: bool = False,
) -> CalendarPlan:
    """Return the plan of a calendar, which only administrators change; raises InvalidInput.

    ``readable_by_java``: refuse a change, as a Java admin on the same database knows no calendars.
    """
    calendar_id = state.id_named(CALENDAR, name)
    present = None
    if calendar_id:
        owner = state.managed_object(CALENDAR, name)
        is_managed = owner is not None and owner.object_id == calendar_id
        former = owner.fields if owner is not None and is_managed else {}
        present = PresentCalendar(calendar_id, state.calendars[calendar_id].calendar, is_managed, former)
    notes = state.notes_on_new(CALENDAR, name) if present is None else ()
    plan = calendar_plans.plan_calendar(name, members, present, is_import=is_import, notes=notes)
    if plan.object_plan is not None and not actor.is_admin:
        raise PermissionDenied(f"{place(CALENDARS, name)}: only administrators change calendars")
    if plan.draft is not None and readable_by_java:
        raise InvalidInput("name", WITHOUT_JAVA)
    return plan


def new_calendars(plans: Collection[CalendarPlan]) -> dict[str, Calendar]:
    """Return name -> calendar as it will be, of those that change."""
    return {plan.name: read_draft(plan.name, plan.draft) for plan in plans if plan.draft is not None}
