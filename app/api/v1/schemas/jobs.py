"""Schemas of jobs, their versions, code and next times.

Members, limits, choices and defaults come from the tables of members and fields.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from app.api.v1.schemas.base import Id, Instant, ListQuery, Partial, Query, Schema
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.document import JobCalendarRule
from app.domain.calendars.preview import Fate
from app.domain.enums import ScheduleType
from app.domain.jobs.fields import SOURCE_MAX
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import CHILDREN, MEMBERS, PLAIN_MEMBERS, JobMember
from app.domain.jobs.tags import TAG_MAX, TAGS_MAX
from app.domain.schedules.schedule import MAX_CONF_LENGTH

Remark = Annotated[
    str, Field(min_length=4, max_length=100, description="What changed.", examples=["first version"])
]
#: most instants of one answer
COUNT_MAX = 100
Count = Annotated[int, Field(ge=1, le=COUNT_MAX, description="How many.", examples=[5])]


class FieldChange(Schema):
    """Changed field of a job."""

    field: str = Field(description="Member of a job.", examples=["schedule"])
    old: Any = Field(description="Value in the version before.", examples=["0 0 2 * * ?"])
    new: Any = Field(description="Value in this version.", examples=["0 30 2 * * ?"])


class VersionListed(Schema):
    """Version of a job: its fields after a change."""

    number: int = Field(description="1 for the first version of the job; numbers have no gaps.", examples=[3])
    changed_at: Instant = Field(description="When the change was made.")
    username: str = Field(description="Who made it; empty: not known.", examples=["ann"])
    source: str = Field(
        description="Where it came from: `token ci`, `import jobs.json`, `apply infra@1a2b3c`, `restore 2`;"
        " `outside`: another program on the same database; empty: the console, or not known.",
        examples=["token ci"],
    )
    changes: list[FieldChange] | None = Field(
        description="What differs from the version before; null where that is not kept."
    )


class VersionOut(VersionListed):
    """Version of a job with all its fields."""

    fields: dict[str, Any] = Field(
        description="The members of the job without its code and its switch.",
        examples=[{"description": "Nightly report", "schedule": "0 30 2 * * ?"}],
    )


#: limits of texts that the services check by rules of their own
LENGTHS = {"schedule": MAX_CONF_LENGTH, "time_zone": 64}
EXAMPLES: dict[str, Any] = {
    "group_id": 1,
    "description": "Nightly report",
    "owner": "ann",
    "handler": "reportHandler",
    "param": "--all",
    "schedule_type": "CRON",
    "schedule": "0 30 2 * * ?",
    "time_zone": "Europe/Berlin",
    "retry_count": 2,
    "tags": ["reports"],
}
Tag = Annotated[str, Field(min_length=1, max_length=TAG_MAX)]
ENABLED = "Whether the schedule is on. A job without a schedule is never on; it can be run at any time."


class JobQuery(ListQuery):
    """Filters of the list of jobs."""

    group_id: Id | None = Field(None, description="Jobs of this executor group.")
    app_name: str = Field("", description="Jobs of the executor groups with this AppName.")
    q: str = Field("", description="Jobs with this text in their descriptions, in any case.")
    handler: str = Field("", description="Jobs with this text in their handlers, in any case.")
    owner: str = Field("", description="Jobs with this text in their owners, in any case.")
    tag: str = Field("", description="Jobs with this tag.")
    enabled: bool | None = Field(None, description="Jobs whose schedule is on, or off.")
    schedule_type: ScheduleType | None = Field(None, description="Jobs with this type of schedule.")


class LastRun(Schema):
    """The newest run of a job."""

    id: str = Field(description="Id of the run.", examples=["4711"])
    state: str = Field(description="State of the run.", examples=["succeeded"])
    started_at: Instant = Field(description="When it was sent.")
    ended_at: Instant | None = Field(description="When its result arrived; null: it has none yet.")
    duration_ms: int | None = Field(description="From its sending to its result.")


class ManagedJob(Schema):
    """How code manages a job."""

    key: str = Field(description="Key of the job in its files.", examples=["my-app/nightly-report"])
    source: str = Field(description="Folder and commit of the last apply.", examples=["infra@1a2b3c4"])
    members: list[str] = Field(description="Members that the code owns.", examples=[["schedule", "owner"]])
    applied_at: Instant = Field(description="When it was applied last.")


class Identified(Schema):
    """Object with an id."""

    id: int = Field(description="Id of the job.", examples=[7])


def _input_type(member: JobMember) -> Any:
    """Return the type of a member in a request."""
    job_field = member.field
    if member.name == "group_id":
        return Id
    if job_field is None:
        return Annotated[list[Tag], Field(max_length=TAGS_MAX)]
    if member.name == CHILDREN:
        return list[Id]
    match job_field.kind:
        case Kind.CHOICE:
            return Literal[tuple(str(choice) for choice in job_field.choices)]
        case Kind.NUMBER:
            return Annotated[int, Field(ge=job_field.low, le=job_field.high)]
        case Kind.INSTANT:
            return Instant | None
        case Kind.BOOLEAN:
            return bool
        case Kind.STRUCTURE:
            return job_field.model()
    longest = job_field.max_length or LENGTHS.get(member.name)
    return Annotated[str, Field(min_length=1 if job_field.is_required else None, max_length=longest)]


def _output_type(member: JobMember) -> Any:
    """Return the type of a member in an answer; rows of a Java admin may have any choice and length."""
    if member.name == CHILDREN:
        return list[int]
    if member.field is None:
        return list[str]
    types = {Kind.NUMBER: int, Kind.INSTANT: Instant | None, Kind.BOOLEAN: bool}
    if member.field.kind is Kind.STRUCTURE:
        return member.field.model()
    return types.get(member.field.kind, str)


def _schema_field(member: JobMember, **options: Any) -> Any:
    examples = [EXAMPLES[member.name]] if member.name in EXAMPLES else None
    return Field(description=member.description, examples=examples, **options)


def _members(base: type[Schema], members: dict[str, Any]) -> Any:
    return create_model("Members", __base__=base, __module__=__name__, **members)


if TYPE_CHECKING:
    NewMembers = Schema
    ChangedMembers = Partial
    ShownMembers = Identified
else:
    NewMembers = _members(
        Schema,
        {
            member.name: (
                _input_type(member),
                _schema_field(member, default=... if member.is_required else member.default),
            )
            for member in MEMBERS
        },
    )
    ChangedMembers = _members(
        Partial,
        {member.name: (_input_type(member), _schema_field(member, default=None)) for member in PLAIN_MEMBERS},
    )
    ShownMembers = _members(
        Identified, {member.name: (_output_type(member), _schema_field(member)) for member in PLAIN_MEMBERS}
    )


class JobIn(NewMembers):
    """A new job."""

    enabled: bool = Field(False, description=ENABLED, examples=[True])


class JobPatch(ChangedMembers):
    """Members of a job to change; the others keep their values. The code has a resource of its own."""

    enabled: bool = Field(False, description=ENABLED)


class JobOut(ShownMembers):
    """A job."""

    VOLATILE = frozenset({"next_times", "last_run"})

    enabled: bool = Field(description=ENABLED)
    next_times: list[Instant] = Field(
        description="The next planned time; empty: there is none, or not before the current run ends."
    )
    last_run: LastRun | None = Field(description="The newest run; null: there is none.")
    managed: ManagedJob | None = Field(description="How code manages the job; null: none does.")
    created_at: Instant | None = Field(description="When the job was added.")
    updated_at: Instant | None = Field(description="When the job was changed last.")


class CodeIn(Schema):
    """Code of a job to save as a new version."""

    source: str = Field(max_length=SOURCE_MAX, description="The code.", examples=["echo $1"])
    remark: Remark


class CodeOut(Schema):
    """Present code of a job."""

    job_id: int
    run_mode: str = Field(description="Language of the code.", examples=["GLUE_SHELL"])
    source: str = Field(description="The code.", examples=["echo $1"])
    remark: str = Field(description="Remark on its version.")
    updated_at: Instant | None = Field(description="When it was saved. Executors get it with their next run.")


class CodeVersion(Schema):
    """Saved version of a job's code, without the code."""

    id: int
    run_mode: str = Field(description="Language of the code.", examples=["GLUE_SHELL"])
    remark: str = Field(description="What changed.")
    author: str = Field(description="Who saved it; empty: unknown.")
    saved_at: Instant | None = Field(description="When it was saved.")


