"""Plans of jobs: what changes, checked by the rules of jobs, and what it takes to write it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.code.document import ALARM_CHANNELS, CODE, ENABLED, JOBS, Members, at_place, place
from app.domain.code.plan import Action, FieldChange, ObjectPlan, change_of, changed_fields, code_diff
from app.domain.enums import GlueType, ScheduleType
from app.domain.jobs.fields import DEFAULTS
from app.domain.jobs.members import CHILDREN, MEMBER_OF, PLAIN_MEMBERS, draft_values, with_member_names
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.domain.text.texts import N_
from app.errors import DeniedValue, InvalidInput, PermissionDenied
from app.models.base import zone_name
from app.models.job import Job
from app.services.calendars.lookup import StoredCalendars
from app.services.code.circles import check_circles
from app.services.code.request import require_on_job
from app.services.code.state import State, code_value, whole_code
from app.services.jobs import glue
from app.services.jobs.job_writes import JobWrite
from app.services.jobs.placeholders import check_own
from app.services.jobs.replan import PLANNED_BY, first_instant
from app.services.jobs.rules import JobDraft, check_draft, schedule_of
from app.store.jobs.managed_objects import JOB
from app.store.limits.listing import find_known
from app.store.rounds.edges import JobLinks

#: attributes of a draft without code and tags
_ATTRIBUTES = tuple(member.attribute for member in PLAIN_MEMBERS if member.name != TAGS)
#: members of the API that are members of the code here
_OF_CODE = {"source": "code.source", "source_remark": "code.remark", "run_mode": "code.language"}
#: remarks of a version of the code without a remark of its own
REMARK, IMPORTED = "applied from code", "imported from a file"
#: note of a job that is to be on
ENDED = "its schedule has ended: it stays off"


@dataclass(frozen=True, slots=True)
class Wish:
    """A job as it should be; its members have ids in place of keys."""

    key: str
    #: negative: provisional id of a new job
    job_id: int
    members: Members
    adopts: bool = False


@dataclass(frozen=True, slots=True)
class JobPlan:
    """Plan of a job, and what it takes to write it."""

    wish: Wish
    #: None: unchanged
    object_plan: ObjectPlan | None = None
    #: None: no column changes
    write: JobWrite | None = None
    #: the switch to set; None: it stays
    switch: bool | None = None
    #: fields that the code owns, with their values
    members: Members = field(default_factory=dict)
    #: the changed fields as they were, code with its source
    before: Members = field(default_factory=dict)
    #: the schedules before and after, while they are on
    old_schedule: Schedule | None = None
    new_schedule: Schedule | None = None


class JobPlanner:
    """Plans jobs one by one; also the job lookup of the rules, for stored and new jobs and groups."""

    def __init__(
        self, session: Session, state: State, wishes: Collection[Wish], *, actor: Actor, now_ms: Millis
    ) -> None:
        self.state, self.actor, self.now_ms = state, actor, now_ms
        self.check_parameter = partial(check_own, session)
        self.calendars = StoredCalendars(session)
        self.find_limits = partial(find_known, session, group_ids=actor.group_ids(Right.VIEW))
        #: whether a channel exists or is made as well; what is restored is not refused
        self.has_channel: Callable[[str], bool] = lambda _name: True
        #: jobs that a Java admin cannot read are refused
        self.readable_by_java = False
        #: values are put back as they were
        self.restores = False
        #: code owns what it owned before; a missing right is an error of the job
        self.is_import = False
        #: AppNames of the groups, new ones included
        self.app_names = {group_id: group.app_name for group_id, group in state.groups.items()}
        self._wishes = {wish.job_id: wish for wish in wishes}

    def keys_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return job id -> key, without its group; of those that have one."""
        keys = {job_id: self.state.keys.get((JOB, job_id), "") for job_id in job_ids}
        keys |= {job_id: self._wishes[job_id].key for job_id in job_ids if job_id in self._wishes}
        return {job_id: key.rpartition("/")[2] for job_id, key in keys.items() if key}

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists or is new."""
        return group_id in self.app_names

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; jobs that neither exist nor are planned are left out."""
        group_ids = {job_id: self.state.links[job_id][0] for job_id in job_ids if job_id in self.state.links}
        return group_ids | {
            job_id: self._wishes[job_id].members["group_id"] for job_id in job_ids if job_id in self._wishes
        }

    def find_path(self, _start: int, _goal: int, _links: JobLinks) -> Sequence[int]:
        """Return no path: circles are looked for in the whole plan."""
        return ()

    def names_of(self, job_ids: Collection[int]) -> Mapping[int, str]:
        """Return the names of jobs in errors."""
        return {job_id: self.name_of(job_id) for job_id in job_ids}

    def plan(self, wish: Wish) -> JobPlan:
        """Return the plan of a job; raises InvalidInput at its place, or PermissionDenied."""
        try:
            job = self.state.jobs.get(wish.job_id)
            return self._create(wish) if job is None else self._change(wish, job)
        except InvalidInput as exc:
            error = with_member_names(exc)
            for item in error.errors:
                item.field = _OF_CODE.get(item.field, item.field)
            raise at_place(error, JOBS, wish.key) from exc
        except DeniedValue as exc:
            if not self.is_import:
                raise
            raise InvalidInput(place(JOBS, wish.key, CHILDREN), exc.reason) from exc

    def name_of(self, job_id: int) -> str:
        """Return the key of a job; its id if it has none, or one that the actor may not see."""
        if job_id in self._wishes:
            return self._wishes[job_id].key
        group_id, _children = self.state.links.get(job_id, (0, ()))
        is_shown = self.actor.is_admin or group_id in self.state.groups
        return self.state.keys.get((JOB, job_id), f"#{job_id}") if is_shown else f"#{job_id}"

    def check_circles(self) -> None:
        """Raise InvalidInput if jobs would trigger each other forever because of this plan."""
        wishes = {job_id: wish.members for job_id, wish in self._wishes.items()}
        check_circles(wishes, self.state.links, self.state.followers, self.name_of)

    def _create(self, wish: Wish) -> JobPlan:
        members = dict(wish.members)
        code = members.get(CODE, {})
        language = code.get("language", GlueType.BEAN.value)
        own_key = wish.key.rpartition("/")[2]
        defaults = replace(DEFAULTS, job_desc=own_key, author=self.actor.username[:64])
        draft = replace(
            defaults,
            **draft_values({name: members[name] for name in members if name in MEMBER_OF}),
            glue_type=language,
            glue_source=code.get("source", ""),
            glue_remark=code.get("remark", ""),
            readable_by_java=self.readable_by_java,
        )
        self._require(wish, members["group_id"], Right.EDIT)
        if code.get("source", "").strip():
            self._require(wish, members["group_id"], Right.GLUE)
        if members.get(ALARM_CHANNELS):
            self._require_routing(wish)
        kept_fields = self._kept_fields(members)
        columns = check_draft(self, draft, actor=self.actor, now_ms=self.now_ms, exempt=kept_fields)
        switch = self._switch(wish, draft, members["group_id"]) if members.get(ENABLED) else None
        owned_fields = self._owned_fields(wish, columns)
        fields = [
            self._field(name, None, value, is_edit=False)
            for name, value in owned_fields.items()
            if name != "group_id"
        ]
        notes = ("it was deleted in the console",) if (JOB, wish.key) in self.state.managed_by_key else ()
        tags = ((), tuple(members[TAGS])) if members.get(TAGS) else None
        return JobPlan(
            wish,
            ObjectPlan(JOB, wish.key, Action.CREATE, fields=tuple(fields), notes=notes),
            JobWrite(wish.job_id, columns, tags=tags),
            switch,
            owned_fields,
            new_schedule=self._schedule(draft) if switch else None,
        )

    def _change(self, wish: Wish, job: Job) -> JobPlan:
        self._require(wish, job.job_group, Right.VIEW)
        if wish.members.get(CODE, {}).get("language", job.glue_type) != job.glue_type:
            problem = N_("The run mode of a job cannot be changed: it is %(mode)s", mode=job.glue_type)
            raise InvalidInput("code.language", problem)
        target = self._owned_fields(wish, {})
        current = self.state.job_values(job)
        owner = self.state.managed_object(JOB, wish.key)
        former = owner.fields if owner is not None and owner.object_id == job.id else {}
        changes = {name: values for name, *values in changed_fields(target, current, former)}
        has_ended = ENABLED in changes and self._has_ended(job, wish, changes)
        if has_ended:
            del changes[ENABLED]
        write, columns = self._write(wish, job, changes)
        owned_fields = self._owned_fields(wish, columns)
        draft = self._draft(job, wish, changes)
        switch = self._switch(wish, draft, job.job_group) if ENABLED in changes else None
        fields = [self._field(name, *values) for name, values in changes.items()]
        fields = [self._with_diff(change, job, wish) for change in fields]
        key, own_members = (JOB, wish.key, job.id), former if self.is_import else owned_fields
        is_adopted = wish.adopts and not self.is_import
        object_plan = change_of(key, fields, own_members, former, is_adopted=is_adopted)
        if object_plan is not None and not fields:
            self._require(wish, job.job_group, Right.EDIT)
        if object_plan is not None and has_ended:
            object_plan = replace(object_plan, notes=(ENDED,))
        return JobPlan(
            wish,
            object_plan,
            write,
            switch,
            owned_fields,
            {name: whole_code(job) if name == CODE else old for name, (old, *_rest) in changes.items()},
            *self._schedules(job, wish, changes, switch),
        )

    def _write(
        self, wish: Wish, job: Job, changes: Mapping[str, Any]
    ) -> tuple[JobWrite | None, Mapping[str, object]]:
        """Return what to write of a changed job, and its columns as they will be; checks rights and rules."""
        plain = [name for name in changes if name in MEMBER_OF]
        columns: dict[str, Any] = {}
        if plain:
            self._require(wish, job.job_group, Right.EDIT)
            draft, kept_fields = self._draft(job, wish, changes), self._kept_fields(plain)
            columns = check_draft(
                self, draft, actor=self.actor, now_ms=self.now_ms, job=job, exempt=kept_fields
            )
        if ALARM_CHANNELS in changes:
            self._require_routing(wish)
        version = None
        if CODE in changes:
            self._require(wish, job.job_group, Right.GLUE)
            code = wish.members[CODE]
            remark = code.get("remark") or (IMPORTED if self.is_import else REMARK)
            text = REMARK if self.restores else remark
            version = glue.version_row(job, code["source"], text, actor=self.actor, now_ms=self.now_ms)
            version["glue_remark"] = remark
        if not columns and version is None:
            return None, columns
        tags = (self.state.tags.get(job.id, ()), tuple(wish.members[TAGS])) if TAGS in changes else None
        before = {name: getattr(job, name) for name in columns}
        replan = self._replan(job, wish, columns)
        return JobWrite(job.id, columns, before, replan, version, tags), columns

    def _replan(self, job: Job, wish: Wish, columns: Mapping[str, Any]) -> tuple[Schedule, Millis] | None:
        if not columns or all(getattr(job, name) == columns[name] for name in PLANNED_BY):
            return None
        planned_by = {name: columns[name] for name in ("job_group", *PLANNED_BY)}
        schedule = self._schedule(JobDraft(**planned_by), job.id)
        stays_on = job.trigger_status and wish.members.get(ENABLED, True)
        return schedule, first_instant(schedule, 0, now_ms=self.now_ms) if stays_on else 0

    def _kept_fields(self, names: Collection[str]) -> set[str]:
        return {MEMBER_OF[name].attribute for name in names if self.restores and name in MEMBER_OF}

    def _draft(self, job: Job, wish: Wish, changes: Mapping[str, Any]) -> JobDraft:
        present_values = ((name, getattr(job, name)) for name in _ATTRIBUTES)
        values: dict[str, Any] = {name: "" if value is None else value for name, value in present_values}
        new_members = {name: wish.members[name] for name in changes if name in MEMBER_OF}
        # children that are gone would be refused
        new_members.setdefault(CHILDREN, [child for child in job.child_ids if child in self.state.links])
        draft = JobDraft(**values | draft_values(new_members))
        return replace(draft, readable_by_java=self.readable_by_java)

    def _switch(self, wish: Wish, draft: JobDraft, group_id: int) -> bool:
        """Return the switch that a job gets; raises InvalidInput where its schedule cannot be on."""
        self._require(wish, group_id, Right.OPERATE)
        is_on = bool(wish.members[ENABLED])
        if is_on and draft.schedule_type == ScheduleType.NONE:
            raise InvalidInput(ENABLED, N_("A job without a schedule cannot be switched on"))
        if is_on:
            first_instant(self._schedule(draft), 0, now_ms=self.now_ms)
        return is_on

    def _has_ended(self, job: Job, wish: Wish, changes: Mapping[str, Any]) -> bool:
        """Whether a job to be on has a schedule that stays and has ended, which switched it off."""
        if not wish.members[ENABLED] or job.schedule_type == ScheduleType.NONE or _moves(changes):
            return False
        with suppress(ValueError, InvalidInput):  # switching an invalid schedule on is refused
            return next_after_ms(self._schedule(job), self.now_ms) is None
        return False

    def _schedules(
        self, job: Job, wish: Wish, changes: Mapping[str, Any], switch: bool | None
    ) -> tuple[Schedule | None, Schedule | None]:
        """Return the schedules that are on before and after, if anything about them changes."""
        was_on = bool(job.trigger_status)
        if switch is None and not (_moves(changes) and was_on):
            return None, None
        is_on = was_on if switch is None else switch
        draft = self._draft(job, wish, changes)
        return (
            self._schedule(job) if was_on else None,
            self._schedule(draft, job.id) if is_on else None,
        )

    def _schedule(self, job: Job | JobDraft, job_id: int = 0) -> Schedule:
        return schedule_of(job, zone_name(), self.calendars.book(), job_id=job_id)

    def _owned_fields(self, wish: Wish, columns: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields that the code owns, with the values that are stored."""
        owned_fields = dict(wish.members)
        for name in owned_fields:
            if name != CHILDREN and name in MEMBER_OF and MEMBER_OF[name].attribute in columns:
                owned_fields[name] = MEMBER_OF[name].read(columns[MEMBER_OF[name].attribute])
        if CODE in owned_fields:
            owned_fields[CODE] = code_value(owned_fields[CODE]["language"], owned_fields[CODE].get("source"))
        return owned_fields

    def _field(self, name: str, old: Any, new: Any, is_edit: bool) -> FieldChange:
        if name == CHILDREN:
            old, new = ([self.name_of(child_id) for child_id in ids or ()] for ids in (old, new))
        if name == RUNS_AFTER:
            old, new = (with_named(value, map(self.name_of, named_jobs(value))) for value in (old, new))
        if name == "group_id":
            name, old, new = "group", self.app_names.get(old, ""), self.app_names.get(new, "")
        return FieldChange(name, old, new, is_edit)

    def _with_diff(self, change: FieldChange, job: Job, wish: Wish) -> FieldChange:
        if change.field != CODE or not self.actor.may(job.job_group, Right.GLUE):
            return change
        return replace(change, diff=code_diff(job.glue_source or "", wish.members[CODE]["source"]))

    def _require(self, wish: Wish, group_id: int, right: Right) -> None:
        require_on_job(self.actor, wish.key, group_id, right, is_import=self.is_import)

    def _require_routing(self, wish: Wish) -> None:
        if not self.actor.is_admin:
            where = place(JOBS, wish.key, ALARM_CHANNELS)
            raise PermissionDenied(f"{where}: only administrators route alarms")


def _moves(changes: Collection[str]) -> bool:
    """Whether changed members move the instants of a schedule."""
    return any(MEMBER_OF[name].attribute in PLANNED_BY for name in changes if name in MEMBER_OF)
