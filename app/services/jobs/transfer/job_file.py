"""Job file: jobs as JSON, with the member names of the scripting endpoints and our own.

``{"format": 1, "jobs": [{"id": 7, "appname": "sample", "jobDesc": "nightly report", …}]}``. Group ids are
left out because they differ between installations; a job has its id only so that ``childJobId`` of other jobs
can refer to it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.clock import SECOND_MS, Millis
from app.domain.enums import GlueType
from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.domain.jobs.fields import JOB_FIELDS, Kind, file_attributes
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.jobs.tags import check_tags
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.job import Job

#: version of the format; other versions are refused
FORMAT = 1
#: longest file, in bytes
SIZE_MAX = 1024 * 1024
JOBS_MAX = 2_000

#: member of the file -> attribute of a job and of its draft
TEXTS = file_attributes(Kind.TEXT, Kind.CHOICE)
NUMBERS = file_attributes(Kind.NUMBER)
TIMES = file_attributes(Kind.INSTANT)
CHILDREN, SOURCE, REMARK = "childJobId", "glueSource", "glueRemark"
MEMBERS = ("id", "appname", *TEXTS, *TIMES, *NUMBERS, CHILDREN, TAGS, SOURCE, REMARK)
#: texts that are not trimmed
UNTRIMMED = frozenset({SOURCE, REMARK, *(each.file_name for each in JOB_FIELDS if each.keeps_blanks)})

EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One job of a file. Members that the file omits are missing in ``given``, too."""

    #: position in the file, from 1
    number: int
    #: 0: none; then no other job can refer to it as a child
    file_id: int = 0
    app_name: str = ""
    #: attribute of a draft -> value
    given: Mapping[str, Any] = field(default_factory=dict)
    #: ids in the file; None: not in the file
    children: tuple[int, ...] | None = None
    source: str | None = None
    remark: str = ""
    #: the errors in its members
    error: InvalidInput | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The key that identifies a job: AppName, description and handler."""
        return self.app_name, str(self.given.get("job_desc", "")), str(self.given.get("executor_handler", ""))


def job_object(job: Job, app_name: str, tags: Sequence[str], *, with_source: bool) -> dict[str, Any]:
    """Return the object of a job; ``with_source`` if the reader may see and write code."""
    members: dict[str, Any] = {"id": job.id, "appname": app_name}
    members |= {name: getattr(job, attribute) or "" for name, attribute in TEXTS.items()}
    members |= {name: write_time(getattr(job, attribute)) for name, attribute in TIMES.items()}
    members |= {name: getattr(job, attribute) for name, attribute in NUMBERS.items()}
    members |= {CHILDREN: child_ids_text(job.child_ids), TAGS: list(tags)}
    if with_source and job.glue_type != GlueType.BEAN:
        members |= {SOURCE: job.glue_source or "", REMARK: job.glue_remark or ""}
    return members


def write_file(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a file; raises InvalidInput if it would be too large to import."""
    text = json.dumps({"format": FORMAT, "jobs": list(objects)}, ensure_ascii=False, indent=2) + "\n"
    if len(text.encode("utf-8", "replace")) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file would be larger than %(limit)s bytes; choose fewer jobs", limit=SIZE_MAX)
        )
    return text


def read_file(text: str, *, readable_by_java: bool = False) -> list[Entry]:
    """Return the jobs of a file, each with its first error; raises InvalidInput if it is not a job file.

    ``readable_by_java``: refuse jobs that a Java admin on the same database cannot read.
    """
    if len(text.encode("utf-8", "replace")) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file is larger than %(limit)s bytes; import it in parts", limit=SIZE_MAX)
        )
    content = _parse(text)
    if not isinstance(content, dict) or not isinstance(content.get("jobs"), list):
        raise InvalidInput("file", N_('The file must be an object such as {"format": 1, "jobs": []}'))
    if content.get("format") != FORMAT or isinstance(content["format"], bool):
        raise InvalidInput("file", N_('"format" must be %(format)s', format=FORMAT))
    jobs = content["jobs"]
    if not jobs:
        raise InvalidInput("file", N_("The file contains no jobs"))
    if len(jobs) > JOBS_MAX:
        raise InvalidInput(
            "file",
            N_(
                "The file contains %(count)s jobs; at most %(limit)s can be imported at once",
                count=len(jobs),
                limit=JOBS_MAX,
            ),
        )
    entries = _mark_duplicates([_entry(number, job) for number, job in enumerate(jobs, 1)])
    if readable_by_java:
        entries = [replace(entry, given={**entry.given, "readable_by_java": True}) for entry in entries]
    return entries


