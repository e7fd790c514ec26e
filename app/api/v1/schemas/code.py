"""Schemas of jobs as code: the document that clients send, plans, applies and drift."""

from typing import Any, Literal

from pydantic import Field, create_model, field_validator

from app.api.v1.schemas.base import Instant, Partial, Query, Schema
from app.api.v1.schemas.calendars import (
    DAYS,
    NAMES,
    UNKNOWN,
    VALID_UNTIL,
    WEEKEND,
    DayWord,
    EnteredWeekday,
    Unknown,
)
from app.api.v1.schemas.executors import GroupArchive, LogDays, RunDays
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.calendars.drafts import DAYS_MAX
from app.domain.code.document import AUTOMATIC, FORMAT, JOB_MEMBERS, JOBS_MAX, MANUAL
from app.domain.enums import GlueType
from app.domain.jobs.fields import SOURCE_MAX
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import CHILDREN, MEMBER_OF, JobMember
from app.domain.promises.document import Escalation, Promises
from app.domain.rounds.document import RunsAfterKeys
from app.domain.rounds.runs_after import RUNS_AFTER
from app.services.code.apply import SOURCE_MAX as SOURCE_NAME_MAX

#: value of any type that a variable gives
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
#: longest list of keys in a document
KEYS_MAX = 1_000
LANGUAGES: list[Any] = [glue_type.value for glue_type in GlueType if glue_type != GlueType.BEAN]


class JobCode(Partial):
    """GLUE code of a job."""

    language: str = Field(
        description="Run mode of the job. It never changes.", json_schema_extra={"enum": LANGUAGES}
    )
    source: str = Field("", max_length=SOURCE_MAX, description="The code; left out: the console's.")
    remark: str = Field("", max_length=100, description="Remark on this version, at least 4 characters.")


def _type_of(member: JobMember) -> Any:
    """Return the JSON type of a job's member in a document."""
    job_field = member.field
    if job_field is None or member.name == CHILDREN:
        return list[str]
    if member.name == RUNS_AFTER:
        return RunsAfterKeys | None
    if job_field.kind is Kind.NUMBER:
        return int
    if job_field.kind is Kind.INSTANT:
        return str | None
    if job_field.kind is Kind.BOOLEAN:
        return bool
    if job_field.kind is Kind.STRUCTURE:
        return job_field.model()
    return (
        Literal[tuple(choice.value for choice in job_field.choices)] if job_field.kind is Kind.CHOICE else str
    )


def _field_of(member: JobMember) -> Any:
    job_field, limits = member.field, dict[str, Any]()
    description = member.description
    if member.name == CHILDREN:
        description = (
            "Keys of the jobs that run after a success of this one; `<AppName>/<key>` in another group."
        )
    elif job_field is not None and job_field.kind is Kind.TEXT:
        limits["max_length"] = job_field.max_length or None
    elif job_field is not None and job_field.kind is Kind.NUMBER:
        limits |= {"ge": job_field.low, "le": job_field.high}
    elif job_field is not None and job_field.kind is Kind.INSTANT:
        limits["json_schema_extra"] = {"format": "date-time"}
    return Field(None, description=description, **limits)


_MEMBERS: dict[str, Any] = {
    name: (_type_of(MEMBER_OF[name]), _field_of(MEMBER_OF[name])) for name in JOB_MEMBERS
}
_JobMembers: Any = create_model("_JobMembers", __base__=Partial, **_MEMBERS)


class CodeJob(_JobMembers):  # type: ignore[misc]
    """Job as code. A member that is left out belongs to the console; a new job gets its default."""

    enabled: bool = Field(False, description="Whether the schedule is on.")
    alarm_channels: list[str] = Field(
        default_factory=list, max_length=KEYS_MAX, description="Names of the channels that get its alarms."
    )
    code: JobCode = Field(  # type: ignore[assignment]
        None, description="GLUE code; without it the job runs a handler."
    )


