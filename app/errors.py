"""Every error this program raises on purpose.

XxlJobError
├── NotFound              the object does not exist, or not for this user (HTTP 404, code 500 for scripts)
├── InvalidInput          a field has a value it cannot have; names the field and what would be right (400)
├── Conflict              the state of the object forbids the action (409)
├── PermissionDenied      the user may not do this (403)
├── TooManyAttempts       too many failed logins; says how long to wait (429)
├── NotConfigured         a setting, file or schema is missing or wrong; ends a start with one line
└── ExecutorUnreachable   an executor could not be asked, or its answer was no answer; names the address
InvalidCronExpression (ValueError) lives beside the parser, in ``app.domain.cron``.
"""


class XxlJobError(Exception):
    """Base of all errors raised on purpose; its text is fit for the person who caused it."""


class NotFound(XxlJobError):
    """The object does not exist, or is not visible to this user."""


class InvalidInput(XxlJobError):
    """A field holds a value it cannot hold."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class Conflict(XxlJobError):
    """The object's present state forbids the action."""


class PermissionDenied(XxlJobError):
    """The user may not do this."""


class TooManyAttempts(XxlJobError):
    """Too many logins failed; nothing is looked at before the wait is over."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotConfigured(XxlJobError):
    """A setting, a file or the schema is missing or wrong: the program cannot start."""


class ExecutorUnreachable(XxlJobError):
    """An executor could not be asked, or answered something that is no answer."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason
