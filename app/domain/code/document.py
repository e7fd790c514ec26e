"""Document of jobs as code: groups, jobs, calendars and alarm channels under stable keys.

The key of a group is its AppName, that of a channel or calendar its name, that of a job ``<AppName>/<own
key>``. A field that an object names is owned by code; the others belong to the console. Values are the JSON
values of the API, with keys in place of ids; the address type of a group has names of its own.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.code.calendar_plans import stored_members
from app.domain.enums import GlueType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import CHILDREN, MEMBER_OF, PLAIN_MEMBERS
from app.domain.jobs.structures import GROUP_STRUCTURES, stored_structure
from app.domain.jobs.tags import check_tags
from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

FORMAT = 1
JOBS_MAX = 5_000
GROUPS, JOBS, CHANNELS, CALENDARS = "groups", "jobs", "channels", "calendars"
#: own key of a job
KEY = re.compile(r"[\w][\w.-]*")
KEY_MAX = 120
#: members of a job in a document: those of the API, except those that the key and the code replace
JOB_MEMBERS = tuple(member.name for member in PLAIN_MEMBERS if member.name not in {"group_id", "run_mode"})
ENABLED, ALARM_CHANNELS, CODE = "enabled", "alarm_channels", "code"
AUTOMATIC, MANUAL = "automatic", "manual"

Members = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """Checked document; each object has the members that its file names, in their stored form."""

    groups: Mapping[str, Members]
    #: full key -> members; children are full keys
    jobs: Mapping[str, Members]
    channels: Mapping[str, Members]
    calendars: Mapping[str, Members] = field(default_factory=dict)


def place(section: str, key: str, member: str = "") -> str:
    """Return the name under which errors report a member: ``jobs.sample/close.schedule``."""
    return f"{section}.{key}.{member}" if member else f"{section}.{key}"


def at_place(error: InvalidInput, section: str, key: str) -> InvalidInput:
    """Return an error of an object's members, with the others of the same input, under its full name."""
    first, *further = (InvalidInput(place(section, key, item.field), item.message) for item in error.errors)
    first.further_errors = tuple(further)
    return first


def app_of(key: str) -> str:
    """Return the AppName in the full key of a job."""
    return key.rpartition("/")[0]


def read_document(
    groups: Mapping[str, Members],
    jobs: Mapping[str, Members],
    channels: Mapping[str, Members],
    calendars: Mapping[str, Members] | None = None,
) -> Document:
    """Return the document of members of valid types; raises InvalidInput with the errors of all objects."""
    errors = InputErrors()
    with errors:
        if len(jobs) > JOBS_MAX:
            raise InvalidInput(
                JOBS,
                N_(
                    "The document has %(count)s jobs; at most %(limit)s can be applied at once",
                    count=len(jobs),
                    limit=JOBS_MAX,
                ),
            )
    errors.raise_all()
    read_groups = _read_all(GROUPS, groups, _group, errors)
    read_jobs = _read_all(JOBS, jobs, _job, errors)
    read_channels = _read_all(CHANNELS, channels, _channel, errors)
    read_calendars = _read_all(CALENDARS, calendars or {}, stored_members, errors)
    errors.raise_all()
    return Document(read_groups, *_routes(read_jobs, read_channels), read_calendars)


def _read_all(
    section: str, objects: Mapping[str, Members], read_members: Any, errors: InputErrors
) -> dict[str, Members]:
    result: dict[str, Members] = {}
    for key, members in objects.items():
        with errors:
            try:
                result[key] = read_members(key, members)
            except InvalidInput as exc:
                raise at_place(exc, section, key) from exc
    return result


def _group(_key: str, members: Members) -> Members:
    errors, result = InputErrors(), dict(members)
    with errors:
        if members.get("addresses") and members.get("address_type") != MANUAL:
            problem = N_("Only a group with address_type: manual has addresses of its own")
            raise InvalidInput("addresses", problem)
    for name in GROUP_STRUCTURES:
        if name in members:
            with errors:
                result[name] = _to_stored(name, members[name])
    errors.raise_all()
    return result


def _job(key: str, members: Members) -> Members:
    """Return the members of a job as they are stored; raises InvalidInput with all their errors."""
    errors, result = InputErrors(), dict(members)
    with errors:
        _check_key(key)
    with errors:
        if "schedule" in members and "schedule_type" not in members:
            raise InvalidInput("schedule", N_("Name the schedule_type too, such as CRON"))
    with errors:
        if CODE in members:
            result[CODE] = _code(members[CODE])
    with errors:
        if "tags" in members:
            result["tags"] = list(check_tags(members["tags"]))
    for name in JOB_MEMBERS:
        if name in members and name not in {CHILDREN, "tags"}:
            with errors:
                result[name] = _to_stored(name, members[name])
    if result.get(RUNS_AFTER):
        keys = (full_key(str(other), app_of(key)) for other in named_jobs(result[RUNS_AFTER]))
        result[RUNS_AFTER] = with_named(result[RUNS_AFTER], keys)
    if CHILDREN in members:
        result[CHILDREN] = list(dict.fromkeys(full_key(child, app_of(key)) for child in members[CHILDREN]))
    if ALARM_CHANNELS in members:
        result[ALARM_CHANNELS] = sorted(set(members[ALARM_CHANNELS]))
    errors.raise_all()
    return result


