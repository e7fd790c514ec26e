"""Batched endpoints: requests that wait at the same time are answered by one call, in one thread.

The pool of threads needs several changes of threads for each request. Where one transaction can serve many
requests, one thread takes all that have arrived while it answered those before. Everything else of a
connection (order, keep-alive, limits, closing) is left to the ordinary channel.
"""

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from waitress.task import Task, ThreadedTaskDispatcher

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


FAILED = BatchAnswer(
    500, (("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")), b"Internal Server Error\n"
)


@dataclass(frozen=True, slots=True)
class BatchedEndpoints:
    """Function that answers requests together, and which requests it is asked for."""

    #: ``("POST", "/run")``; requests with a query never are
    paths: frozenset[tuple[str, str]]
    #: returns an answer for each request, None to have it answered by the application instead
    answer: Callable[[list[BatchRequest]], Sequence[BatchAnswer | None]]


NO_ENDPOINTS = BatchedEndpoints(frozenset(), lambda requests: ())


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
        data = head if self.request.command == "HEAD" else head + self._answer.body
        # past the buffers, as long as they are empty: with output in them the loop would poll without a pause
        sent = 0 if self.channel.total_outbufs_len else self.channel.send(data, do_close=False)
        if sent < len(data):
            self.channel.write_soon(data[sent:])


class BatchDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Pool of threads, beside one thread for batched endpoints."""

    def __init__(self, endpoints: BatchedEndpoints = NO_ENDPOINTS) -> None:
        super().__init__()
        self._endpoints = endpoints
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = not endpoints.paths
        #: thread that answers a batch at the moment
        self._answering: int | None = None
        self._thread = threading.Thread(target=self._run, name="http-batches", daemon=True)
        if not self._closed:
            self._thread.start()

    def add_task(self, task: Any) -> None:
        """Have the first waiting request of a channel answered."""
        if not self._closed and self._is_batched(task):
            self._waiting.put(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """Answer the batched requests that were received, then end the threads."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join(timeout)
            if self._thread.is_alive():
                logger.warning("batch thread still busy after timeout_s=%s", timeout)
        return bool(super().shutdown(cancel_pending, timeout))

    def is_answering(self) -> bool:
        """Return whether the calling thread answers a batch, after which it wakes the loop itself."""
        return self._answering is not None and self._answering == threading.get_ident()

    def _is_batched(self, channel: Any) -> bool:
        """Return whether a channel's request is one of a batched endpoint.

        A channel with unsent output is left to the pool, because writing to it may wait for its client.
        """
        request = channel.requests[0]
        return (
            request.error is None
            and (request.command, request.path) in self._endpoints.paths
            and not (request.query or channel.total_outbufs_len)
            and request.body_bytes_received <= BODY_MAX_BYTES
        )

    def _run(self) -> None:
        while channels := self._next_batch():
            answers = self._answers(channels)
            self._answering = threading.get_ident()
            for channel, answer in zip(channels, answers, strict=True):
                if answer is None:
                    super().add_task(channel)
                    continue
                try:
                    channel.send_answer(answer)
                except BaseException:
                    logger.exception("answer not sent channel=%r", channel)
            self._answering = None
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

    def _answers(self, channels: list[Any]) -> Sequence[BatchAnswer | None]:
        """Return an answer for each channel's request."""
        try:
            answers = self._endpoints.answer([_request_of(channel) for channel in channels])
            if len(answers) != len(channels):
                raise ValueError(f"{len(answers)} answers to {len(channels)} requests")
            return answers
        except Exception:
            logger.exception("batch failed requests=%s", len(channels))
            return [FAILED] * len(channels)


def _request_of(channel: Any) -> BatchRequest:
    request = channel.requests[0]
    stream = request.get_body_stream()
    body = stream.read()
    stream.seek(0)  # the application may have to read it again
    return BatchRequest(request.command, request.path, request.headers, channel.addr[0], body)