class CodeGroup(Partial):
    """Executor group as code, under its AppName."""

    title: str = Field("", max_length=64, description="Name on pages; the AppName by default.")
    address_type: Literal[AUTOMATIC, MANUAL] = Field(  # type: ignore[valid-type]
        AUTOMATIC, description="Whether the executors register themselves."
    )
    addresses: list[str] = Field(
        default_factory=list, max_length=KEYS_MAX, description="Addresses of a manual group."
    )
    promises: Promises = Field(
        default_factory=list,
        description="What its jobs promise unless they have a promise of the same kind; ten at most.",
    )
    escalation: Escalation | None = Field(
        None, description="Further channel for incidents of its jobs that are not acknowledged."
    )
    max_running: int = Field(
        0, ge=0, le=10_000, description="Most runs of its jobs at once, on all instances; 0: no limit."
    )
    log_archive: GroupArchive = ""
    log_days: LogDays = 0
    run_days: RunDays = 0


class CodeChannel(Partial):
    """Alarm channel as code, under its name."""

    kind: str = Field("", description="It never changes.", json_schema_extra={"enum": [*ChannelKind]})
    settings: dict[str, str] = Field(
        default_factory=dict, description="Members of its kind, such as `url`; use variables for secrets."
    )
    for_all: bool = Field(False, description="Whether it gets the alarms of all jobs.")
    daily: bool = Field(False, description="Whether it gets a message about the day before at 08:00.")
    groups: list[str] = Field(default_factory=list, max_length=KEYS_MAX, description="AppNames of groups.")
    jobs: list[str] = Field(
        default_factory=list, max_length=KEYS_MAX, description="Keys of jobs, `<AppName>/<key>`."
    )


class CodeCalendar(Partial):
    """Calendar as code, under its name."""

    weekend: list[EnteredWeekday] = Field(default_factory=list, max_length=7, description=WEEKEND)
    days: dict[str, DayWord] = Field(default_factory=dict, max_length=DAYS_MAX, description=DAYS)
    names: dict[str, str] = Field(default_factory=dict, max_length=DAYS_MAX, description=NAMES)
    valid_until: str | None = Field(None, max_length=10, description=VALID_UNTIL)
    unknown: Unknown = Field("weekday", description=UNKNOWN)


class CodeDocument(Partial):
    """Groups, jobs, calendars and alarm channels as they should be."""

    format: Literal[FORMAT] = Field(FORMAT, description="Version of the format.")  # type: ignore[valid-type]
    groups: dict[str, CodeGroup] = Field(default_factory=dict, description="By AppName.")
    jobs: dict[str, CodeJob] = Field(
        default_factory=dict, description=f"By key, `<AppName>/<key>`; at most {JOBS_MAX:,}."
    )
    channels: dict[str, CodeChannel] = Field(default_factory=dict, description="By name.")
    calendars: dict[str, CodeCalendar] = Field(default_factory=dict, description="By name.")


class CodePlanIn(Partial):
    """Document to plan."""

    document: CodeDocument
    prune: list[str] = Field(
        default_factory=list,
        max_length=KEYS_MAX,
        description="Managed objects to delete: keys of jobs, `group:<AppName>`, `channel:<name>`,"
        " `calendar:<name>`.",
    )


class CodeApplyIn(CodePlanIn):
    """Document to apply."""

    source: str = Field(
        min_length=1,
        max_length=SOURCE_NAME_MAX,
        description="Where it comes from, for versions and the audit.",
        examples=["infra@1a2b3c"],
    )
    plan_hash: str | None = Field(
        None, description="`plan_hash` of the plan that was approved; 409 if another one is due by now."
    )

    @field_validator("source")
    @classmethod
    def _check_source(cls, source: str) -> str:
        if any(character < " " or character == "\x7f" for character in source):
            raise ValueError("must be one line without control characters")
        return source


class PlannedField(Schema):
    """Field of an object that changes."""

    field: str
    old: Any = Field(description="Present value; keys in place of ids, `***` for secrets.")
    new: Any = Field(description="Value in the document.")
    was_edited: bool = Field(description="Whether it was changed elsewhere since it was applied.")
    diff: list[str] = Field(default_factory=list, description="Of code: the lines that differ.")


