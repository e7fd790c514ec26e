"""Test helper: run a handler without server, admin or settings, through the code of an executor.

result = run_handler("reportHandler", "day=2024-05-01")
assert result.code == 200 and "42 rows" in result.log
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import FrameType
from typing import Any

from executor_client.capture.capture import capturing
from executor_client.execution.single_run import run_once
from executor_client.handlers.registry import Handler, HandlerRegistry, registry
from executor_client.wire.clock import now_ms
from executor_client.wire.errors import ExecutorError
from executor_client.wire.protocol import RunRequest

#: default request of a run
_REQUEST = RunRequest(1, "", "", "SERIAL_EXECUTION", 0, 1, 1, "BEAN", "", 0, 0, 1)


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """Result of a handler under test."""

    code: int
    msg: str | None
    #: output and log records of the handler, tracebacks included
    log: str
    #: the exception it raised, if any; that of a ``process=True`` handler is only in the log
    error: BaseException | None
    #: how long it ran, in seconds
    duration: float


def run_handler(
    handler: str | Callable[..., Any],
    param: str = "",
    *,
    shard: tuple[int, int] = (0, 1),
    scheduled_at: datetime | None = None,
    cancelled: bool = False,
    timeout: float | None = None,
    kill_after: float | None = None,
    log_level: int | str | None = None,
    handlers: HandlerRegistry = registry,
) -> HandlerResult:
    """Run a handler, by name or as a function, with its hooks, as an executor does; return its result.

    ``shard`` is index and total; ``scheduled_at``, aware, is what the run stands for. ``cancelled`` cancels
    the run before it starts. ``timeout`` is the job's, in seconds; ``kill_after`` kills the run after so
    many. ``log_level`` is the level of the root logger meanwhile. A failed run is not repeated. Raises
    ExecutorError for an unknown name.

    The handler runs in the calling thread, so that it sees the open transaction of a test; with ``timeout``
    or ``kill_after`` in a thread of its own; by the name of a ``process=True`` handler in a child process.
    """
    target = handlers.find(handler) if isinstance(handler, str) else Handler("test", handler)
    if target is None:
        raise ExecutorError(f"no handler named {handler!r}; known: {', '.join(handlers.names()) or 'none'}")
    request = _REQUEST._replace(
        executor_params=param,
        # whole seconds on the wire, but the watchdog takes any
        executor_timeout=timeout or 0,  # type: ignore[arg-type]
        broadcast_index=shard[0],
        broadcast_total=shard[1],
        log_date_time=now_ms(),
        **_logical_time(scheduled_at),
    )
    with capturing(), _root_level(log_level), _ctrl_c_ends_the_test():
        outcome = run_once(target, request, kill_after_s=kill_after, is_cancelled=cancelled)
    return HandlerResult(
        outcome.result.code, outcome.result.msg, outcome.log, outcome.error, outcome.duration_s
    )


def _logical_time(scheduled_at: datetime | None) -> dict[str, Any]:
    """Return the fields of a request that stands for an instant; none without one."""
    if scheduled_at is None:
        return {}
    if scheduled_at.tzinfo is None:
        raise ValueError(
            "scheduled_at needs a time zone, as datetime(2024, 5, 1, tzinfo=ZoneInfo('Asia/Tokyo'))"
        )
    zone = getattr(scheduled_at.tzinfo, "key", "") or _offset(scheduled_at)
    return {"logical_time": round(scheduled_at.timestamp() * 1000), "time_zone": zone}


def _offset(at: datetime) -> str:
    """Return the offset of a time from UTC as a value of ``TZ``, which counts to the west."""
    minutes = round((at.utcoffset() or timedelta()).total_seconds() / 60)
    return f"<{at:%z}>{'-' if minutes > 0 else '+'}{abs(minutes) // 60}:{abs(minutes) % 60:02}"


@contextmanager
def _root_level(level: int | str | None) -> Iterator[None]:
    root = logging.getLogger()
    before = root.level
    if level is not None:
        root.setLevel(level.upper() if isinstance(level, str) else level)
    try:
        yield
    finally:
        root.setLevel(before)


@contextmanager
def _ctrl_c_ends_the_test() -> Iterator[None]:
    """Raise KeyboardInterrupt after Ctrl-C, which a run would treat like any other exception."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signals: list[int] = []

    def press(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        raise KeyboardInterrupt
