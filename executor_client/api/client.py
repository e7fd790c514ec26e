"""API v1 client: one method per call. Objects are dictionaries with the API's names.

A log is read in pieces, or as a stream that survives broken connections.
"""

import json
from collections.abc import Iterator
from urllib.parse import quote

from executor_client.api.errors import ApiUnreachable, NotUnicode
from executor_client.api.session import ApiSession, Item
from executor_client.api.transport import ANSWER_S, Query, Request
from executor_client.wire.clock import monotonic_s

#: states of a run that has not ended
OPEN_STATES = ("waiting", "running")
#: states of a backfill that goes on by itself
GOING_ON = ("running", "stopping", "cancelling")
#: seconds between two looks at a backfill
LOOK_S = 2.0
#: longest wait for the end of a run in one request, in seconds
WAIT_S = 30
#: pause before the next request if the console did not wait, in seconds
PAUSE_S = 0.5
#: lines of one answer, the API's maximum: for each answer the console reads up to 512 KiB from the executor,
#: and reads again for the next answer what exceeded the limit
LINES_MAX = 10_000
#: seconds without an event after which a stream counts as broken; the console sends one every 15 s
SILENCE_S = 40.0
#: consecutive connections without an event after which to give up
FRUITLESS = 3


def read_lines(session: ApiSession, path: str, *, from_line: int) -> Iterator[Item]:
    """Yield the current log at ``path`` in pieces: ``lines``, ``end``, ``message``."""
    while True:
        piece = session.get(path, {"from_line": from_line, "limit": LINES_MAX})
        yield piece
        if piece["end"] or not piece["lines"]:
            return
        from_line = piece["next_line"]


def follow(session: ApiSession, path: str, *, from_line: int, timeout_s: float | None) -> Iterator[Item]:
    """Yield the events of a log: ``{"line": 1, "text": …}``, ``{"error": …}``, last ``{"end": true, …}``.

    Continues after a broken connection where it was; ends without a last event when ``timeout_s`` have
    passed. Raises ApiUnreachable if the console does not come back, or a proxy ends each stream at once.
    """
    until_s = None if timeout_s is None else monotonic_s() + timeout_s
    fruitless = 0
    while until_s is None or monotonic_s() < until_s:
        fruitless += 1
        try:
            for event in _stream(session, path, from_line, until_s):
                fruitless = 0
                from_line = max(from_line, event.get("next_line", event.get("line", 0) + 1))
                if event.get("end"):
                    yield event
                    return
                if "heartbeat" not in event and "end" not in event:
                    yield event
                if until_s is not None and monotonic_s() >= until_s:
                    return
        except ApiUnreachable:
            if fruitless == FRUITLESS:
                raise
        if fruitless == FRUITLESS:
            raise ApiUnreachable(session.address, "the stream of the log ends at once")


def _stream(session: ApiSession, path: str, from_line: int, until_s: float | None) -> Iterator[Item]:
    """Yield the events of one request, at most until ``until_s``."""
    left_s = SILENCE_S if until_s is None else max(0.1, until_s - monotonic_s())
    query = {"from_line": from_line, "follow": True}
    headers = {"Accept": "application/x-ndjson"}
    wait_s = max(ANSWER_S, SILENCE_S) if until_s is None else min(SILENCE_S, left_s)
    request = Request("GET", path, query, headers=headers, timeout_s=wait_s)
    try:
        for text in session.open(request).lines():
            if text.strip():
                yield json.loads(text)
    except ApiUnreachable:
        if until_s is None or monotonic_s() < until_s:
            raise


