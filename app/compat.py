"""Private names of libraries: each is used in one function here, which an upgrade that changes it makes fail.

Nothing is imported: what has the name is passed in.
"""

from typing import Any, NoReturn


def set_content(response: Any, content: bytes) -> None:
    """Give a response of requests its body, which ``content`` and ``json`` then return."""
    response._content = content


def mysql_socket(connection: Any) -> Any:
    """Return the socket of a connection of PyMySQL; None if it is closed."""
    return connection._sock


def raise_driver_error(
    connection: Any,
    error: BaseException,
    statement: str,
    values: Any = None,
    cursor: Any = None,
    context: Any = None,
) -> NoReturn:
    """Raise SQLAlchemy's error for one of a driver, with its listeners, as SQLAlchemy itself does."""
    connection._handle_dbapi_exception(error, statement, values, cursor, context)
    raise AssertionError("SQLAlchemy raises")


def answer_timeout(errors: Any) -> type[Exception]:
    """Return what psycopg's wait raises at its time-out, from the module of its errors."""
    timeout: type[Exception] = errors._WaitTimeout
    return timeout


def parse_regex(module: Any, pattern: str, flags: int) -> Any:
    """Return the parsed form of a regular expression; ``module`` is ``re``."""
    return module._parser.parse(pattern, flags)
