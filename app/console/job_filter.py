"""The filters of the list of jobs, as they stand in its address."""

from flask import request

from app.console.listing import whole_number
from app.services.jobs import JobFilter

#: parameters of the address that filter
NAMES = ("jobGroup", "triggerStatus", "jobDesc", "executorHandler", "author")


def asked_query() -> dict[str, str]:
    """Return the parameters of the filters that are in use, for another address of the same jobs."""
    return {name: request.args[name] for name in NAMES if request.args.get(name, "").strip()}


def asked_filter() -> JobFilter:
    """Return what the address asks for."""
    return JobFilter(
        group_id=max(0, whole_number("jobGroup", 0)),
        status=whole_number("triggerStatus", -1),
        description=request.args.get("jobDesc", "").strip(),
        handler=request.args.get("executorHandler", "").strip(),
        author=request.args.get("author", "").strip(),
    )
