"""Job files of the console: documents of jobs as code, as YAML, JSON, or in the former format."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor
from app.domain.code.document import ALARM_CHANNELS, CODE, JOBS, Document
from app.domain.code.former_file import is_former, read_former
from app.domain.code.value_types import check_document
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.code.export import export_document

#: longest file, in bytes
SIZE_MAX = 1024 * 1024
#: errors of a YAML file that are named
ERRORS_MAX = 20


def write_file(session: Session, job_ids: Collection[int], *, actor: Actor) -> str:
    """Return jobs and their groups as YAML; raises InvalidInput if it would be too large to be imported.

    What was left out stands above them as comments. Raises NotFound for a job that the actor may not see.
    """
    from executor_client.code.writing import write_text  # here: only exports need YAML

    if not job_ids:
        raise InvalidInput("file", N_("There are no jobs to export"))
    content = export_document(session, actor=actor, job_ids=job_ids, is_whole=True)
    jobs = content.document[JOBS]
    for members in jobs.values():
        members.pop(ALARM_CHANNELS, None)  # the channels are not in the file
    notes = "".join(f"# {' '.join(note.split())}\n" for note in content.notes)
    text = notes + write_text(content.document, content.variables)
    if len(text.encode("utf-8", "replace")) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file would be larger than %(limit)s bytes; choose fewer jobs", limit=SIZE_MAX)
        )
    return text


def read_file(text: str) -> Document:
    """Return the document of a file; raises InvalidInput with its errors."""
    if len(text.encode("utf-8", "replace")) > SIZE_MAX:
        raise InvalidInput(
            "file", N_("The file is larger than %(limit)s bytes; import it in parts", limit=SIZE_MAX)
        )
    content = _parse_json(text) if text.lstrip().startswith("{") else _parse_yaml(text)
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            "file", N_("%(field)s holds a character that cannot be stored", field="file")
        ) from exc
    document = check_document(read_former(content) if is_former(content) else content)
    if not (document.groups or document.jobs):
        raise InvalidInput("file", N_("The file contains no jobs"))
    return document


def has_source(document: Document) -> bool:
    """Whether a document has code, which is stored only after the password was entered."""
    return any("source" in members.get(CODE, {}) for members in document.jobs.values())


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_members)
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
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("file", N_("The file contains an invalid number or is nested too deeply")) from exc


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _value in pairs)
        double = next(name for name, count in counts.items() if count > 1)
        raise InvalidInput("file", N_("%(name)s is given more than once in an object", name=double[:200]))
    return members


def _parse_yaml(text: str) -> Any:
    from executor_client.code.loading import load_text
    from executor_client.code.source_locations import InvalidCode

    try:
        return load_text(text, "file").document
    except InvalidCode as exc:
        first, *others = [InvalidInput("file", str(problem)) for problem in exc.errors[:ERRORS_MAX]]
        first.further_errors = tuple(others)
        raise first from exc
