"""Jobs and executor groups by their names."""

from executor_client.api.client import ApiClient
from executor_client.api.session import Item


def jobs_named(client: ApiClient, name: str, *, app_name: str = "") -> list[Item]:
    """Return the jobs with a handler or description, by id; ``app_name``: of this executor group.

    An empty name, such as of a variable that is not set, names none, though jobs with code have no handler.
    """
    if not name.strip():
        return []
    of_group = {"app_name": app_name} if app_name else {}
    found = {
        job["id"]: job
        for parameter, member in (("handler", "handler"), ("q", "description"))
        for job in client.jobs({parameter: name, **of_group})
        if job[member] == name
    }
    return [found[job_id] for job_id in sorted(found)]


def app_names(client: ApiClient) -> dict[int, str]:
    """Return id -> AppName of the executor groups that the token may see."""
    return {group["id"]: group["app_name"] for group in client.groups()}