class PlannedTimes(Schema):
    """Next runs of a schedule."""

    before: list[Instant]
    after: list[Instant]


class PlannedObject(Schema):
    """What happens to an object."""

    kind: Literal["group", "job", "channel", "calendar"]
    key: str
    action: Literal["create", "update", "adopt", "delete"]
    id: int | None = Field(description="null: it has none yet.")
    fields: list[PlannedField]
    next_times: PlannedTimes | None = Field(description="null: its schedule does not change.")
    withdrawn: list[Instant] = Field(description="Instants that were planned and will not be fired.")
    owned: list[str] = Field(description="Fields that the code owns from now on, with their present values.")
    released: list[str] = Field(description="Fields that belong to the console from now on.")
    notes: list[str]


class CodePlan(Schema):
    """What an apply would change; without objects nothing."""

    plan_hash: str
    summary: dict[str, int] = Field(description="Number of objects by action, and `unchanged` ones.")
    objects: list[PlannedObject]
    unlisted: list[str] = Field(
        description="Managed objects that the document does not name; only `prune` deletes them."
    )


class CodeApplied(Schema):
    """Result of an apply."""

    apply_id: int | None = Field(description="For undoing it; null: there was nothing to do.")
    plan: CodePlan


class CodeApplyListed(Schema):
    """Apply of the past."""

    id: int
    at: Instant
    username: str = Field(description="Who applied it; of a service token its name.")
    source: str
    summary: dict[str, int]
    undone_at: Instant | None = Field(description="null: it was not undone.")


class DriftedObject(Schema):
    """Managed object that differs from its code."""

    kind: Literal["group", "job", "channel", "calendar"]
    key: str
    id: int
    is_gone: bool = Field(description="Whether it was deleted elsewhere.")
    source: str = Field(description="The apply that made it last.")
    applied_at: Instant
    fields: list[PlannedField] = Field(description="`old`: in the code; `new`: at present.")


class CodeDrift(Schema):
    """Managed objects that differ from their code."""

    items: list[DriftedObject]


class CodeUndoIn(Partial):
    """How to undo an apply."""

    force: bool = Field(False, description="Also where fields were changed again since.")


class CodeExportQuery(Query):
    """What to export."""

    groups: str = Field("", description="AppNames, separated by commas; empty: all.")
    jobs: str = Field(
        "",
        pattern=r"^([0-9]{1,10}(,[0-9]{1,10})*)?$",
        description="Ids of jobs, separated by commas; empty: all.",
    )
    whole: bool = Field(False, description="Include members that have the default value of a new job.")


class CodeExport(Schema):
    """Document of an installation."""

    document: dict[str, Any] = Field(description="As `POST /code/apply` takes it.")
    variables: dict[str, str] = Field(
        description="Place of each secret -> the variable that stands for it in the document."
    )
    notes: list[str] = Field(default_factory=list, description="What was left out, and why.")


def file_schema() -> dict[str, Any]:
    """Return the schema of one file of a folder."""
    schema = CodeDocument.model_json_schema()
    definitions = {name: _with_variables(definition) for name, definition in schema["$defs"].items()}
    definitions["JobCode"]["properties"]["file"] = {
        "type": "string",
        "description": "File with the code, beside this one; in place of `source`.",
    }
    properties = {
        "group": {"type": "string", "description": "AppName of the group of the jobs in this file."},
        **{name: schema["properties"][name] for name in ("jobs", "groups", "calendars", "channels")},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Jobs as code",
        "description": "File of groups, jobs, calendars and alarm channels, for `duetime plan` and `apply`.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }


def _with_variables(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition whose numbers, switches and choices may be variables, too."""
    properties = {name: _variable(member) for name, member in definition.get("properties", {}).items()}
    if not properties:
        return definition
    return {**definition, "properties": properties}


def _variable(member: dict[str, Any]) -> dict[str, Any]:
    member = {name: value for name, value in member.items() if name != "title"}
    if member.get("type") not in {"integer", "boolean"} and "enum" not in member:
        return member
    description = {name: member.pop(name) for name in ("description",) if name in member}
    return {**description, "anyOf": [member, _VARIABLE]}
