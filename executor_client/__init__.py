"""XXL-JOB executor for Python: ``@job`` declares handlers, ``context`` is their run, ``Executor`` serves.

Importing this package loads its errors only: what is behind a name is imported when it is first used, as the
commands need little of it. Flask, waitress and urllib3 are loaded when an executor is built.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from executor_client.wire.errors import ExecutorError, Interruption, JobKilled, JobTimedOut, StartRefused
from executor_client.wire.version import VERSION

if TYPE_CHECKING:
    from executor_client.api.errors import ApiError
    from executor_client.capture.logging import JobLogHandler
    from executor_client.client.async_client import AsyncClient
    from executor_client.client.client import Client
    from executor_client.config.config import ExecutorConfig
    from executor_client.executor import Executor
    from executor_client.handlers.registry import HandlerRegistry, job, register
    from executor_client.processes.commands import CommandFailed
    from executor_client.runs.context import JobContext, context

__version__ = VERSION

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "CommandFailed",
    "Executor",
    "ExecutorConfig",
    "ExecutorError",
    "HandlerRegistry",
    "Interruption",
    "JobContext",
    "JobKilled",
    "JobLogHandler",
    "JobTimedOut",
    "StartRefused",
    "__version__",
    "context",
    "job",
    "register",
]


#: name -> module from which it is imported on first use
_LATER = {
    "ApiError": "executor_client.api.errors",
    "AsyncClient": "executor_client.client.async_client",
    "Client": "executor_client.client.client",
    "CommandFailed": "executor_client.processes.commands",
    "Executor": "executor_client.executor",
    "ExecutorConfig": "executor_client.config.config",
    "HandlerRegistry": "executor_client.handlers.registry",
    "JobContext": "executor_client.runs.context",
    "JobLogHandler": "executor_client.capture.logging",
    "context": "executor_client.runs.context",
    "job": "executor_client.handlers.registry",
    "register": "executor_client.handlers.registry",
}


def __getattr__(name: str) -> Any:
    """Import what is behind a name on first use."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