class CodeVersionSource(CodeVersion):
    """Saved version of a job's code."""

    source: str = Field(description="The code.", examples=["echo $1"])


class ScheduleIn(Schema):
    """A schedule to try."""

    schedule_type: Literal["CRON", "FIX_RATE", "FIX_DELAY", "AT"] = Field(examples=["CRON"])
    schedule: str = Field(
        min_length=1, max_length=MAX_CONF_LENGTH, description="As in a job.", examples=["0 30 2 * * ?"]
    )
    time_zone: str = Field("", max_length=64, description="As in a job.", examples=["Europe/Berlin"])
    not_before: Instant | None = Field(None, description="No times before this instant.")
    not_after: Instant | None = Field(None, description="No times after this instant.")
    calendar: JobCalendarRule | None = Field(None, description="As in a job.")
    count: Count = 5


class NextTime(Schema):
    """Planned time."""

    at: Instant
    local: str = Field(description="Local time in the zone.", examples=["2026-11-24T02:30:00+01:00"])


class NextInstant(NextTime):
    """Instant of a schedule with a calendar or blackouts, and what becomes of it; `at` is as entered."""

    fate: Fate = Field(
        description="`moved`: it runs on another day; `skipped`: not at all, by the calendar; `merged`: not"
        " at all, as the schedule has an instant already where it would move; `blackout`: one covers it, and"
        " with `runs_at` it runs at the end."
    )
    runs_at: Instant | None = Field(description="When it runs; null: it does not.")
    day_kind: DayKind | None = Field(description="What its day is; null: there is no calendar.")
    day_name: str = Field(description="Name of its day.", examples=["国庆节"])
    is_known: bool = Field(description="Whether the calendar knows the day.")
    merged_into: Instant | None = Field(description="Instant that takes its place.")
    reason: str = Field(description="Reason of the blackout.")
    has_more: bool = Field(description="Further instants of the day, left out here, share its fate.")