def write_time(at_ms: Millis) -> str:
    """Return an instant in UTC, ``2030-01-31T00:00:00Z``; an empty text for 0."""
    if not at_ms:
        return ""
    spec = "milliseconds" if at_ms % SECOND_MS else "seconds"
    return (EPOCH + timedelta(milliseconds=at_ms)).replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def _parse(text: str) -> Any:
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as exc:
        raise InvalidInput(
            "file",
            N_(
                "Invalid JSON at line %(line)s, column %(column)s: %(problem)s",
                line=exc.lineno,
                column=exc.colno,
                problem=exc.msg,
            ),
        ) from exc
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            "file", N_("%(field)s holds a character that cannot be stored", field="file")
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("file", N_("The file contains an invalid number or is nested too deeply")) from exc
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _entry(number: int, job: Any) -> Entry:
    """Read one job. An error keeps the job's key, so that the import can report which job it is."""
    if not isinstance(job, dict):
        return Entry(
            number, error=InvalidInput("jobs", N_("A job must be an object with members such as jobDesc"))
        )
    try:
        return _read(number, job)
    except InvalidInput as exc:
        texts = {name: job[name] for name in ("appname", "jobDesc") if isinstance(job.get(name), str)}
        file_id = job["id"] if isinstance(job.get("id"), int) else 0
        given = {"job_desc": texts.get("jobDesc", "").strip()}
        return Entry(number, file_id, texts.get("appname", "").strip(), given, error=exc)


def _read(number: int, job: dict[str, Any]) -> Entry:
    """Read the members of a job; raises InvalidInput with all their errors."""
    errors, read = InputErrors(), dict[str, Any]()
    for name in job:
        with errors:
            read[name] = _member(job, name)
    errors.raise_all()
    given = {
        attribute: read[name]
        for name, attribute in (*TEXTS.items(), *NUMBERS.items(), *TIMES.items(), (TAGS, "tags"))
        if name in read
    }
    return Entry(
        number,
        file_id=read.get("id", 0),
        app_name=read.get("appname", ""),
        given=given,
        children=read.get(CHILDREN),
        source=read.get(SOURCE),
        remark=read.get(REMARK, ""),
    )


def _member(job: dict[str, Any], name: str) -> Any:
    """Return the value of a member; raises InvalidInput."""
    if name not in MEMBERS:
        raise InvalidInput(
            name[:64], N_("Jobs have no such field; known fields: %(fields)s", fields=", ".join(MEMBERS))
        )
    if name == "id" or name in NUMBERS:
        return _number(job, name)
    if name in TIMES:
        return _time(job, name)
    if name == TAGS:
        return _tags(job[name])
    text = _text(job, name)
    return tuple(parse_child_ids(text)) if name == CHILDREN else text


def _text(job: dict[str, Any], name: str) -> str:
    value = job[name]
    if not isinstance(value, str):
        raise InvalidInput(name, N_('Must be text in quotes: "…"'))
    return value if name in UNTRIMMED else value.strip()


def _number(job: dict[str, Any], name: str) -> int:
    value = job[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(name, N_("Must be a whole number without quotes"))
    return value


def _tags(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise InvalidInput(TAGS, N_('Must be a list of strings: ["nightly", "money"]'))
    return check_tags(value)


def _time(job: dict[str, Any], name: str) -> Millis:
    text = _text(job, name)
    if not text:
        return 0
    refusal = InvalidInput(
        name, N_("Must be empty or a time with an offset, such as 2030-01-31T08:00:00+08:00")
    )
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise refusal
        return (moment - EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError) as exc:
        raise refusal from exc


def _mark_duplicates(entries: list[Entry]) -> list[Entry]:
    """Set the error of jobs whose id or key occurred before."""
    ids: dict[int, int] = {}
    keys: dict[tuple[str, str, str], int] = {}
    checked = []
    for entry in entries:
        if entry.file_id and (first := ids.setdefault(entry.file_id, entry.number)) != entry.number:
            refusal = InvalidInput("id", N_("Job %(number)s of the file has the same id", number=first))
            entry = replace(entry, file_id=0, error=refusal)
        elif entry.error is None and (first := keys.setdefault(entry.key, entry.number)) != entry.number:
            refusal = InvalidInput(
                "jobDesc",
                N_(
                    "Job %(number)s of the file has the same appname, jobDesc and executorHandler",
                    number=first,
                ),
            )
            entry = replace(entry, error=refusal)
        checked.append(entry)
    return checked
