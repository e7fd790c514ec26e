"""ApiClient: the calls of API v1 by name. Objects are dictionaries with the API's names."""

import json
from collections.abc import Iterator
from urllib.parse import quote

from executor_client.api.session import ApiSession, Item
from executor_client.api.transport import ANSWER_S, Query, Request
from executor_client.clock import monotonic_s

#: states of a run that has not ended
OPEN_STATES = ("waiting", "running")
#: longest wait for the end of a run in one request, in seconds
WAIT_S = 30


def _run_path(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


class ApiClient(ApiSession):
    """Client of the API v1 of a console: ``ApiClient("https://jobs.example.com/xxl-job-admin", token)``."""

    def me(self) -> Item:
        """Return name, kind, rights and expiry of the token."""
        return self.get("/me")

    def jobs(self, query: Query | None = None) -> Iterator[Item]:
        """Yield the jobs that the token may see."""
        return self.items("/jobs", query)

    def job(self, job_id: int) -> Item:
        """Return a job."""
        return self.get(f"/jobs/{job_id}")

    def trigger(self, job_id: int, body: Item | None = None) -> Item:
        """Trigger a job and return the run; ``body``: param, addresses, at or in_s."""
        return self.post(f"/jobs/{job_id}/runs", body or {})

    def group(self, group_id: int) -> Item:
        """Return an executor group."""
        return self.get(f"/groups/{group_id}")

    def groups(self, query: Query | None = None) -> Iterator[Item]:
        """Yield the executor groups that the token may see."""
        return self.items("/groups", query)

    def users(self, query: Query | None = None) -> Iterator[Item]:
        """Yield the users."""
        return self.items("/users", query)

    def log_lines(self, run_id: str, *, from_line: int = 1) -> Iterator[str]:
        """Yield the lines of the log that there are."""
        while True:
            piece = self.get(f"{_run_path(run_id)}/log", {"from_line": from_line})
            yield from piece["lines"]
            if not piece["lines"] or piece["is_end"]:
                return
            from_line = piece["to_line"] + 1

    def follow_log(self, run_id: str, *, from_line: int = 1, timeout_s: float | None = None) -> Iterator[str]:
        """Yield the lines of the log as they are written, until the run has ended."""
        until_s = None if timeout_s is None else monotonic_s() + timeout_s
        path, headers = f"{_run_path(run_id)}/log", {"Accept": "application/x-ndjson"}
        request = Request("GET", path, {"from_line": from_line, "follow": True}, headers=headers)
        for text in self.open(request).lines():
            event = json.loads(text)
            if "text" in event:
                yield event["text"]
            if until_s is not None and monotonic_s() > until_s:
                return

    def run(self, run_id: str, *, wait_s: int = 0) -> Item:
        """Return a run; wait up to 60 seconds for its end."""
        query = {"wait": wait_s} if wait_s else None
        return self.get(_run_path(run_id), query, timeout_s=ANSWER_S + wait_s)

    def watch(self, run_id: str, *, timeout_s: float | None = None, wait_s: int = WAIT_S) -> Iterator[Item]:
        """Yield a run now and after each wait, until it has ended or ``timeout_s`` have passed."""
        until_s = None if timeout_s is None else monotonic_s() + timeout_s
        run = self.run(run_id)
        yield run
        while run["state"] in OPEN_STATES:
            left_s = wait_s if until_s is None else until_s - monotonic_s()
            if left_s <= 0:
                return
            run = self.run(run_id, wait_s=max(1, min(wait_s, round(left_s))))
            yield run
