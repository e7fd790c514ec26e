"""Errors of this program.

XxlJobError
├── NotFound              the object does not exist or is not visible to the user (404; scripts: code 500)
│   └── NotVisible        the object exists, but the user may not see it; answered like NotFound
├── InvalidInput          a field has an invalid value; with the field and what is allowed (400)
│   └── ForeignValue      the field names an object or address the user may not use
├── Unauthorized          the credentials are missing, unknown, expired or revoked (401)
├── Conflict              the state of the object does not allow the action (409)
│   └── ChangedMeanwhile  the object is not as it was read; with the fingerprint of what is stored now
├── PermissionDenied      the user may not do this (403)
│   └── DeniedValue       because of the value of a field; with the field and the reason for its form
├── RetryLater            not now; with the time to wait
│   ├── TooManyAttempts   too many attempts (429)
│   └── TooManyCalls      too many calls to executors at the same time (503)
├── NotConfigured         a setting, file or schema is missing or wrong; ends the start with one line
│   └── NoDatabase        there is no database of this program where the settings name one
├── SignOnRefused         the OpenID provider's answer does not log a user in; with the reason (403)
│   └── SignOnExpired     it does not belong to a sign-on that this browser started (400)
├── ProviderUnreachable   the OpenID provider did not answer (503)
└── ExecutorUnreachable   an executor did not answer, or with an invalid answer; with its address
    └── ExecutorRefused   it answered that it does not do this
InvalidCronExpression (ValueError) is beside the parser, in ``app.domain.schedules.cron``; InvalidTemplate and
NotFilled (ValueError) are beside that of placeholders, in ``app.domain.parameters``.
"""


class XxlJobError(Exception):
    """Base class; the text can be shown to the user."""


class NotFound(XxlJobError):
    """The object does not exist or is not visible to the user."""


class NotVisible(NotFound):
    """The object exists, but is not visible to the user; ``target`` is kind and id of what is not."""

    def __init__(self, message: str, *, target: tuple[str, int]) -> None:
        super().__init__(message)
        self.target = target


class InvalidInput(XxlJobError):
    """A field has an invalid value. Text, field and message are those of the first error of an input."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        #: further errors of the same input
        self.further_errors: tuple[InvalidInput, ...] = ()

    @property
    def errors(self) -> "tuple[InvalidInput, ...]":
        """All errors of the input, in the order of the checks."""
        return (self, *self.further_errors)


class ForeignValue(InvalidInput):
    """A field names an existing object, or an address, that the user may not use."""


class Unauthorized(XxlJobError):
    """The credentials are missing, unknown, expired or revoked."""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        #: name of a known token; empty: unknown
        self.name = name


class Conflict(XxlJobError):
    """The state of the object does not allow the action."""


class ChangedMeanwhile(Conflict):
    """The object was changed since it was read."""

    def __init__(self, message: str, *, present: str) -> None:
        super().__init__(message)
        #: fingerprint of what is stored now
        self.present = present


class PermissionDenied(XxlJobError):
    """The user may not do this."""


class DeniedValue(PermissionDenied):
    """The user may not do this with the value of a field; a form shows ``reason`` there."""

    def __init__(self, message: str, *, field: str, reason: str) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


class RetryLater(XxlJobError):
    """The same request may succeed after a wait."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooManyAttempts(RetryLater):
    """Too many attempts; further ones are refused unchecked until the wait has ended."""


class TooManyCalls(RetryLater):
    """Too many calls to executors at the same time."""


class NotConfigured(XxlJobError):
    """A setting, a file or the schema is missing or wrong: the program cannot start."""


class NoDatabase(NotConfigured):
    """There is no database of this program where the settings name one; perhaps they are the wrong ones."""


class SignOnRefused(XxlJobError):
    """The OpenID provider's answer does not log a user in."""

    def __init__(self, message: str, *, reason: str, username: str = "") -> None:
        super().__init__(message)
        #: for the audit: what was wrong, in English
        self.reason = reason
        #: user name the provider gave; empty: unknown
        self.username = username


class SignOnExpired(SignOnRefused):
    """The answer does not belong to a sign-on that this browser started within the last minutes."""


class ProviderFault(SignOnRefused):
    """The OpenID provider refuses this client, or its answer is not valid: no fault of the user."""


class ProviderUnreachable(XxlJobError):
    """The OpenID provider did not answer."""


class ExecutorUnreachable(XxlJobError):
    """An executor did not answer, or its answer is invalid."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class ExecutorRefused(ExecutorUnreachable):
    """An executor answered that it does not do what it was asked for."""
