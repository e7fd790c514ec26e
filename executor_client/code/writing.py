"""Files of an exported document: one per group with its code beside it, of the calendars, of the channels."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from executor_client.code.loading import BASE, VARIABLES
from executor_client.code.members import JOB, PARAMETER
from executor_client.code.variables import escape, escape_parameter
from executor_client.code.yaml_writing import dump

SCHEMA = "# yaml-language-server: $schema={}\n"
#: language of code -> suffix of its file
SUFFIXES = {
    "GLUE_SHELL": ".sh",
    "GLUE_PYTHON": ".py",
    "GLUE_PHP": ".php",
    "GLUE_NODEJS": ".js",
    "GLUE_POWERSHELL": ".ps1",
    "GLUE_GROOVY": ".groovy",
}
#: names of group files to avoid: the file of variables, and ``base.yaml``, whose code would need ``base``
_RESERVED_NAMES = (VARIABLES, f"{BASE}.yaml")


def write_files(
    document: Mapping[str, Any], variables: Mapping[str, str], *, schema_url: str = ""
) -> dict[str, str]:
    """Return path below the folder -> content. ``variables``: location of a secret -> its variable."""
    files: dict[str, str] = {}
    header = SCHEMA.format(schema_url) if schema_url else ""
    by_group: dict[str, dict[str, Any]] = {app_name: {} for app_name in document.get("groups", {})}
    for key, job in document.get("jobs", {}).items():
        app_name, _, job_name = key.rpartition("/")
        by_group.setdefault(app_name, {})[job_name] = job
    for app_name, jobs in by_group.items():
        name = _unique_name(_file_name(app_name), files)
        content: dict[str, Any] = {"group": escape(app_name)}
        if app_name in document.get("groups", {}):
            content["groups"] = {app_name: _escape_values(document["groups"][app_name])}
        if jobs:
            content["jobs"] = {key: _job(job, name, key, files) for key, job in jobs.items()}
        files[f"{name}.yaml"] = header + dump(content)
    if calendars := document.get("calendars"):
        content = {"calendars": _escape_values(calendars)}
        files[_unique_name("calendars", files) + ".yaml"] = header + dump(content)
    channels = dict(_channels(document.get("channels", {}), variables))
    if channels:
        files[_unique_name("channels", files) + ".yaml"] = header + dump({"channels": channels})
    return files


def write_text(document: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """Return a document as one file, its code inside."""
    content: dict[str, Any] = {}
    if document.get("groups"):
        content["groups"] = {name: _escape_values(group) for name, group in document["groups"].items()}
    if document.get("jobs"):
        content["jobs"] = {
            key: _in_file_order(_without_variables(job)) for key, job in document["jobs"].items()
        }
    if document.get("calendars"):
        content["calendars"] = _escape_values(document["calendars"])
    channels = dict(_channels(document.get("channels", {}), variables))
    return dump({**content, "channels": channels} if channels else content)


def _job(job: Mapping[str, Any], folder: str, key: str, files: dict[str, str]) -> dict[str, Any]:
    """Return the members of a job for its file; its code becomes a file of its own."""
    members = _without_variables(job)
    code = members.get("code")
    if code and "source" in code:
        suffix = SUFFIXES.get(code["language"], ".txt")
        path = f"{folder}/{_file_name(key)}{suffix}"
        number = 1
        while path in files:
            number += 1
            path = f"{folder}/{_file_name(key)}-{number}{suffix}"
        files[path] = code["source"]
        rest = {name: value for name, value in code.items() if name not in {"source", "language"}}
        members["code"] = {"language": code["language"], "file": escape(path), **rest}
    return _in_file_order(members)


def _without_variables(job: Mapping[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = _escape_values(job)
    if isinstance(job.get(PARAMETER), str):
        members[PARAMETER] = escape_parameter(job[PARAMETER])
    if "source" in job.get("code", {}):
        members["code"]["source"] = job["code"]["source"]
    return members


def _in_file_order(members: dict[str, Any]) -> dict[str, Any]:
    first = {name: members[name] for name in JOB if name in members}
    return {**first, **members}


def _channels(
    channels: Mapping[str, Any], variables: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, channel in channels.items():
        members = _escape_values(channel)
        for setting, value in channel.get("settings", {}).items():
            if f"channels.{name}.settings.{setting}" in variables:
                members["settings"][setting] = value
        yield name, members


def _escape_values(value: Any) -> Any:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {name: _escape_values(member) for name, member in value.items()}
    return [_escape_values(item) for item in value] if isinstance(value, list) else value


def _file_name(name: str) -> str:
    slug = re.sub(r"[^\w.-]+", "-", name).strip(".-")
    return PurePosixPath(slug or "group").name


def _unique_name(name: str, files: Mapping[str, str]) -> str:
    names = {path.casefold() for path in (*files, *_RESERVED_NAMES)}
    candidate, number = name, 1
    while f"{candidate}.yaml".casefold() in names:
        number += 1
        candidate = f"{name}-{number}"
    return candidate
