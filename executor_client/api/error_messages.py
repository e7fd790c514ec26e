"""Error messages of commands: one line and an exit code for each error of the API client.

Exit codes of all commands over the API: 0 done; 1 refused or failed; 2 command line, settings or credentials.
"""

from executor_client.api.errors import (
    ApiError,
    ApiUnreachable,
    Forbidden,
    NotConfigured,
    NotFound,
    NotUnicode,
    Unauthorized,
)

EXIT_FAILED = 1
EXIT_USAGE = 2
#: first words of the answer to a path that the API does not have
_NO_ROUTE = "The requested URL was not found"


def explain(error: ApiError) -> tuple[str, int]:
    """Return one line that says what to do, and the exit code."""
    if isinstance(error, Unauthorized):
        return f"the token is refused: {error}", EXIT_USAGE
    if isinstance(error, NotConfigured | NotUnicode):
        return str(error), EXIT_USAGE
    if isinstance(error, Forbidden):
        return f"{error}: the token does not have the right", EXIT_FAILED
    if isinstance(error, NotFound) and error.detail.startswith(_NO_ROUTE):
        return "this console does not know the operation: it is older than this program", EXIT_FAILED
    if isinstance(error, ApiUnreachable):
        return f"no answer from the console at {error}", EXIT_FAILED
    return str(error), EXIT_FAILED
