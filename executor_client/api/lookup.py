"""Lookup of jobs and executor groups by name."""

from executor_client.api.client import ApiClient
from executor_client.api.session import Item


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