def _run_path(run_id: str) -> str:
    try:
        return f"/runs/{quote(run_id, safe='')}"
    except UnicodeEncodeError as exc:
        raise NotUnicode(exc.object) from exc


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
        """Trigger a job and return the run; ``body``: param, addresses, at or in_s, force, chain and more."""
        return self.post(f"/jobs/{job_id}/runs", body or {})

    def backfill(self, job_id: int, body: Item, *, dry_run: bool = False) -> Item:
        """Run a job for past instants; ``body``: from and to or times, which, order and more."""
        return self.post(f"/jobs/{job_id}/backfills", body, dry_run=dry_run)

    def watch_backfill(self, backfill_id: int, *, timeout_s: float | None = None) -> Iterator[Item]:
        """Yield a backfill again and again, until it does not go on or ``timeout_s`` have passed."""
        until_s = None if timeout_s is None else monotonic_s() + timeout_s
        while True:
            backfill = self.get(f"/backfills/{backfill_id}")
            yield backfill
            left_s = LOOK_S if until_s is None else until_s - monotonic_s()
            if backfill["state"] not in GOING_ON or left_s <= 0:
                return
            self._pause(min(LOOK_S, left_s))

    def group(self, group_id: int) -> Item:
        """Return an executor group."""
        return self.get(f"/groups/{group_id}")

    def groups(self, query: Query | None = None) -> Iterator[Item]:
        """Yield the executor groups that the token may see."""
        return self.items("/groups", query)

    def users(self, query: Query | None = None) -> Iterator[Item]:
        """Yield the users."""
        return self.items("/users", query)

    def create_token(self, body: Item) -> Item:
        """Create a service token; ``token`` of the answer is shown only once."""
        return self.call(Request("POST", "/tokens", body=body, is_repeatable=False))

    def log(self, run_id: str, *, from_line: int = 1) -> Iterator[Item]:
        """Yield the current log in pieces: ``lines``, ``end``, ``message``."""
        return read_lines(self, f"{_run_path(run_id)}/log", from_line=from_line)

    def follow_log(
        self, run_id: str, *, from_line: int = 1, timeout_s: float | None = None
    ) -> Iterator[Item]:
        """Yield the events of a log as it grows, see ``follow``."""
        path = f"{_run_path(run_id)}/log"
        return follow(self, path, from_line=from_line, timeout_s=timeout_s)

    def run(self, run_id: str, *, wait_s: int = 0) -> Item:
        """Return a run; wait up to 60 seconds for its end."""
        query = {"wait": wait_s} if wait_s else None
        return self.get(_run_path(run_id), query, timeout_s=ANSWER_S + wait_s)

    def kill(self, run_id: str) -> Item:
        """Kill a run that is running, and return it."""
        return self.post(f"{_run_path(run_id)}/kill")

    def retry(self, run_id: str, *, force: bool = False) -> Item:
        """Repeat a run with its parameter, and return the new one; ``force``: it waits for no limit."""
        return self.post(f"{_run_path(run_id)}/retry", {"force": True} if force else None)

    def start(self, run_id: str) -> Item:
        """Start a run that waits for a limit, and return it."""
        return self.post(f"{_run_path(run_id)}/start")

    def release(self, run_id: str) -> Item:
        """Release the slots of a run that has ended as unresolved, and return it."""
        return self.post(f"{_run_path(run_id)}/release")

    def withdraw(self, run_id: str) -> None:
        """Withdraw a run that waits for a limit, or has been triggered and has not started."""
        self.write("DELETE", _run_path(run_id))

    def watch(self, run_id: str, *, timeout_s: float | None = None, wait_s: int = WAIT_S) -> Iterator[Item]:
        """Yield a run now and after each wait, until it has ended or ``timeout_s`` have passed."""
        until_s = None if timeout_s is None else monotonic_s() + timeout_s
        run = self.run(run_id)
        yield run
        while run["state"] in OPEN_STATES:
            started_s = monotonic_s()
            left_s = wait_s if until_s is None else until_s - started_s
            if left_s <= 0:
                return
            run = self.run(run_id, wait_s=max(1, min(wait_s, round(left_s))))
            yield run
            if run["state"] in OPEN_STATES and monotonic_s() - started_s < PAUSE_S:
                self._pause(PAUSE_S)  # the console did not wait: too many requests wait already
