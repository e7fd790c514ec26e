"""Plans of jobs: what changes, checked by the rules of jobs, and what it takes to write it."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.code.document import (
    ALARM_CHANNELS,
    CODE,
    ENABLED,
    JOBS,
    Members,
    at_place,
    find_circle,
    place,
)
from app.domain.code.plan import (
    Action,
    FieldChange,
    ObjectPlan,
    change_of,
    changed_fields,
    code_diff,
)
from app.domain.enums import GlueType, ScheduleType
from app.domain.jobs.fields import DEFAULTS
from app.domain.jobs.members import CHILDREN, MEMBER_OF, PLAIN_MEMBERS, draft_values, with_member_names
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.domain.text.texts import N_
from app.errors import DeniedValue, InvalidInput, PermissionDenied
from app.models.base import zone_name
from app.models.job import Job
from app.services.code.job_rights import require_on_job
from app.services.code.stored import Stored, code_value, whole_code
from app.services.jobs import glue
from app.services.jobs.job_writes import JobWrite
from app.services.jobs.replan import PLANNED_BY, first_instant
from app.services.jobs.rules import JobDraft, check_draft, schedule_of
from app.store.jobs.managed import JOB

#: attributes of a draft without code and tags
_ATTRIBUTES = tuple(each.attribute for each in PLAIN_MEMBERS if each.name != TAGS)
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
    shown: ObjectPlan | None = None
    #: None: no column changes
    write: JobWrite | None = None
    #: the switch to set; None: it stays
    switch: bool | None = None
    #: fields that the code owns, with their values
    applied: Members = field(default_factory=dict)
    #: the changed fields as they were, code with its source
    before: Members = field(default_factory=dict)
    #: the schedules before and after, while they are on
    old_schedule: Schedule | None = None
    new_schedule: Schedule | None = None


class JobPlanner:
    """Plans jobs one by one; also the job lookup of the rules, for stored and new jobs and groups."""

    def __init__(self, stored: Stored, wishes: Collection[Wish], *, actor: Actor, now_ms: Millis) -> None:
        self.stored, self.actor, self.now_ms = stored, actor, now_ms
        #: jobs that a Java admin cannot read are refused
        self.readable_by_java = False
        #: values are put back as they were, also those that a new job may not have
        self.restores = False
        #: code owns what it owned before; a missing right is an error of the job
        self.is_import = False
        #: AppNames of the groups, new ones included
        self.app_names = {group_id: group.app_name for group_id, group in stored.groups.items()}
        self._wishes = {wish.job_id: wish for wish in wishes}

    def has_group(self, group_id: int) -> bool:
        """Return whether the group exists or is new."""
        return group_id in self.app_names

    def groups_of(self, job_ids: Collection[int]) -> Mapping[int, int]:
        """Return job id -> group id; jobs that neither exist nor are planned are left out."""
        known = {job_id: self.stored.links[job_id][0] for job_id in job_ids if job_id in self.stored.links}
        return known | {
            job_id: self._wishes[job_id].members["group_id"] for job_id in job_ids if job_id in self._wishes
        }

    def leads_to(self, _child_id: int, _job_id: int) -> bool:
        """Return False: circles are looked for in the whole plan."""
        return False

    def plan(self, wish: Wish) -> JobPlan:
        """Return the plan of a job; raises InvalidInput at its place, or PermissionDenied."""
        try:
            own = self.stored.jobs.get(wish.job_id)
            return self._create(wish) if own is None else self._change(wish, own)
        except InvalidInput as exc:
            named = with_member_names(exc)
            for each in named.each:
                each.field = _OF_CODE.get(each.field, each.field)
            raise at_place(named, JOBS, wish.key) from exc
        except DeniedValue as exc:
            if not self.is_import:
                raise
            raise InvalidInput(place(JOBS, wish.key, CHILDREN), exc.reason) from exc

    def name_of(self, job_id: int) -> str:
        """Return the key of a job; its id if it has none, or one that the actor may not see."""
        if job_id in self._wishes:
            return self._wishes[job_id].key
        group_id, _children = self.stored.links.get(job_id, (0, ()))
        is_shown = self.actor.is_admin or group_id in self.stored.groups
        return self.stored.keys.get((JOB, job_id), f"#{job_id}") if is_shown else f"#{job_id}"

    def check_circles(self) -> None:
        """Raise InvalidInput if jobs would trigger each other forever because of this plan."""
        links = {job_id: list(children) for job_id, (_group_id, children) in self.stored.links.items()}
        stored = {job_id: set(children) for job_id, children in links.items()}
        for job_id, wish in self._wishes.items():
            links[job_id] = wish.members.get(CHILDREN, links.get(job_id, []))
        circle = find_circle({str(each): map(str, children) for each, children in links.items()})
        ids = [int(each) for each in circle]
        steps = zip(ids, [*ids[1:], *ids[:1]], strict=True)
        if any(child not in stored.get(job_id, ()) for job_id, child in steps):
            names = " → ".join(self.name_of(each) for each in [*ids, ids[0]])
            problem = N_("These jobs would trigger each other forever: %(jobs)s", jobs=names)
            raise InvalidInput(place(JOBS, self.name_of(ids[0]), CHILDREN), problem)

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
        columns = check_draft(self, draft, actor=self.actor, kept=self._kept(members))
        switch = self._switch(wish, draft, members["group_id"]) if members.get(ENABLED) else None
        applied = self._applied(wish, columns)
        fields = [
            self._field(name, None, value, edited=False)
            for name, value in applied.items()
            if name != "group_id"
        ]
        notes = ("it was deleted in the console",) if (JOB, wish.key) in self.stored.managed else ()
        tags = ((), tuple(members[TAGS])) if members.get(TAGS) else None
        return JobPlan(
            wish,
            ObjectPlan(JOB, wish.key, Action.CREATE, fields=tuple(fields), notes=notes),
            JobWrite(wish.job_id, columns, tags=tags),
            switch,
            applied,
            new_schedule=schedule_of(draft, zone_name()) if switch else None,
        )

    def _change(self, wish: Wish, own: Job) -> JobPlan:
        self._require(wish, own.job_group, Right.VIEW)
        self._check_language(wish, own)
        wanted = self._applied(wish, {})
        current = self.stored.job_values(own)
        owner = self.stored.managed_object(JOB, wish.key)
        owned = owner.fields if owner is not None and owner.object_id == own.id else {}
        changes = {name: rest for name, *rest in changed_fields(wanted, current, owned)}
        has_ended = ENABLED in changes and self._has_ended(own, wish, changes)
        if has_ended:
            del changes[ENABLED]
        write, columns = self._write(wish, own, changes)
        applied = self._applied(wish, columns)
        switch = None
        if ENABLED in changes:
            switch = self._switch(wish, self._draft(own, wish, changes), own.job_group)
        fields = [self._field(name, old, new, edited=edited) for name, (old, new, edited) in changes.items()]
        fields = [self._with_diff(each, own, wish) for each in fields]
        target = (JOB, wish.key, own.id)
        is_adopted = wish.adopts and not self.is_import
        shown = change_of(target, fields, owned if self.is_import else applied, owned, is_adopted=is_adopted)
        if shown is not None and not fields:
            self._require(wish, own.job_group, Right.EDIT)
        if shown is not None and has_ended:
            shown = replace(shown, notes=(ENDED,))
        return JobPlan(
            wish,
            shown,
            write,
            switch,
            applied,
            {name: whole_code(own) if name == CODE else old for name, (old, *_rest) in changes.items()},
            *self._schedules(own, wish, changes, switch),
        )

    def _write(
        self, wish: Wish, own: Job, changes: Mapping[str, Any]
    ) -> tuple[JobWrite | None, Mapping[str, object]]:
        """Return what to write of a changed job, and its columns as they will be; checks rights and rules."""
        plain = [name for name in changes if name in MEMBER_OF]
        columns: dict[str, Any] = {}
        if plain:
            self._require(wish, own.job_group, Right.EDIT)
            draft, kept = self._draft(own, wish, changes), self._kept(plain)
            columns = check_draft(self, draft, actor=self.actor, own=own, kept=kept)
        if ALARM_CHANNELS in changes:
            self._require_routing(wish)
        version = None
        if CODE in changes:
            self._require(wish, own.job_group, Right.GLUE)
            code = wish.members[CODE]
            remark = code.get("remark") or (IMPORTED if self.is_import else REMARK)
            checked = REMARK if self.restores else remark
            version = glue.version_row(own, code["source"], checked, actor=self.actor, now_ms=self.now_ms)
            version["glue_remark"] = remark
        if not columns and version is None:
            return None, columns
        tags = None
        if TAGS in changes:
            tags = (self.stored.tags.get(own.id, ()), tuple(wish.members[TAGS]))
        before = {name: getattr(own, name) for name in columns}
        replan = self._replan(own, wish, columns)
        return JobWrite(own.id, columns, before, replan, version, tags), columns

    def _replan(self, own: Job, wish: Wish, columns: Mapping[str, Any]) -> tuple[Schedule, Millis] | None:
        if not columns or all(getattr(own, name) == columns[name] for name in PLANNED_BY):
            return None
        schedule = schedule_of(JobDraft(**{name: columns[name] for name in PLANNED_BY}), zone_name())
        stays_on = own.trigger_status and wish.members.get(ENABLED, True)
        return schedule, first_instant(schedule, 0, now_ms=self.now_ms) if stays_on else 0

    def _kept(self, names: Collection[str]) -> set[str]:
        return {MEMBER_OF[name].attribute for name in names if self.restores and name in MEMBER_OF}

    def _draft(self, own: Job, wish: Wish, changes: Mapping[str, Any]) -> JobDraft:
        stored = ((name, getattr(own, name)) for name in _ATTRIBUTES)
        values: dict[str, Any] = {name: "" if value is None else value for name, value in stored}
        changed = {name: wish.members[name] for name in changes if name in MEMBER_OF}
        # children that are gone would be refused
        changed.setdefault(CHILDREN, [each for each in own.child_ids if each in self.stored.links])
        draft = JobDraft(**values | draft_values(changed))
        return replace(draft, readable_by_java=self.readable_by_java)

    def _switch(self, wish: Wish, draft: JobDraft, group_id: int) -> bool:
        """Return the switch that a job gets; raises InvalidInput where its schedule cannot be on."""
        self._require(wish, group_id, Right.OPERATE)
        is_on = bool(wish.members[ENABLED])
        if is_on and draft.schedule_type == ScheduleType.NONE:
            raise InvalidInput(ENABLED, N_("A job without a schedule cannot be switched on"))
        if is_on:
            first_instant(schedule_of(draft, zone_name()), 0, now_ms=self.now_ms)
        return is_on

    def _has_ended(self, own: Job, wish: Wish, changes: Mapping[str, Any]) -> bool:
        """Whether a job to be on has a schedule that stays and has ended, which switched it off."""
        if not wish.members[ENABLED] or own.schedule_type == ScheduleType.NONE or _moves(changes):
            return False
        with suppress(ValueError, InvalidInput):  # switching an invalid schedule on is refused
            return next_after_ms(schedule_of(own, zone_name()), self.now_ms) is None
        return False

    def _schedules(
        self, own: Job, wish: Wish, changes: Mapping[str, Any], switch: bool | None
    ) -> tuple[Schedule | None, Schedule | None]:
        """Return the schedules that are on before and after, if anything about them changes."""
        was_on = bool(own.trigger_status)
        if switch is None and not (_moves(changes) and was_on):
            return None, None
        is_on = was_on if switch is None else switch
        draft = self._draft(own, wish, changes)
        return (
            schedule_of(own, zone_name()) if was_on else None,
            schedule_of(draft, zone_name()) if is_on else None,
        )

    def _check_language(self, wish: Wish, own: Job) -> None:
        language = wish.members.get(CODE, {}).get("language", own.glue_type)
        if language != own.glue_type:
            raise InvalidInput(
                "code.language",
                N_("The run mode of a job cannot be changed: it is %(mode)s", mode=own.glue_type),
            )

    def _applied(self, wish: Wish, columns: Mapping[str, object]) -> dict[str, Any]:
        """Return the fields that the code owns, with the values that are stored."""
        applied = dict(wish.members)
        for name in applied:
            if name != CHILDREN and name in MEMBER_OF and MEMBER_OF[name].attribute in columns:
                applied[name] = MEMBER_OF[name].read(columns[MEMBER_OF[name].attribute])
        if CODE in applied:
            applied[CODE] = code_value(applied[CODE]["language"], applied[CODE].get("source"))
        return applied

    def _field(self, name: str, old: Any, new: Any, *, edited: bool) -> FieldChange:
        if name == CHILDREN:
            old, new = ([self.name_of(each) for each in ids or ()] for ids in (old, new))
        if name == "group_id":
            name, old, new = "group", self.app_names.get(old, ""), self.app_names.get(new, "")
        return FieldChange(name, old, new, edited)

    def _with_diff(self, change: FieldChange, own: Job, wish: Wish) -> FieldChange:
        if change.field != CODE or not self.actor.may(own.job_group, Right.GLUE):
            return change
        return replace(change, diff=code_diff(own.glue_source or "", wish.members[CODE]["source"]))

    def _require(self, wish: Wish, group_id: int, right: Right) -> None:
        require_on_job(self.actor, wish.key, group_id, right, is_import=self.is_import)

    def _require_routing(self, wish: Wish) -> None:
        if not self.actor.is_admin:
            where = place(JOBS, wish.key, ALARM_CHANNELS)
            raise PermissionDenied(f"{where}: only administrators route alarms")


def _moves(changes: Collection[str]) -> bool:
    """Whether changed members move the instants of a schedule."""
    return any(MEMBER_OF[name].attribute in PLANNED_BY for name in changes if name in MEMBER_OF)
