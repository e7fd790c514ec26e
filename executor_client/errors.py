"""The client's errors.

ExecutorError
├── StartRefused          a setting, port, token or file forbids the start; one line for the person at the console
│   └── HandlerConflict   two handlers of one name, or a function that cannot be a handler
├── RunFailed             a run failed for a reason the executor knows; the text is its message
├── JournalUnavailable    the journal cannot be written: nothing is accepted
└── AdminUnreachable      an admin did not answer; names the address
Interruption (BaseException)   raised inside a handler to end it; user code that catches ``Exception`` does not swallow it
├── JobKilled
└── JobTimedOut
ImportedOnly (BaseException)   a program that starts an executor was imported for its handlers alone
"""


class ExecutorError(Exception):
    """Base of the errors raised on purpose; the text is fit for the person who caused it."""


class StartRefused(ExecutorError):
    """The executor cannot start; the text says in one line what to change."""


class HandlerConflict(StartRefused):
    """Two handlers have one name, or a function cannot be a handler."""


class RunFailed(ExecutorError):
    """A script or child process could not be started, or ended badly; the text is the run's message."""


class JournalUnavailable(ExecutorError):
    """The journal cannot be written."""


class AdminUnreachable(ExecutorError):
    """An admin could not be asked."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class Interruption(BaseException):
    """Ends a running handler from outside; re-raise it after cleaning up."""


class JobKilled(Interruption):
    """The run was killed: by the console, by a newer trigger, by a new version, or because the executor stops."""


class JobTimedOut(Interruption):
    """The run took longer than its job allows."""


class ImportedOnly(BaseException):
    """A program starts its executor; the child of a ``process=True`` handler, and the command line, import it up to there."""
