"""XXL-JOB executor for Python: ``@job`` declares handlers, ``context`` is their run, ``Executor`` serves.

Importing this package loads the standard library only. Flask, waitress and urllib3 are loaded when an
executor is built.
"""

from typing import TYPE_CHECKING, Any

from executor_client.capture_logging import JobLogHandler
from executor_client.commands import CommandFailed
from executor_client.context import JobContext, context
from executor_client.errors import ExecutorError, Interruption, JobKilled, JobTimedOut, StartRefused
from executor_client.handlers import HandlerRegistry, job, register
from executor_client.version import VERSION

if TYPE_CHECKING:
    from executor_client.config import ExecutorConfig
    from executor_client.executor import Executor

__version__ = VERSION

__all__ = [
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


def __getattr__(name: str) -> Any:
    """Import the executor and its configuration on first use."""
    if name == "Executor":
        from executor_client.executor import Executor

        return Executor
    if name == "ExecutorConfig":
        from executor_client.config import ExecutorConfig

        return ExecutorConfig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
