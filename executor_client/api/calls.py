"""Calls behind ``Client``: trigger, find and end runs by names and Python values."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, get_args

from executor_client.api.client import ApiClient
from executor_client.api.errors import Conflict, NotFound, NotUnique, UnknownName
from executor_client.api.session import Item
from executor_client.api.transport import Query, Request
from executor_client.api.views import UNSUCCESSFUL, Job, ListedState, PreviewedRun, State
from executor_client.handlers.declarations import declare
from executor_client.handlers.terms import param_text
from executor_client.wire.errors import HandlerConflict

#: number of matches that an error lists
CANDIDATES_MAX = 10
#: attempts to end a run that is being sent, and seconds between them
END_ATTEMPTS, END_PAUSE_S = 20, 0.1
#: a job: its id, its handler or description, or the job itself
JobRef = int | str | Job


def trigger_body(
    param: Any,
    at: datetime | None,
    in_: float | timedelta | None,
    addresses: Sequence[str],
    logical_time: datetime | None = None,
    force: bool = False,
    *,
    chain: bool = False,
) -> Item:
    """Return the body of a trigger; raise ValueError for values that exclude each other."""
    if at is not None and in_ is not None:
        raise ValueError("at and in_ cannot be used together")
    body: Item = {"addresses": list(addresses)} if addresses else {}
    if param is not None:
        body["param"] = _param(param)
    if at is not None:
        body["at"] = instant_text(at)
    if in_ is not None:
        body["in_s"] = in_.total_seconds() if isinstance(in_, timedelta) else in_
    if logical_time is not None:
        body["logical_time"] = instant_text(logical_time)
    if force:
        body["force"] = True
    if chain:
        body["chain"] = True
    return body


def _param(value: Any) -> str:
    try:
        return param_text(value)
    except ValueError as exc:
        raise ValueError(f"param {exc}") from exc


def preview_parameter(
    client: ApiClient, job_id: int, *, count: int, logical_time: datetime | None
) -> list[PreviewedRun]:
    """Return what the next runs of a job would get, or the one that stands for a time."""
    query: Query = {"count": count}
    if logical_time is not None:
        query = {"logical_time": instant_text(logical_time)}
    answer = client.get(f"/jobs/{job_id}/parameter-preview", query)
    return [PreviewedRun.of(item) for item in answer["items"]]


def instant_text(moment: datetime) -> str:
    """Return an instant in the API's format; one without tzinfo is local time."""
    return moment.astimezone().isoformat(timespec="milliseconds")


def trigger(client: ApiClient, job_id: int, body: Mapping[str, Any], key: str) -> Item:
    """Trigger a job; without a key of its own the request gets a random one."""
    headers = _key_header(key)
    return client.call(Request("POST", f"/jobs/{job_id}/runs", body=dict(body), headers=headers))


def _key_header(key: str) -> dict[str, str]:
    """Return the header of an idempotency key; raise ValueError for one that no header can hold."""
    if not (key.isascii() and key.isprintable()):
        raise ValueError(f"idempotency_key must be visible ASCII characters, not {key!r}")
    return {"Idempotency-Key": key} if key else {}


@contextmanager
def explain_missing(kind: str, word: int | str) -> Iterator[None]:
    """Replace NotFound by an error that names the object."""
    try:
        yield
    except NotFound as exc:
        raise UnknownName(f"there is no {kind} {word} that the token may see") from exc


def find_job(client: ApiClient, job: JobRef, group: str) -> Job:
    """Return a job; raise UnknownName or NotUnique."""
    if isinstance(job, Job):
        return job
    if not isinstance(job, int | str) or isinstance(job, bool):
        raise TypeError(f"job must be an id, a handler or description, or a Job, not {job!r}")
    if isinstance(job, int):
        with explain_missing("job", job):
            item = client.job(job)
        return Job.of(item, client.group(item["group_id"])["app_name"])
    items = jobs_named(client, job, app_name=group)
    names = app_names(client) if items else {}
    jobs = [Job.of(item, names.get(item["group_id"], "")) for item in items]
    if len(jobs) == 1:
        return jobs[0]
    of_group = f" in the executor group {group}" if group else ""
    if not jobs:
        hint = f"; for the id give a number: {job}" if job.isdecimal() else ""
        raise UnknownName(f"there is no job {job}{of_group} that the token may see{hint}")
    lines = [
        f"{candidate.id} {candidate.description!r} ({candidate.handler}, {candidate.group})"
        for candidate in jobs[:CANDIDATES_MAX]
    ]
    more = f" and {len(jobs) - CANDIDATES_MAX} more" if len(jobs) > CANDIDATES_MAX else ""
    raise NotUnique(
        f"{len(jobs)} jobs have the name {job}{of_group}; give the id of one: {', '.join(lines)}{more}",
        [candidate.id for candidate in jobs],
    )


