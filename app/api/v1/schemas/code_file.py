"""JSON Schema of jobs-as-code files, for editors: parts of the document, with variables."""

from typing import Any

from app.api.v1.schemas.code import CodeDocument

#: value of any type that a variable gives
_VARIABLE = {"type": "string", "pattern": r"\$\{"}


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
        **{name: schema["properties"][name] for name in ("jobs", "groups", "channels")},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Jobs as code",
        "description": "File of groups, jobs and alarm channels for `xxl plan` and `xxl apply`.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }


def _with_variables(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition whose numbers, switches and choices may be variables, too."""
    properties = {name: _variable(member) for name, member in definition["properties"].items()}
    return {**definition, "properties": properties}


def _variable(member: dict[str, Any]) -> dict[str, Any]:
    member = {name: value for name, value in member.items() if name != "title"}
    if member.get("type") not in {"integer", "boolean"} and "enum" not in member:
        return member
    description = {name: member.pop(name) for name in ("description",) if name in member}
    return {**description, "anyOf": [member, _VARIABLE]}
