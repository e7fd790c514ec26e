"""Fixture ``console``: a real console, with the calls that an end-to-end test needs."""

import threading
from pathlib import Path
from typing import Any

from executor_client.api.client import ApiClient
from executor_client.client.client import Client, Run
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import ExecutorError

#: seconds for a run of a test, and for the registration of an executor
RUN_S = 60.0


class Console:
    """A console and workers on SQLite, with an API token that may do everything."""

    def __init__(self, url: str, token: str, access_token: str) -> None:
        #: address, for a browser or ``--admin``
        self.url = url
        #: API token
        self.token = token
        #: token of executors
        self.access_token = access_token
        self.client = Client(url, token)
        self._api = ApiClient(url, token)
        self._groups: dict[str, int] = {}

    def add_group(self, app_name: str, **fields: Any) -> int:
        """Add an executor group and return its id; the same one for a name that was added before."""
        if app_name not in self._groups:
            body = {"app_name": app_name, "title": app_name, **fields}
            self._groups[app_name] = int(self._api.post("/groups", body)["id"])
        return self._groups[app_name]

    def add_job(self, app_name: str, handler: str, **fields: Any) -> int:
        """Add a job, stopped, and its group; return its id. ``fields``: those of the API."""
        group_id = self.add_group(app_name)
        body = {"group_id": group_id, "description": handler, "owner": "pytest", "handler": handler}
        return int(self._api.post("/jobs", {**body, **fields})["id"])

    def trigger(self, job_id: int, param: Any = None) -> Run:
        """Trigger a job and return its run."""
        return self.client.trigger(job_id, param)

    def run(self, job_id: int, param: Any = None, *, timeout: float = RUN_S) -> Run:
        """Trigger a job, wait for the end of the run and return it; raise RunNotEnded after ``timeout`` s."""
        return self.trigger(job_id, param).wait(timeout)

    def wait_for_executor(self, app_name: str, address: str, *, timeout: float = RUN_S) -> None:
        """Wait until an executor has registered; raise ExecutorError after ``timeout`` s."""
        until_s = monotonic_s() + timeout
        group_id = self.add_group(app_name)
        while address.rstrip("/") not in self._addresses(group_id):
            if monotonic_s() > until_s:
                raise ExecutorError(f"no executor {address} of {app_name} registered within {timeout:.0f} s")
            threading.Event().wait(0.03)

    def _addresses(self, group_id: int) -> set[str]:
        instances = self._api.items(f"/groups/{group_id}/instances")
        return {str(instance["address"]).rstrip("/") for instance in instances}

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        self._api.close()


def console_at(url: str, home: Path) -> Console:
    """Return the console that uses a home folder of ``pytest_server``."""
    token, access_token = (
        (home / name).read_text(encoding="utf-8").strip() for name in ("api_token", "access_token")
    )
    return Console(url, token, access_token)