def create_job(client: ApiClient, handler: str, group: str, terms: Mapping[str, Any], key: str) -> Job:
    """Add a job of a group by the terms of ``@job``; raise ValueError for those that cannot be read."""
    try:
        declaration = declare(handler, terms)
    except HandlerConflict as exc:
        raise ValueError(str(exc)) from exc
    members = declaration.members if declaration is not None else {}
    body = {
        "description": handler,
        **members,
        "handler": handler,
        "group_id": group_id_of(client, group),
        "owner": members.get("owner") or client.me()["name"],
        "children": [find_job(client, name, group).id for name in members.get("children", ())],
    }
    headers = _key_header(key)
    return Job.of(client.call(Request("POST", "/jobs", body=body, headers=headers)), group)


def switch_job(client: ApiClient, job: JobRef, group: str, *, on: bool) -> Job:
    """Switch the schedule of a job on or off."""
    present_job = find_job(client, job, group)
    item = client.post(f"/jobs/{present_job.id}/{'start' if on else 'stop'}")
    return Job.of(item, present_job.group)


def runs_query(
    client: ApiClient,
    job: JobRef | None,
    group: str,
    state: ListedState | None,
    period: tuple[datetime | None, datetime | None],
    logical: tuple[datetime | None, datetime | None],
) -> Query:
    """Return the filters of a list of runs; names are looked up. ``logical``: bounds of logical times."""
    if state is not None:
        _require(state, "state", (*get_args(State), UNSUCCESSFUL))
    job_id = None if job is None else job if isinstance(job, int) else find_job(client, job, group).id
    since, until, logical_from, logical_to = (
        None if moment is None else instant_text(moment) for moment in (*period, *logical)
    )
    return {
        "job_id": job_id,
        "group_id": group_id_of(client, group) if group and job is None else None,
        "state": state,
        "from": since,
        "to": until,
        "logical_from": logical_from,
        "logical_to": logical_to,
    }


def _require(value: object, name: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ValueError(f"{name} cannot be {value!r}: one of {', '.join(options)}")


def group_id_of(client: ApiClient, app_name: str) -> int:
    """Return the id of the executor group with an AppName; raise UnknownName."""
    for group_id, name in app_names(client).items():
        if name == app_name:
            return group_id
    raise UnknownName(f"there is no executor group {app_name} that the token may see")


def end_run(client: ApiClient, run_id: str) -> Item:
    """Kill a run, or withdraw one that waits, and return it."""
    for _attempt in range(END_ATTEMPTS):
        run = client.run(run_id)
        if run["state"] != "waiting":
            break
        try:
            client.withdraw(run_id)
            return {**run, "state": "killed", "reason": "withdrawn before it started"}
        except Conflict:  # it is being sent, after which it can be killed
            threading.Event().wait(END_PAUSE_S)
    return client.kill(run_id)


def log_text(client: ApiClient, run_id: str) -> str:
    """Return the log of a run."""
    return "\n".join(line for piece in client.log(run_id) for line in piece["lines"])


def jobs_named(client: ApiClient, name: str, *, app_name: str = "") -> list[Item]:
    """Return the jobs with a handler or description, by id; ``app_name``: of this executor group.

    An empty name, for example of an unset variable, matches nothing, although jobs with code have no handler.
    """
    if not name.strip():
        return []
    of_group = {"app_name": app_name} if app_name else {}
    job_by_id = {
        job["id"]: job
        for parameter, member in (("handler", "handler"), ("q", "description"))
        for job in client.jobs({parameter: name, **of_group})
        if job[member] == name
    }
    return [job_by_id[job_id] for job_id in sorted(job_by_id)]


def app_names(client: ApiClient) -> dict[int, str]:
    """Return id -> AppName of the executor groups that the token may see."""
    return {group["id"]: group["app_name"] for group in client.groups()}
