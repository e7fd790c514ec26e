"""Client of a console: make and trigger jobs, wait for their runs, read their logs.

with Client("https://jobs.example.com/xxl-job-admin", token) as client:
    run = client.trigger("closeOrders", {"day": date.today()})
    run.wait(timeout=60)
    print(run.state, run.message, run.log())
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from executor_client.api.calls import (
    JobRef,
    app_names,
    create_job,
    end_run,
    explain_missing,
    find_job,
    group_id_of,
    log_text,
    preview_parameter,
    runs_query,
    switch_job,
    trigger,
    trigger_body,
)
from executor_client.api.client import WAIT_S, ApiClient
from executor_client.api.credentials import find_credentials
from executor_client.api.errors import ApiError, RunNotEnded, RunUnsuccessful
from executor_client.api.session import PATIENCE_S, Item
from executor_client.api.transport import Transport
from executor_client.api.variables import (
    INSTALLATION,
    Variable,
    delete_variable,
    list_variables,
    set_variable,
)
from executor_client.api.views import Job, ListedState, PreviewedRun, RunView
from executor_client.client.pool import ClientPool
from executor_client.handlers.declarations import Terms

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

__all__ = ["ApiError", "Client", "Job", "PreviewedRun", "Run", "Variable"]


class JobFilters(TypedDict, total=False):
    """Filters of a list of jobs; texts are searched for in any case."""

    handler: str
    owner: str
    #: in the description
    q: str
    tag: str
    enabled: bool


class LogPiece(NamedTuple):
    """Lines of a log, at most 10,000."""

    lines: list[str]
    #: number of the line that follows
    next_line: int
    #: whether no line will follow
    end: bool


class Run(RunView):
    """A run, as it was when it was last read; ``refresh`` and ``wait`` read it again."""

    def __init__(self, pool: ClientPool, data: Item) -> None:
        super().__init__(data)
        self._pool = pool

    @property
    def message(self) -> str:
        """Text that the executor returned with the result; that of a listed run is read now."""
        if "message" not in self.data:
            self.refresh()
        return super().message

    def refresh(self, wait: float = 0) -> "Run":
        """Read the run again and return it; at its end, if that is within ``wait`` seconds (at most 60)."""
        with self._pool.client() as client:
            self.data = client.run(self.id, wait_s=math.ceil(wait))
        return self

    def wait(self, timeout: float | None = None, *, check: bool = False) -> "Run":
        """Wait for the end and return the run; ``timeout`` in seconds.

        Raises RunNotEnded, a TimeoutError, if it has not ended by then: it continues. With ``check``, raises
        RunUnsuccessful if it ended without success.
        """
        with self._pool.client() as client:
            for update in client.watch(self.id, timeout_s=timeout, wait_s=WAIT_S):
                self.data = update
        if not self.has_ended:
            raise RunNotEnded(self.id, self.state, timeout or 0)
        if check and not self.succeeded:
            raise RunUnsuccessful(self.id, self.state, self.reason)
        return self

    def kill(self) -> "Run":
        """End the run: one that is running is killed, one that waits is withdrawn."""
        with self._pool.client() as client:
            self.data = end_run(client, self.id)
        return self

    def retry(self, *, force: bool = False) -> "Run":
        """Run the job again with the parameter of this run, and return the new run.

        ``force``: it waits for no limit.
        """
        with self._pool.client() as client:
            return Run(self._pool, client.retry(self.id, force=force))

    def start(self) -> "Run":
        """Start the run now, which waits for a limit."""
        with self._pool.client() as client:
            self.data = client.start(self.id)
        return self

    def log(self) -> str:
        """Return the log that there is, its lines separated by newlines."""
        with self._pool.client() as client:
            return log_text(client, self.id)

    def lines(self, from_line: int = 1) -> LogPiece:
        """Return lines of the log that there are, from one on, and where to continue."""
        with self._pool.client() as client:
            piece = next(client.log(self.id, from_line=from_line))
        return LogPiece(piece["lines"], piece["next_line"], piece["end"])

    def follow(self, timeout: float | None = None) -> Iterator[str]:
        """Yield the lines of the log as they are written, until the run has ended or ``timeout`` s passed."""
        event: Item = {}
        with self._pool.client() as client:
            for event in client.follow_log(self.id, timeout_s=timeout):
                if "text" in event:
                    yield event["text"]
        if event.get("shards"):
            self.lines()  # raises Conflict, which names the shards
        self.refresh()


class Client:
    """Client of a console, with an API token. It may be used by several threads.

    Without address or token, those of ``duetime`` are used: ``XXL_JOB_URL`` with ``XXL_JOB_TOKEN``, or the
    last login. Requests are repeated for up to ``patience_s`` while the console is busy (429 and 503 with
    Retry-After) or its connection breaks; a request that was repeated has one effect.
    """

    def __init__(  # nosec B107  # empty: from the environment
        self,
        url: str = "",
        token: str = "",
        *,
        profile: str = "",
        patience_s: float = PATIENCE_S,
        transport: Callable[[], Transport] | None = None,
    ) -> None:
        """``profile``: a login of ``duetime``; ``transport`` opens another way to the console, for tests."""
        if transport is None:
            login = find_credentials(url, token, profile, os.environ)
            self._pool = ClientPool(lambda: ApiClient(login.url, login.token, patience_s=patience_s))
        else:
            self._pool = ClientPool(lambda: ApiClient(transport=transport(), patience_s=patience_s))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def job(self, job: JobRef, *, group: str = "") -> Job:
        """Return a job by its id, or by a handler or description that only one job has.

        ``group``: AppName of its executor group. Raises UnknownName; NotUnique with the matches.
        """
        with self._pool.client() as client:
            return find_job(client, job, group)

    def jobs(self, *, group: str = "", **filters: "Unpack[JobFilters]") -> Iterator[Job]:
        """Yield the jobs that the token may see; ``group``: AppName of their executor group."""
        with self._pool.client() as client:
            names = app_names(client)
            query: dict[str, Any] = {**filters, "app_name": group}
            for item in client.jobs(query):
                yield Job.of(item, names.get(item["group_id"], ""))

    def create_job(
        self, handler: str, *, group: str, idempotency_key: str = "", **terms: "Unpack[Terms]"
    ) -> Job:
        """Add a job of the executor group with this AppName; ``terms`` are those of ``@job``.

        Its schedule starts with ``enabled=True`` or ``start_job``. Without a description it has the name of
        the handler, without an owner that of the token. ``children`` are handlers or descriptions of jobs in
        the group. Raises ValueError for terms that cannot be read, InvalidRequest for those that the console
        refuses.
        """
        with self._pool.client() as client:
            return create_job(client, handler, group, terms, idempotency_key)

    def start_job(self, job: JobRef, *, group: str = "") -> Job:
        """Switch the schedule of a job on and return the job."""
        with self._pool.client() as client:
            return switch_job(client, job, group, on=True)

    def stop_job(self, job: JobRef, *, group: str = "") -> Job:
        """Switch the schedule of a job off, which withdraws its planned runs, and return the job."""
        with self._pool.client() as client:
            return switch_job(client, job, group, on=False)

    def trigger(
        self,
        job: JobRef,
        param: Any = None,
        *,
        group: str = "",
        at: datetime | None = None,
        in_: float | timedelta | None = None,
        addresses: Sequence[str] = (),
        logical_time: datetime | None = None,
        force: bool = False,
        chain: bool = False,
        idempotency_key: str = "",
    ) -> Run:
        """Run a job once, now or later, and return the run at once.

        ``param``: a text, or a value that is sent as JSON; None: the job's own. ``at``: when (local time if
        without tzinfo); ``in_``: after so many seconds. ``addresses``: instances to choose from.
        ``logical_time``: what the run stands for, by default the time at which it is due. ``force``: it waits
        for no limit. ``chain``: with all that follows the job. ``idempotency_key``: calls with the same key
        make one run; by default each call makes one, even if its answer is lost and it is repeated.
        """
        body = trigger_body(param, at, in_, addresses, logical_time, force, chain=chain)
        with self._pool.client() as client:
            job_id = job if isinstance(job, int) else find_job(client, job, group).id
            with explain_missing("job", job_id):
                return Run(self._pool, trigger(client, job_id, body, idempotency_key))

    def preview_parameter(
        self, job: JobRef, *, group: str = "", count: int = 3, logical_time: datetime | None = None
    ) -> list[PreviewedRun]:
        """Return what the next ``count`` runs of a job would get as their parameter; secrets are only named.

        ``logical_time``: only the run that stands for this time.
        """
        with self._pool.client() as client:
            job_id = job if isinstance(job, int) else find_job(client, job, group).id
            with explain_missing("job", job_id):
                return preview_parameter(client, job_id, count=count, logical_time=logical_time)

    def run(self, run_id: str | int) -> Run:
        """Return a run."""
        with self._pool.client() as client, explain_missing("run", run_id):
            return Run(self._pool, client.run(str(run_id)))

    def runs(
        self,
        job: JobRef | None = None,
        *,
        group: str = "",
        state: ListedState | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        logical_from: datetime | None = None,
        logical_to: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[Run]:
        """Yield runs, the newest first: of a job, of an executor group, or of all that the token may see."""
        with self._pool.client() as client:
            query = runs_query(client, job, group, state, (since, until), (logical_from, logical_to))
            for item in client.items("/runs", query, limit=limit):
                yield Run(self._pool, item)

    def variables(self, *, group: str = "") -> Iterator[Variable]:
        """Yield variables and secrets that the token may see; ``group``: only those of an executor group."""
        with self._pool.client() as client:
            names = app_names(client)
            group_id = group_id_of(client, group) if group else None
            for item in list_variables(client, group_id):
                yield Variable.of(item, names)

    def set_variable(
        self, name: str, value: str | None = None, *, secret: str | None = None, group: str = ""
    ) -> Variable:
        """Set a variable to ``value``, or a secret to ``secret``, and return it without a secret's value.

        ``group``: AppName of its executor group; without one it is of the installation, which only a token of
        an administrator sets. A secret needs the right ``glue``.
        """
        if (value is None) == (secret is None):
            raise ValueError("give either value or secret")
        with self._pool.client() as client:
            group_id = group_id_of(client, group) if group else INSTALLATION
            item = set_variable(client, name, group_id, value=value, secret=secret)
            return Variable.of(item, {group_id: group})

    def delete_variable(self, name: str, *, group: str = "") -> None:
        """Delete a variable or secret of an executor group, or of the installation. Raises UnknownName."""
        with self._pool.client() as client:
            delete_variable(client, name, group_id_of(client, group) if group else INSTALLATION)
