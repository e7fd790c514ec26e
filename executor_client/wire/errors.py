"""Errors of the executor client.

ExecutorError
├── StartRefused          a setting, port, token or file prevents the start; one line for the operator
│   ├── HeldElsewhere     another process holds the journal
│   └── HandlerConflict   two handlers with one name, or a function that cannot be a handler
├── RunFailed             a run failed for a known reason; the text is its message
│   ├── CommandFailed     a program run by ``context.run`` failed; in ``commands``
│   └── InvalidParameters   the parameter of the job does not fill the arguments of the handler
├── JournalUnavailable    the journal cannot be written, so no run is accepted
└── AdminUnreachable      an admin did not respond; names the address
Interruption (BaseException)   raised inside a handler to end it; ``except Exception`` does not catch it
├── JobKilled
└── JobTimedOut
ImportedOnly (BaseException)   a program that starts an executor was imported for its handlers only
"""


class ExecutorError(Exception):
    """Base of all deliberate errors; the text is fit for users."""


class StartRefused(ExecutorError):
    """The executor cannot start; the text is one line that says what to change."""


class HeldElsewhere(StartRefused):
    """Another process holds the journal of this executor."""


class HandlerConflict(StartRefused):
    """Two handlers have the same name, or a function cannot be a handler."""


class RunFailed(ExecutorError):
    """A script or child process failed or could not be started; the text is the run's message."""


class InvalidParameters(RunFailed):
    """The text of a job's parameter does not fill the handler's arguments; one line per error."""


class JournalUnavailable(ExecutorError):
    """The journal cannot be written."""


class AdminUnreachable(ExecutorError):
    """An admin did not respond to a call."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class Interruption(BaseException):
    """Raised in a running handler to end it; re-raise it after cleaning up."""


class JobKilled(Interruption):
    """The run was killed by the console, a newer trigger, a new script version or a stop of the executor."""


class JobTimedOut(Interruption):
    """The run exceeded the timeout of its job."""


class ImportedOnly(BaseException):
    """Stops the import of a program where it starts its executor.

    Raised in children of ``process=True`` handlers and by the command line.
    """


class TriggerRefused(Exception):
    """A trigger is rejected; the text is the reply."""
