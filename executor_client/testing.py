"""Test helper: run a handler without server, admin or files.

result = run_handler("reportHandler", "day=2024-05-01")
assert result.code == 200 and "42 rows" in result.log
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executor_client.capture import captured
from executor_client.clock import now_ms
from executor_client.config import Timing
from executor_client.context import JobContext
from executor_client.errors import ExecutorError
from executor_client.handlers import Handler, HandlerRegistry, registry
from executor_client.protocol import RunRequest
from executor_client.run import result_of
from executor_client.running import call_handler
from executor_client.work import FunctionWork

#: default request of a run
_REQUEST = RunRequest(1, "", "", "SERIAL_EXECUTION", 0, 1, 1, "BEAN", "", 0, 0, 1)


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """Result of a handler under test."""

    code: int
    msg: str | None
    #: its log
    log: str
    #: the exception it raised, if any
    error: BaseException | None


def run_handler(
    handler: str | Callable[[], Any],
    param: str = "",
    *,
    shard: tuple[int, int] = (0, 1),
    cancelled: bool = False,
    handlers: HandlerRegistry = registry,
) -> HandlerResult:
    """Run a handler, by name or as a function, with its hooks in this thread; return its result.

    ``shard`` is index and total; ``cancelled`` cancels the run before it starts. Raises ExecutorError for an
    unknown name.
    """
    found = handlers.find(handler) if isinstance(handler, str) else Handler("test", handler)
    if found is None:
        raise ExecutorError(f"no handler named {handler!r}; known: {', '.join(handlers.names()) or 'none'}")
    request = _REQUEST._replace(
        executor_params=param, broadcast_index=shard[0], broadcast_total=shard[1], log_date_time=now_ms()
    )
    lines: list[str] = []

    def write(line: str) -> bool:
        lines.append(line)
        return True

    context = JobContext(request, write)
    if cancelled:
        context.cancelled.set()
    with captured():
        error = call_handler(context, FunctionWork(found, context, Timing()), hooks=found)
    result = result_of(context, error)
    return HandlerResult(result.code, result.msg, "".join(lines), error)
