"""docs/reference/api.md, made from the document of the API: ``python3 manage.py reference`` writes it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.api.v1.application import document_json
from app.domain.api_reference import Member, Operation, Reference, read_document
from tests.documented.prose import wrapped

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"
#: explained once, in docs/api.md
COMMON = ("limit", "cursor", "dry_run", "Idempotency-Key", "If-Match", "If-None-Match")
HEAD = """\
# API

Every operation of API v1 and every object it takes and returns. `python3 manage.py reference` makes
this page from the schemas that check the requests. [../api.md](../api.md) has a tutorial and
explains what all operations have in common: `limit` and `cursor` of lists, `dry_run`,
`Idempotency-Key`, `If-Match`, errors.

Paths are below `/api/v1` of the console's address. A member in bold is required.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_of(json.loads(document_json())), encoding="utf-8")


def page_of(document: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_lines(read_document(document))]).rstrip("\n") + "\n"


def _lines(reference: Reference) -> Iterator[str]:
    for resource in reference.resources:
        yield f"## {resource.name.capitalize()}\n"
        if resource.description:
            yield wrapped(_sentence(resource.description)) + "\n"
        for operation in resource.operations:
            yield from _operation(operation)
    yield "## Objects\n"
    for each in reference.objects:
        yield f"### {each.name}\n"
        if each.description:
            yield wrapped(each.description) + "\n"
        if each.members:
            yield from _table(each.members)


def _operation(operation: Operation) -> Iterator[str]:
    yield f"### {operation.method.upper()} {operation.path}\n"
    description = f" {operation.description}" if operation.description else ""
    yield wrapped(_sentence(operation.summary) + description) + "\n"
    own = [
        each
        for each in operation.parameters
        if each.name not in COMMON and (each.location != "path" or each.description)
    ]
    if own:
        yield from _table(own)
    common = [f"`{each.name}`" for each in operation.parameters if each.name in COMMON]
    facts = [f"Also: {', '.join(common)}."] if common else []
    if operation.body_object:
        facts.append(f"Body: {_link(operation.body_object)}.")
    for answer in operation.successes:
        shown = _link(answer.object) if answer.object else ", ".join(answer.types)
        facts.append(f"Answer {answer.status}: {shown or 'no content'}.")
    yield wrapped(" ".join(facts)) + "\n"


def _table(members: Sequence[Member]) -> Iterator[str]:
    yield "| name | type | meaning |"
    yield "|---|---|---|"
    for each in members:
        name = f"**`{each.name}`**" if each.is_required else f"`{each.name}`"
        type_ = each.type.replace(each.object, _link(each.object)) if each.object else each.type
        location = " (header)" if each.location == "header" else ""
        yield f"| {name} | {_cell(type_)}{location} | {_cell(each.description)} |"
    yield ""


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


if __name__ == "__main__":
    main()
