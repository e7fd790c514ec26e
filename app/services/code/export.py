"""Export of an installation, also of an adopted one, as a document of jobs as code."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.archive.kinds import KEEPING
from app.domain.code.calendar_plans import calendar_values
from app.domain.code.document import (
    ALARM_CHANNELS,
    CODE,
    ENABLED,
    FORMAT,
    JOB_MEMBERS,
    JOBS_MAX,
    MANUAL,
    place,
)
from app.domain.code.keys import UsedKeys, variable_name
from app.domain.enums import GlueType, ScheduleType
from app.domain.jobs.fields import DEFAULTS
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import CHILDREN, MEMBER_OF, MEMBERS, read_members
from app.domain.jobs.structures import GROUP_STRUCTURES
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.alarms.targets import settings_of
from app.services.code.state import State, find_state, group_values, is_secret, with_jobs, with_places
from app.store.alarms.channels import ScopedChannel
from app.store.base.paging import ID_MAX
from app.store.jobs import listing as job_lists
from app.store.jobs.filtering import JobFilter
from app.store.jobs.managed_objects import CHANNEL, GROUP, JOB

#: members that are written even with the value of a new job
_ALWAYS = frozenset({"description", "owner"})
#: members that a new job cannot leave empty, as a job of another program may
_NEVER_EMPTY = frozenset(
    member.name
    for member in MEMBERS
    if member.field is not None and (member.field.is_required or member.field.kind is Kind.CHOICE)
)


@dataclass(frozen=True, slots=True)
class Export:
    """Document as clients send it, with variables in place of secrets: place of a setting -> its variable."""

    document: Mapping[str, Any]
    variables: dict[str, str] = field(default_factory=dict)
    #: what was left out, and why
    notes: list[str] = field(default_factory=list)


def export_document(
    session: Session,
    *,
    actor: Actor,
    app_names: Collection[str] = (),
    job_ids: Collection[int] = (),
    is_whole: bool = False,
) -> Export:
    """Return groups, jobs, calendars and channels that the actor may see.

    ``app_names`` limits it to these groups, ``job_ids`` to these jobs and their groups. Members with the
    values of a new job are left out unless ``is_whole``. Channels and calendars are for administrators.
    Raises NotFound for a group or job that the actor may not see.
    """
    state = with_places(session, find_state(session, actor))
    group_ids = _group_ids(session, state, app_names, job_ids)
    page = job_lists.list_ids(session, JobFilter(), group_ids=group_ids, start=0, length=JOBS_MAX)
    if page.total > JOBS_MAX and not job_ids:
        problem = N_("A document has at most %(limit)s jobs; export some of the groups", limit=JOBS_MAX)
        raise InvalidInput("groups", problem)
    state = with_jobs(session, state, {*page.rows, *job_ids})
    keys = _keys(state)
    defaults = read_members(DEFAULTS, ()) if not is_whole else {}
    exported_jobs = [job for job in state.jobs.values() if not job_ids or job.id in job_ids]
    children = _Children(state, {**_managed_keys(state), **{job.id: keys[job.id] for job in exported_jobs}})
    jobs = {}
    for job in exported_jobs:
        has_code = actor.may(job.job_group, Right.GLUE)
        jobs[keys[job.id]] = _job(children, job, keys[job.id], defaults, has_code=has_code)
    groups: dict[str, dict[str, Any]] = {}
    for group_id in sorted(group_ids):  # of several with one AppName the first
        app_name = state.groups[group_id].app_name
        groups.setdefault(app_name, _group(state, group_id, is_whole=is_whole))
    document = {"format": FORMAT, "groups": dict(sorted(groups.items())), "jobs": dict(sorted(jobs.items()))}
    export = Export(document, notes=children.notes)
    if actor.is_admin and not (app_names or job_ids):
        document["channels"] = {
            channel.channel.name: _channel(channel, state, keys, export.variables)
            for channel in state.channels.values()
        }
        calendars = {row.calendar.name: calendar_values(row.calendar) for row in state.calendars.values()}
        document |= {"calendars": dict(sorted(calendars.items()))} if calendars else {}
    return export


def _group_ids(
    session: Session, state: State, app_names: Collection[str], job_ids: Collection[int]
) -> list[int]:
    """Return the ids of the groups of these AppNames (none: of all), and only those of the jobs, if any."""
    visible = {group.app_name for group in state.groups.values()}
    for app_name in sorted({*app_names} - visible):
        raise NotFound(f"There is no executor group with the AppName {app_name}")
    group_ids = [
        group_id for group_id, group in state.groups.items() if not app_names or group.app_name in app_names
    ]
    if not job_ids:
        return group_ids
    # PostgreSQL refuses to compare its column with a larger number
    groups_of = job_lists.find_groups_of(session, [job_id for job_id in job_ids if job_id <= ID_MAX])
    for missing_id in sorted(job_id for job_id in job_ids if groups_of.get(job_id) not in group_ids):
        raise NotFound(f"There is no job with the id {missing_id}")
    return sorted(set(groups_of.values()))


def _keys(state: State) -> dict[int, str]:
    """Return job id -> key: the managed one, else one that is made of description or handler.

    Of a job whose group was renamed, the managed one has the new AppName, unless that is another job's.
    """
    keys: dict[int, str] = {}
    group_ids = {state.keys[JOB, job_id]: group_id for job_id, group_id in state.group_id_by_job.items()}
    present_keys = {key for key, group_id in group_ids.items() if state.present_key(key, group_id) == key}
    for job_id, job in state.jobs.items():
        key = state.keys.get((JOB, job_id), "")
        present = state.present_key(key, job.job_group)
        if key and (present == key or present not in present_keys):
            keys[job_id] = present
            present_keys.add(present)
    keys_by_group = defaultdict[str, UsedKeys](UsedKeys)
    for key in keys.values():
        app_name, _, name = key.rpartition("/")
        keys_by_group[app_name].add(name)
    for job_id, job in sorted(state.jobs.items()):
        if job_id not in keys:
            app_name = state.groups[job.job_group].app_name
            name = keys_by_group[app_name].make([job.job_desc, job.executor_handler or ""])
            keys[job_id] = f"{app_name}/{name}"
    return keys


def _group(state: State, group_id: int, *, is_whole: bool) -> dict[str, Any]:
    values = group_values(state.groups[group_id])
    owner = state.owner_of(GROUP, group_id)
    names = {"title", *(owner.fields if owner is not None else ())}
    if is_whole or values["address_type"] == MANUAL:
        names |= {"address_type"}
    further = ("addresses", *GROUP_STRUCTURES, "max_running", *KEEPING)
    return {name: value for name, value in values.items() if name in names or (name in further and value)}


def _managed_keys(state: State) -> dict[int, str]:
    """Return job id -> key of the managed jobs in groups that the actor may see."""
    return {
        job_id: state.keys[JOB, job_id]
        for job_id, (group_id, _children) in state.links.items()
        if group_id in state.groups and (JOB, job_id) in state.keys
    }


@dataclass(slots=True)
class _Children:
    """Children and predecessors of exported jobs by their keys."""

    state: State
    #: of the jobs that a document may name: those in it, and managed ones
    keys: Mapping[int, str]
    notes: list[str] = field(default_factory=list)

    def of(self, key: str, job_ids: Collection[int]) -> list[str] | None:
        """Return the keys of children; None, with a note, if one has none, so that it is not cut off."""
        return self._keys_of(key, CHILDREN, job_ids)

    def runs_after(self, key: str, value: Any) -> Any:
        """Return what a job runs after with keys; None, with a note, if a predecessor has none."""
        keys = self._keys_of(key, RUNS_AFTER, named_jobs(value))
        return with_named(value, keys) if keys else None

    def _keys_of(self, key: str, member: str, job_ids: Collection[int]) -> list[str] | None:
        unknown_ids = ", ".join(f"#{job_id}" for job_id in job_ids if job_id not in self.keys)
        if unknown_ids:
            self.notes.append(f"{key}: {member} is left out, because this export lacks some: {unknown_ids}")
            return None
        return [self.keys[job_id].removeprefix(f"{key.rpartition('/')[0]}/") for job_id in job_ids]


def _job(
    children: _Children, job: Job, key: str, defaults: Mapping[str, Any], *, has_code: bool
) -> dict[str, Any]:
    state = children.state
    values = state.job_values(job)
    owner = state.owner_of(JOB, job.id)
    code_fields = owner.fields if owner is not None else {}
    members: dict[str, Any] = {}
    for name in JOB_MEMBERS:
        value = values[name] if name != CHILDREN else children.of(key, values[CHILDREN])
        if name == RUNS_AFTER and value is not None:
            value = children.runs_after(key, value)
        if value is None and (name == CHILDREN or values[name] is not None):
            continue
        is_unset = value == "" and (name in _NEVER_EMPTY or name == "schedule")
        is_named = name in _ALWAYS or name in code_fields or not defaults or value != defaults[name]
        if not is_named or is_unset:
            continue
        if _is_allowed(name, value):
            members[name] = value
        else:
            problem = "a file may not have its present value"
            children.notes.append(f"{key}: {name} is left out, because {problem}")
    is_unplanned = job.schedule_type == ScheduleType.NONE and "schedule" not in code_fields
    if is_unplanned or "schedule_type" not in members:
        members.pop("schedule", None)
    if job.schedule_type != ScheduleType.NONE or ENABLED in code_fields:
        members[ENABLED] = values[ENABLED]
    if ALARM_CHANNELS in code_fields:
        members[ALARM_CHANNELS] = values[ALARM_CHANNELS]
    return members | _code(job, has_code=has_code)


def _is_allowed(name: str, value: Any) -> bool:
    job_field = MEMBER_OF[name].field
    return job_field is None or name == CHILDREN or job_field.allows(value)


def _code(job: Job, *, has_code: bool) -> dict[str, Any]:
    if job.glue_type == GlueType.BEAN:
        return {}
    code = {"language": job.glue_type}
    if has_code:
        code |= {"source": job.glue_source or ""}
        code |= {"remark": job.glue_remark} if job.glue_remark else {}
    return {CODE: code}


def _channel(
    row: ScopedChannel, state: State, keys: Mapping[int, str], variables: dict[str, str]
) -> dict[str, Any]:
    channel = row.channel
    common: dict[str, Any] = {"kind": channel.kind, "settings": dict(_settings(row, variables))}
    if channel.daily:
        common["daily"] = True
    if channel.for_all:
        return common | {"for_all": True}
    groups = sorted(state.groups[own_id].app_name for own_id in row.group_ids if own_id in state.groups)
    jobs = sorted(keys[job_id] for job_id in row.job_ids if job_id in keys)
    routes = {"for_all": False, "groups": groups, "jobs": jobs}
    owner = state.owner_of(CHANNEL, channel.id)
    are_routed = [_names_channels(state, job_id) for job_id in row.job_ids if job_id in keys]
    if owner is not None and not groups and are_routed and all(are_routed):
        routes = {name: value for name, value in routes.items() if name in owner.fields}
    return common | routes


def _names_channels(state: State, job_id: int) -> bool:
    """Whether the file of a job names the channels that get its alarms."""
    owner = state.owner_of(JOB, job_id)
    return owner is not None and ALARM_CHANNELS in owner.fields


def _settings(row: ScopedChannel, variables: dict[str, str]) -> Iterator[tuple[str, str]]:
    channel = row.channel
    for name, value in settings_of(channel).items():
        if value and is_secret(channel.kind, name):
            variable = variable_name(channel.name, name)
            if variable in variables.values():
                variable = f"{variable}_{channel.id}"
            variables[place("channels", channel.name, f"settings.{name}")] = variable
            yield name, f"${{{variable}}}"
        elif value:
            yield name, value
