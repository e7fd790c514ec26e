"""Batched endpoints: requests that wait at the same time are answered by one call, in one thread.

A thread pool needs several thread switches per request. Where one transaction can serve many requests, one
thread takes all that have arrived while it answered those before. Each set of endpoints has its own thread,
so that one that waits for a lock delays no other. So has each reserved path, whose requests the application
answers even while all threads of the pool wait. Everything else of a connection (order, keep-alive, limits,
closing) is left to the ordinary channel.
"""

import logging
import queue
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from waitress.task import Task, ThreadedTaskDispatcher

from executor_client.wire.clock import monotonic_s

#: requests in one call
BATCH_MAX = 100
#: longest body, chunk sizes included; longer ones would hold up the others
BODY_MAX_BYTES = 64 * 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Complete request of a batched endpoint."""

    method: str
    path: str
    #: names as in WSGI, without ``HTTP_``: ``XXL_JOB_ACCESS_TOKEN``
    headers: Mapping[str, str]
    #: the peer's address
    peer: str
    body: bytes


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """Response; ``headers`` without those of the connection, ``status`` one that allows a body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


FAILED_ANSWER = BatchAnswer(
    500, (("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")), b"Internal Server Error\n"
)


@dataclass(frozen=True, slots=True)
class BatchedEndpoints:
    """Function that answers requests in batches, and the selection of its requests."""

    #: part of the name of its thread
    name: str
    #: whether it gets POST requests with this path; those with a query go to the application
    takes: Callable[[str], bool]
    #: returns one outcome for each request; None: the application answers instead
    answer: Callable[[list[BatchRequest]], Sequence[BatchAnswer | None]]


class BatchTask(Task):  # type: ignore[misc]
    """Sends an answer, its head and body in one piece."""

    def __init__(self, channel: Any, request: Any, answer: BatchAnswer) -> None:
        super().__init__(channel, request)
        self._answer = answer

    def execute(self) -> None:
        """Send the answer."""
        status = self._answer.status
        self.status = f"{status} {HTTPStatus(status).phrase}"
        self.response_headers.extend(self._answer.headers)
        self.content_length = len(self._answer.body)
        head = self.build_response_header()
        self.wrote_header = True
        data = head + self._answer.body
        # Bypasses the buffers while they are empty: with output in them the loop would poll without a pause.
        sent_bytes = 0 if self.channel.total_outbufs_len else self.channel.send(data, do_close=False)
        if sent_bytes < len(data):
            self.channel.write_soon(data[sent_bytes:])


class BatchThread:
    """Thread that answers the requests of one set of endpoints."""

    def __init__(self, endpoints: BatchedEndpoints, pass_on: Callable[[Any], None]) -> None:
        """Start the thread; ``pass_on`` has a channel's request answered by the application."""
        self._endpoints = endpoints
        self._pass_on = pass_on
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_answering = False
        self._thread = threading.Thread(target=self._run, name=f"http-{endpoints.name}", daemon=True)
        self._thread.start()

    def takes(self, request: Any) -> bool:
        """Return whether a request is one of these endpoints."""
        return self._endpoints.takes(request.path)

    def add(self, channel: Any) -> None:
        """Have the first waiting request of a channel answered."""
        self._waiting.put(channel)

    def request_stop(self) -> None:
        """Answer the requests that were received, then end the thread."""
        self._waiting.put(None)

    def await_end(self, until_s: float) -> None:
        """Wait for its end, at most until then, by the monotonic clock."""
        self._thread.join(max(until_s - monotonic_s(), 0))
        if self._thread.is_alive():
            logger.warning("batch thread still busy name=%s", self._thread.name)

    def is_answering(self) -> bool:
        """Return whether the calling thread answers a batch, after which it wakes the loop itself."""
        return self._is_answering and self._thread.ident == threading.get_ident()

    def _run(self) -> None:
        while channels := self._next_batch():
            outcomes = self._outcomes(channels)
            self._is_answering = True
            for channel, outcome in zip(channels, outcomes, strict=True):
                channel.outcome = outcome
                if outcome is None:
                    self._pass_on(channel)
                    continue
                try:
                    channel.service()
                except BaseException:
                    logger.exception("answer not sent channel=%r", channel)
            self._is_answering = False
            channels[-1].server.pull_trigger()

    def _next_batch(self) -> list[Any]:
        """Wait for a channel and take all that wait; empty once the queue is closed."""
        batch = []
        channel = self._waiting.get()
        while channel is not None:
            batch.append(channel)
            if len(batch) == BATCH_MAX:
                return batch
            try:
                channel = self._waiting.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._waiting.put(None)
        return batch

    def _outcomes(self, channels: list[Any]) -> Sequence[BatchAnswer | None]:
        """Return the outcome of each channel's request."""
        try:
            outcomes = self._endpoints.answer([_request_of(channel) for channel in channels])
            if len(outcomes) != len(channels):
                raise ValueError(f"{len(outcomes)} answers to {len(channels)} requests")
            return outcomes
        except Exception:
            logger.exception("batch failed requests=%s", len(channels))
            return [FAILED_ANSWER] * len(channels)


