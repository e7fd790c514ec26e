"""Latency of triggers over the API: ``--rate`` POST requests a second, each with a new Idempotency-Key.

Prints one JSON line with percentiles in ms, counted from when a request was due, beside workers that run what
is triggered. Example: ``.venv/bin/python bench/api.py --db sqlite --seconds 20 --rate 100``.
"""

import argparse
import http.client
import threading
import time
import uuid
from typing import Any

from harness import KINDS, Cluster, cluster, make_jobs, percentile, wait_until
from sqlalchemy import Engine, func, select
from yardstick import report

from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Right, system_actor
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.services.accounts.api_tokens import TokenDraft, create_token

#: connections that send, and seconds before the first request that counts
SENDERS, WARM_UP_S = 16, 2.0


class Load:
    """Requests at a constant rate, whatever the answers take, spread over connections that stay open."""

    def __init__(self, made: Cluster, path: str, token: str, arguments: argparse.Namespace) -> None:
        self.port, self.path = made.port, path
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.rate = arguments.rate
        self.count = int((arguments.seconds + WARM_UP_S) * arguments.rate)
        #: time of each request after the warm-up, from when it was due, in ms
        self.took_ms: list[float] = []
        self.statuses: dict[int, int] = {}
        self._lock = threading.Lock()

    def send_one(self) -> None:
        """Send a request that does not count: it makes the application of the API."""
        self._request(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30))

    def run(self) -> None:
        """Send all requests."""
        self.started = time.monotonic() + 0.2
        threads = [threading.Thread(target=self._send, args=[number]) for number in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for number in range(first, self.count, SENDERS):
            due = self.started + number / self.rate
            time.sleep(max(due - time.monotonic(), 0))
            status = self._request(connection)
            took_ms = (time.monotonic() - due) * 1000
            with self._lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1
                if number >= WARM_UP_S * self.rate:
                    self.took_ms.append(took_ms)
        connection.close()

    def _request(self, connection: http.client.HTTPConnection) -> int:
        headers = {**self.headers, "Idempotency-Key": uuid.uuid4().hex}
        connection.request("POST", self.path, b'{"param": "x"}', headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def make_token() -> str:
    draft = TokenDraft("bench", Grant(frozenset(Right), False, None), service=True)
    with session_scope() as session:
        return create_token(session, draft, actor=system_actor("bench"), now_ms=now_ms()).token


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    made.start_console()
    made.start_stub()
    make_jobs(engine, 1, cron="0 0 0 1 1 ? 2099", trigger_status=0)
    made.start_workers()

    def registered() -> bool:
        with engine.connect() as connection:
            return bool(connection.scalar(select(Group.address_list)))

    wait_until(registered, "the executor to register", made)
    with engine.connect() as connection:
        job_id = connection.scalar(select(Job.id))
    load = Load(made, f"/xxl-job-admin/api/v1/jobs/{job_id}/runs", make_token(), arguments)
    load.send_one()
    wait_until(lambda: count(engine, Fire) == 0, "the first result", made, timeout_s=60)  # the workers run
    cpu_before = made.cpu_seconds()
    load.run()
    cpu = {name: round(used - cpu_before.get(name, 0), 2) for name, used in made.cpu_seconds().items()}
    wait_until(lambda: count(engine, Fire) == 0, "all results", made, timeout_s=60)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        "bench": "api",
        "db": arguments.db,
        "rate": arguments.rate,
        "requests": load.count,
        "statuses": load.statuses,
        "runs": count(engine, JobLog),
        "ms": {name: percentile(load.took_ms, share) for name, share in shares.items()},
        "cpu_s": cpu,
    }


def count(engine: Engine, table: type[Fire] | type[JobLog]) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(table)) or 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rate", type=int, default=100)
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