class NextTimes(Schema):
    """The next planned times, fewer than asked for if the schedule ends; of a fixed delay at most one."""

    time_zone: str = Field(description="Zone of the local times.", examples=["Europe/Berlin"])
    items: list[NextTime]
    instants: list[NextInstant] = Field(
        description="With a calendar or blackouts: what becomes of the instants up to then, 200 at most."
    )


class ParameterPreviewQuery(Query):
    """Parameters of a preview of a parameter."""

    count: Annotated[int, Field(ge=1, le=20)] = 3
    logical_time: Instant | None = Field(
        None, description="Preview one run that stands for this instant, instead of the next runs."
    )


class PreviewedRun(Schema):
    """What one run would get."""

    logical_time: Instant
    local: str = Field(description="Local time in the zone.", examples=["2026-11-24T02:30:00+01:00"])
    param: str | None = Field(
        description="Parameter with its values; null: it cannot be filled in.",
        examples=['{"day": "2026-11-23", "token": "‹secret TOKEN›"}'],
    )
    reason: str = Field("", description="Why it cannot be filled in.")


class ParameterPreview(Schema):
    """What the next runs of a job would get."""

    fill_parameter: bool = Field(description="Whether placeholders are filled in.")
    time_zone: str = Field(description="Zone of the local times.", examples=["Europe/Berlin"])
    items: list[PreviewedRun]


class NextTimesQuery(Query):
    """Parameters of next times."""

    count: Count = 5
