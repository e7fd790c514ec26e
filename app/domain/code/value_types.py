"""Value types of a document: whether each member is known, and its value of the JSON type that it needs."""

from collections.abc import Mapping
from typing import Any

from app.domain.code.document import (
    ALARM_CHANNELS,
    AUTOMATIC,
    CALENDARS,
    CHANNELS,
    CODE,
    ENABLED,
    FORMAT,
    GROUPS,
    JOB_MEMBERS,
    JOBS,
    MANUAL,
    Document,
    place,
    read_document,
)
from app.domain.jobs.job_field import Kind
from app.domain.jobs.members import CHILDREN, MEMBER_OF
from app.domain.jobs.structures import GROUP_STRUCTURES
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text
from app.errors import InvalidInput

_CODE = {"language": str, "source": str, "remark": str}
#: of a structure any value: its model is checked when the document is read
_OF_KIND = {
    Kind.TEXT: str,
    Kind.CHOICE: str,
    Kind.NUMBER: int,
    Kind.INSTANT: type(None),
    Kind.BOOLEAN: bool,
    Kind.STRUCTURE: object,
}


def _type_of(name: str) -> type:
    job_field = MEMBER_OF[name].field
    return list if job_field is None or name == CHILDREN else _OF_KIND[job_field.kind]


#: section -> member -> type of its value: lists are of texts, and None stands for a text or null
_TYPES: Mapping[str, Mapping[str, type]] = {
    GROUPS: {"title": str, "address_type": str, "addresses": list, "max_running": int}
    | {"log_archive": str, "log_days": int, "run_days": int}
    | dict.fromkeys(GROUP_STRUCTURES, object),
    JOBS: {name: _type_of(name) for name in JOB_MEMBERS} | {ENABLED: bool, ALARM_CHANNELS: list, CODE: dict},
    CALENDARS: {"weekend": list, "days": dict, "names": dict, "valid_until": type(None), "unknown": str},
}
_PROBLEMS: Mapping[type, Text] = {
    str: N_('Must be text in quotes: "…"'),
    int: N_("Must be a whole number without quotes"),
    bool: N_("Must be true or false"),
    list: N_('Must be a list of strings: ["nightly", "money"]'),
    dict: N_("Must be a mapping of names to text"),
    type(None): N_("Must be empty or a time with an offset, such as 2030-01-31T08:00:00+08:00"),
}


def check_document(content: Any) -> Document:
    """Return the document of values that a file has; raises InvalidInput with the errors of all objects."""
    if not isinstance(content, dict) or str(content.get("format", FORMAT)) != str(FORMAT):
        raise InvalidInput("file", N_("The file must be a document of jobs as code, with groups and jobs"))
    if content.get(CHANNELS):  # a task would hold their secrets in plain text
        raise InvalidInput("file", N_("Alarm channels are not imported: remove channels from the file"))
    errors = InputErrors()
    with errors:
        _refuse_unknown("", content, ("format", *_TYPES, CHANNELS))
    sections = {name: content.get(name) or {} for name in _TYPES}
    for section, objects in sections.items():
        if not isinstance(objects, dict):
            raise InvalidInput(section, N_("Must be a mapping of keys to their members"))
        for key, members in objects.items():
            _check_object(section, key, members, errors)
    errors.raise_all()
    return read_document(sections[GROUPS], sections[JOBS], {}, sections[CALENDARS])


def _check_object(section: str, key: str, members: Any, errors: InputErrors) -> None:
    with errors:
        if not isinstance(members, dict):
            raise InvalidInput(place(section, key), N_("Must be a mapping of members to their values"))
        _refuse_unknown(place(section, key), members, _TYPES[section])
        for name, value in members.items():
            with errors:
                if not _is_of(_TYPES[section][name], value):
                    raise InvalidInput(place(section, key, name), _PROBLEMS[_TYPES[section][name]])
                if name == CODE:
                    _refuse_unknown(place(section, key, name), value, _CODE)
                if name == "address_type" and value not in (AUTOMATIC, MANUAL):
                    options = f"{AUTOMATIC}, {MANUAL}"
                    problem = N_("'%(text)s' is not one of %(options)s", text=value, options=options)
                    raise InvalidInput(place(section, key, name), problem)


def _refuse_unknown(where: str, members: Mapping[str, Any], allowed_names: Any) -> None:
    unknown = next((name for name in members if name not in allowed_names), None)
    if unknown is not None:
        members_text = ", ".join(allowed_names)
        problem = N_("There is no such member; known members: %(members)s", members=members_text)
        raise InvalidInput(f"{where}.{unknown}".lstrip(".")[:255], problem)


def _is_of(kind: type, value: Any) -> bool:
    if kind is type(None):
        return value is None or isinstance(value, str)
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is dict:
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
