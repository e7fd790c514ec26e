"""Client of a console for asyncio: the methods of ``Client`` as coroutines.

async with AsyncClient("https://jobs.example.com/xxl-job-admin", token) as client:
    run = await client.trigger("closeOrders", {"day": date.today()})
    await run.wait(timeout=60)

Requests are sent by at most ``threads`` threads. Waiting and following do not hold a thread between their
requests, so any number of coroutines may wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from executor_client.api.calls import JobRef
from executor_client.api.errors import RunNotEnded, RunUnsuccessful
from executor_client.api.session import PATIENCE_S
from executor_client.api.transport import Transport
from executor_client.api.variables import Variable
from executor_client.api.views import Job, ListedState, PreviewedRun, RunView
from executor_client.client.client import Client, JobFilters, LogPiece, Run
from executor_client.handlers.declarations import Terms
from executor_client.wire.clock import monotonic_s

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

T = TypeVar("T")
#: threads that send requests
THREADS = 8
#: longest wait of one request, in seconds; a cancelled coroutine keeps its thread busy for up to that time
REQUEST_S = 5
#: seconds between two requests of a coroutine that waits or follows without a thread
FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 2.0
#: number of lines in a piece of a log from which the next piece is read at once
MANY_LINES = 1_000
#: number of list items that one thread reads at once
BATCH = 100


class _Threads:
    """Thread pool for requests; half of its threads may wait for the console."""

    def __init__(self, count: int) -> None:
        if count < 2:
            raise ValueError(f"threads must be 2 or more, not {count}")
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="xxl-client")
        self.wait_slots = asyncio.Semaphore(count // 2)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in a thread and return its value."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Let the threads end with their requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class AsyncRun(RunView):
    """A run, as it was when it was last read; ``refresh`` and ``wait`` read it again.

    Runs of a list have no message until they are refreshed.
    """

    def __init__(self, threads: _Threads, run: Run) -> None:
        self._threads, self._run = threads, run
        super().__init__(run.data)

    async def refresh(self, wait: float = 0) -> "AsyncRun":
        """Read the run again and return it; at its end, if that is within ``wait`` seconds (at most 60)."""
        return await self._update(lambda: self._run.refresh(wait))

    async def wait(self, timeout: float | None = None, *, check: bool = False) -> "AsyncRun":
        """Wait for the end and return the run; ``timeout`` in seconds. Raises as ``Run.wait`` does."""
        until_s = None if timeout is None else monotonic_s() + timeout
        pause_s = FIRST_PAUSE_S
        await self.refresh()
        while not self.has_ended:
            left_s = REQUEST_S if until_s is None else until_s - monotonic_s()
            if left_s <= 0:
                raise RunNotEnded(self.id, self.state, timeout or 0)
            pause_s = await self._wait_a_while(min(left_s, REQUEST_S), pause_s)
        if check and not self.succeeded:
            raise RunUnsuccessful(self.id, self.state, self.reason)
        return self

    async def kill(self) -> "AsyncRun":
        """End the run: one that is running is killed, one that waits is withdrawn."""
        return await self._update(self._run.kill)

    async def retry(self, *, force: bool = False) -> "AsyncRun":
        """Run the job again with the parameter of this run, and return the new run."""
        return AsyncRun(self._threads, await self._threads.call(lambda: self._run.retry(force=force)))

    async def start(self) -> "AsyncRun":
        """Start the run now, which waits for a limit."""
        return await self._update(self._run.start)

    async def log(self) -> str:
        """Return the log that there is, its lines separated by newlines."""
        return await self._threads.call(self._run.log)

    async def lines(self, from_line: int = 1) -> LogPiece:
        """Return lines of the log that there are, from one on, and where to continue."""
        return await self._threads.call(lambda: self._run.lines(from_line))

    async def follow(self, timeout: float | None = None) -> AsyncIterator[str]:
        """Yield the lines of the log as they are written, until the run has ended or ``timeout`` s passed."""
        until_s = None if timeout is None else monotonic_s() + timeout
        from_line, pause_s = 1, FIRST_PAUSE_S
        while True:
            piece = await self.lines(from_line)
            for line in piece.lines:
                yield line
            if piece.end or (until_s is not None and monotonic_s() >= until_s):
                break
            from_line = piece.next_line
            if len(piece.lines) >= MANY_LINES:
                continue
            pause_s = FIRST_PAUSE_S if piece.lines else min(pause_s * 1.5, LAST_PAUSE_S)
            await asyncio.sleep(pause_s)
        await self.refresh()

    async def _wait_a_while(self, wait_s: float, pause_s: float) -> float:
        """Read the run, waiting for its end if a thread is free; return the pause before the next read."""
        if self._threads.wait_slots.locked():
            await asyncio.sleep(min(pause_s, wait_s))
            await self.refresh()
            return min(pause_s * 2, LAST_PAUSE_S)
        async with self._threads.wait_slots:
            await self.refresh(wait_s)
        return FIRST_PAUSE_S

    async def _update(self, read_run: Callable[[], Run]) -> "AsyncRun":
        self.data = (await self._threads.call(read_run)).data
        return self


class AsyncClient:
    """Client of a console for asyncio; see ``Client`` for the arguments."""

    def __init__(  # nosec B107  # empty: from the environment
        self,
        url: str = "",
        token: str = "",
        *,
        profile: str = "",
        patience_s: float = PATIENCE_S,
        threads: int = THREADS,
        transport: Callable[[], Transport] | None = None,
    ) -> None:
        """``threads``: most requests at the same time."""
        self._client = Client(url, token, profile=profile, patience_s=patience_s, transport=transport)
        self._threads = _Threads(threads)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; those in use are closed at the end of their requests."""
        self._client.close()
        self._threads.close()

    async def job(self, job: JobRef, *, group: str = "") -> Job:
        """Return a job by its id, or by a handler or description that only one job has."""
        return await self._threads.call(lambda: self._client.job(job, group=group))

    async def jobs(self, *, group: str = "", **filters: "Unpack[JobFilters]") -> AsyncIterator[Job]:
        """Yield the jobs that the token may see; ``group``: AppName of their executor group."""
        async for job in self._items(self._client.jobs(group=group, **filters)):
            yield job

    async def create_job(
        self, handler: str, *, group: str, idempotency_key: str = "", **terms: "Unpack[Terms]"
    ) -> Job:
        """Add a job of the executor group with this AppName; see ``Client.create_job``."""
        return await self._threads.call(
            lambda: self._client.create_job(handler, group=group, idempotency_key=idempotency_key, **terms)
        )

    async def start_job(self, job: JobRef, *, group: str = "") -> Job:
        """Switch the schedule of a job on and return the job."""
        return await self._threads.call(lambda: self._client.start_job(job, group=group))

    async def stop_job(self, job: JobRef, *, group: str = "") -> Job:
        """Switch the schedule of a job off, which withdraws its planned runs, and return the job."""
        return await self._threads.call(lambda: self._client.stop_job(job, group=group))

    async def trigger(
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
    ) -> AsyncRun:
        """Run a job once, now or later, and return the run at once; see ``Client.trigger``."""
        run = await self._threads.call(
            lambda: self._client.trigger(
                job,
                param,
                group=group,
                at=at,
                in_=in_,
                addresses=addresses,
                logical_time=logical_time,
                force=force,
                chain=chain,
                idempotency_key=idempotency_key,
            )
        )
        return AsyncRun(self._threads, run)

    async def preview_parameter(
        self, job: JobRef, *, group: str = "", count: int = 3, logical_time: datetime | None = None
    ) -> list[PreviewedRun]:
        """Return what the next runs of a job would get; see ``Client.preview_parameter``."""
        return await self._threads.call(
            lambda: self._client.preview_parameter(job, group=group, count=count, logical_time=logical_time)
        )

    async def run(self, run_id: str | int) -> AsyncRun:
        """Return a run."""
        return AsyncRun(self._threads, await self._threads.call(lambda: self._client.run(run_id)))

    async def runs(
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
    ) -> AsyncIterator[AsyncRun]:
        """Yield runs, the newest first: of a job, of an executor group, or of all that the token may see."""
        runs = self._client.runs(
            job,
            group=group,
            state=state,
            since=since,
            until=until,
            logical_from=logical_from,
            logical_to=logical_to,
            limit=limit,
        )
        async for run in self._items(runs):
            yield AsyncRun(self._threads, run)

    async def variables(self, *, group: str = "") -> AsyncIterator[Variable]:
        """Yield variables and secrets that the token may see; ``group``: only those of an executor group."""
        async for variable in self._items(self._client.variables(group=group)):
            yield variable

    async def set_variable(
        self, name: str, value: str | None = None, *, secret: str | None = None, group: str = ""
    ) -> Variable:
        """Set a variable or secret, and return it without a secret's value; see ``Client.set_variable``."""
        return await self._threads.call(
            lambda: self._client.set_variable(name, value, secret=secret, group=group)
        )

    async def delete_variable(self, name: str, *, group: str = "") -> None:
        """Delete a variable or secret of an executor group, or of the installation. Raises UnknownName."""
        await self._threads.call(lambda: self._client.delete_variable(name, group=group))

    async def _items(self, items: Iterator[T]) -> AsyncIterator[T]:
        """Yield the items of an iterator whose requests are sent in a thread."""
        while True:
            batch = await self._threads.call(lambda: list(islice(items, BATCH)))
            for item in batch:
                yield item
            if len(batch) < BATCH:
                return