def full_key(key: str, app_name: str) -> str:
    """Return the full key of a job that another of the same group may name by its own key."""
    return key if "/" in key else f"{app_name}/{key}"


def _check_key(key: str) -> None:
    app_name, _, job_key = key.rpartition("/")
    if not app_name or KEY.fullmatch(job_key) is None or len(job_key) > KEY_MAX:
        raise InvalidInput(
            "",
            N_(
                '"%(key)s" is not a key such as sample/close-books: an AppName, and at most %(limit)s'
                " letters, digits, dots, - and _",
                key=key[:200],
                limit=KEY_MAX,
            ),
        )


def _code(code: Members) -> Members:
    language = code.get("language", "")
    if language not in list(GlueType) or language == GlueType.BEAN:
        options = ", ".join(kind for kind in GlueType if kind != GlueType.BEAN)
        raise InvalidInput(
            "code.language", N_("'%(text)s' is not one of %(options)s", text=language, options=options)
        )
    result = dict(code)
    if language == GlueType.GLUE_SHELL and "source" in result:
        result["source"] = result["source"].replace("\r", "")
    return result


def _code_runs_after() -> Any:
    from app.domain.rounds.document import RunsAfterKeys

    return RunsAfterKeys | None


#: what a job runs after, with keys in place of ids
_BY_KEYS = replace(FIELD_OF[RUNS_AFTER], model=_code_runs_after)


def _to_stored(name: str, value: Any) -> Any:
    """Return a value as the table would return it: trimmed, instants in UTC, structures with defaults."""
    member = MEMBER_OF[name]
    if member.field is not None and member.field.kind is Kind.STRUCTURE:
        job_field = _BY_KEYS if name == RUNS_AFTER else member.field
        return json.loads(stored_structure(job_field, member.write(value)))
    if member.field is not None and member.field.kind is Kind.INSTANT:
        return member.read(member.write(value))
    return trim(name, value)


def trim(name: str, value: Any) -> Any:
    """Return the value of a job's member without surrounding blanks, unless these have a meaning."""
    job_field = MEMBER_OF[name].field
    keeps_blanks = job_field is not None and job_field.keeps_blanks
    return value.strip() if isinstance(value, str) and not keeps_blanks else value


def _channel(_key: str, members: Members) -> Members:
    kind = members.get("kind")
    if kind is not None and kind not in list(ChannelKind):
        raise InvalidInput(
            "kind",
            N_("'%(text)s' is not one of %(options)s", text=kind, options=", ".join(ChannelKind)),
        )
    if members.get("for_all") and (members.get(GROUPS) or members.get(JOBS)):
        raise InvalidInput("for_all", N_("A channel for all jobs names neither groups nor jobs"))
    if kind is not None:
        names = [field.name for field in KINDS[ChannelKind(kind)].fields]
        unknown = next((name for name in members.get("settings", {}) if name not in names), None)
        if unknown is not None:
            problem = N_("A channel of this kind has: %(fields)s", fields=", ".join(names))
            raise InvalidInput(f"settings.{unknown}", problem)
    return {**members, **{name: sorted(set(members[name])) for name in (GROUPS, JOBS) if name in members}}


def _routes(
    jobs: Mapping[str, Members], channels: Mapping[str, Members]
) -> tuple[dict[str, Members], dict[str, Members]]:
    """Return jobs and channels that agree: a route may be written at the job or at the channel."""
    jobs_by_channel: dict[str, set[str]] = {name: set() for name in channels}
    channels_by_job: dict[str, set[str]] = {}
    for key, members in jobs.items():
        for name in members.get(ALARM_CHANNELS, ()):
            jobs_by_channel.setdefault(name, set()).add(key)
    for name, members in channels.items():
        for key in members.get(JOBS, ()):
            channels_by_job.setdefault(key, set()).add(name)
    agreed_jobs = {
        key: {**members, ALARM_CHANNELS: sorted({*members[ALARM_CHANNELS], *channels_by_job.get(key, ())})}
        if ALARM_CHANNELS in members
        else members
        for key, members in jobs.items()
    }
    agreed_channels = {
        name: {**members, JOBS: sorted({*members[JOBS], *jobs_by_channel[name]})}
        if JOBS in members
        else members
        for name, members in channels.items()
    }
    return agreed_jobs, agreed_channels