class ReservedThread(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Thread in which the application answers the requests of a path even while the pool is busy."""

    def __init__(self, paths: Collection[str]) -> None:
        """Start the thread; ``paths`` are all spellings of the path."""
        super().__init__()
        self._paths = paths
        self.set_thread_count(1)

    def start_new_thread(self, target: Callable[[int], None], thread_no: int) -> None:
        """Start the thread under its own name."""
        name = f"http-{min(self._paths, key=len).strip('/')}"
        threading.Thread(target=target, name=name, args=(thread_no,), daemon=True).start()

    def takes(self, request: Any) -> bool:
        """Return whether a request is one of these."""
        return request.path in self._paths


class BatchDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Thread pool, with an extra thread for each set of batched endpoints and each reserved path."""

    def __init__(
        self, endpoints: Sequence[BatchedEndpoints] = (), reserves: Sequence[Collection[str]] = ()
    ) -> None:
        super().__init__()
        pass_on = super().add_task
        self._batches = [BatchThread(group, pass_on) for group in endpoints]
        self._own_threads = [ReservedThread(paths) for paths in reserves]
        self._is_closed = False

    def add_task(self, task: Any) -> None:
        """Have the first waiting request of a channel answered."""
        if self._is_closed:
            super().add_task(task)
        elif (thread := self._own_thread_of(task)) is not None:
            thread.add_task(task)
        elif (batch := self._batch_of(task)) is not None:
            batch.add(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """Answer the batched requests that were received, then end the threads."""
        if not self._is_closed:
            self._is_closed = True
            until_s = monotonic_s() + timeout
            for batch in self._batches:
                batch.request_stop()
            for thread in self._own_threads:
                thread.set_thread_count(0)
            for batch in self._batches:
                batch.await_end(until_s)
            for thread in self._own_threads:
                thread.shutdown(cancel_pending, max(until_s - monotonic_s(), 0))
        return bool(super().shutdown(cancel_pending, timeout))

    def is_answering(self) -> bool:
        """Return whether the calling thread answers a batch, after which it wakes the loop itself."""
        return any(batch.is_answering() for batch in self._batches)

    def _own_thread_of(self, channel: Any) -> ReservedThread | None:
        """Return the thread that is reserved for a channel's request, None: there is none.

        A channel with unsent output is left to the pool, because writing to it may wait for its client.
        """
        request = channel.requests[0]
        if request.error is not None or channel.total_outbufs_len:
            return None
        return next((thread for thread in self._own_threads if thread.takes(request)), None)

    def _batch_of(self, channel: Any) -> BatchThread | None:
        """Return the thread for a channel's request, None: the application answers it.

        A channel with unsent output is left to the pool, because writing to it may wait for its client.
        """
        request = channel.requests[0]
        if request.error is not None or request.command != "POST":
            return None
        if request.query or channel.total_outbufs_len:
            return None
        if request.body_bytes_received > BODY_MAX_BYTES:
            return None
        return next((batch for batch in self._batches if batch.takes(request)), None)


def _request_of(channel: Any) -> BatchRequest:
    request = channel.requests[0]
    stream = request.get_body_stream()
    body = stream.read()
    stream.seek(0)  # the application may have to read it again
    return BatchRequest(request.command, request.path, request.headers, channel.addr[0], body)
