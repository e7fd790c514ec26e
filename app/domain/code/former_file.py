"""Former job file: its jobs as a document of jobs as code.

``{"format": 1, "jobs": [{"id": 7, "appname": "sample", "jobDesc": "nightly report", "childJobId": "8"}]}``.
The id of a job only serves ``childJobId`` of the others. The values are checked as those of any document.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from app.domain.code.document import CODE, JOBS, at_place, place
from app.domain.code.keys import UsedKeys
from app.domain.enums import GlueType
from app.domain.jobs.children import parse_child_ids
from app.domain.jobs.members import CHILDREN
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: member of the file -> member of a document
_NAMES = {
    "jobDesc": "description",
    "author": "owner",
    "alarmEmail": "alarm_email",
    "scheduleType": "schedule_type",
    "scheduleConf": "schedule",
    "timeZone": "time_zone",
    "notBefore": "not_before",
    "notAfter": "not_after",
    "executorHandler": "handler",
    "executorParam": "param",
    "executorRouteStrategy": "route_strategy",
    "misfireStrategy": "misfire_strategy",
    "executorBlockStrategy": "block_strategy",
    "executorTimeout": "timeout_s",
    "executorFailRetryCount": "retry_count",
    "retryIntervalS": "retry_interval_s",
    "retryBackoffPercent": "retry_backoff_percent",
    "delivery": "delivery",
    "tags": "tags",
}
#: members with a meaning of their own
_OTHERS = ("id", "appname", "childJobId", "glueType", "glueSource", "glueRemark")
_OPEN = ("not_before", "not_after")


def is_former(content: Any) -> bool:
    """Whether a file has jobs in a list; a document has them by their keys."""
    return isinstance(content, dict) and isinstance(content.get("jobs"), list)


def read_former(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a file; raises InvalidInput with the errors of all jobs."""
    errors, keys, jobs = InputErrors(), dict[str, str](), dict[str, dict[str, Any]]()
    keys_by_app, parents = defaultdict[str, UsedKeys](UsedKeys), dict[str, str]()
    for number, job in enumerate(content["jobs"], 1):
        with errors:
            key = _key(number, job, keys_by_app)
            jobs[key] = _members(key, job)
            if "childJobId" in job:
                parents[key] = str(job["childJobId"])
            if keys.setdefault(str(job.get("id") or key), key) != key:
                raise InvalidInput(place(JOBS, key, "id"), N_("Another job of the file has the same id"))
    errors.raise_all()
    for key, text in parents.items():
        with errors:
            jobs[key][CHILDREN] = _children(key, text, keys)
    errors.raise_all()
    return {"format": content.get("format"), JOBS: jobs}


def _key(number: int, job: Any, keys_by_app: Mapping[str, UsedKeys]) -> str:
    """Return the key of a job: its AppName, and a key that is made of its names."""
    if not isinstance(job, dict):
        where = place(JOBS, str(number))
        raise InvalidInput(where, N_("A job must be an object with members such as jobDesc"))
    app_name, *names = (str(job.get(name, "")).strip() for name in ("appname", "jobDesc", "executorHandler"))
    return f"{app_name}/{keys_by_app[app_name].make(names)}"


def _members(key: str, job: Mapping[str, Any]) -> dict[str, Any]:
    for name in job:
        if name not in _NAMES and name not in _OTHERS:
            fields = ", ".join((*_NAMES, *_OTHERS))
            problem = N_("Jobs have no such field; known fields: %(fields)s", fields=fields)
            raise InvalidInput(place(JOBS, key, name[:64]), problem)
    members = {_NAMES[name]: value for name, value in job.items() if name in _NAMES}
    members |= {name: None for name in _OPEN if members.get(name) == ""}
    if job.get("glueType", GlueType.BEAN) != GlueType.BEAN:
        names = {"glueType": "language", "glueSource": "source", "glueRemark": "remark"}
        members[CODE] = {names[name]: value for name, value in job.items() if name in names}
    return members


def _children(key: str, text: str, keys: Mapping[str, str]) -> list[str]:
    try:
        ids = [str(child) for child in parse_child_ids(text)]
    except InvalidInput as exc:
        raise at_place(exc, JOBS, key) from exc
    missing = next((child for child in ids if child not in keys), None)
    if missing is not None:
        problem = N_(
            "Child job %(id)s is not in the file; export it too, or remove it from childJobId", id=missing
        )
        raise InvalidInput(place(JOBS, key, "childJobId"), problem)
    return [keys[child] for child in ids]
