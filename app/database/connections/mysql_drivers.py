"""Drivers of MySQL and MariaDB: differences between PyMySQL and mysqlclient (``mysql+mysqldb``).

PyMySQL comes with the program. mysqlclient, in C, takes less CPU time, and is installed by the operator.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from importlib import import_module
from typing import Any

from app.compat import mysql_socket
from app.database.list_parameters import mysql_encoders

PYMYSQL = "pymysql"
#: MySQL's flag of an open transaction, in the status that comes with its answers
_IN_TRANSACTION = 1


@cache
def conversions(driver: str) -> dict[Any, Any]:
    """Return the conversions of a driver, with those of lists."""
    return (_of_pymysql() if driver == PYMYSQL else _of_mysqlclient()) | mysql_encoders()


def _of_pymysql() -> dict[Any, Any]:
    """Return PyMySQL's conversions with a DATETIME of our own: theirs takes ten times as long.

    A value that is no date, such as 0000-00-00, is read as NULL, as by mysqlclient; PyMySQL returns its text.
    """
    from pymysql import converters  # Other databases need no PyMySQL.
    from pymysql.constants import FIELD_TYPE

    def read_datetime(text: str) -> datetime | None:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return None

    dates = dict.fromkeys((FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP), read_datetime)
    return converters.conversions | dates


def _of_mysqlclient() -> dict[Any, Any]:
    conversions: dict[Any, Any] = import_module("MySQLdb.converters").conversions
    return conversions


def _is_pymysql(connection: Any) -> bool:
    return type(connection).__module__.startswith(PYMYSQL)


def socket_of(connection: Any) -> Any:
    """Return the socket of a connection, or its number."""
    return mysql_socket(connection) if _is_pymysql(connection) else connection.fileno()


def may_have_transaction(connection: Any) -> bool:
    """Whether a transaction may be open; of mysqlclient, which does not pass on the status, True."""
    return not _is_pymysql(connection) or bool(connection.server_status & _IN_TRANSACTION)


def literals_of(connection: Any) -> Callable[[Any], str]:
    """Return what writes a value for the text of a statement."""
    if not _is_pymysql(connection):
        return partial(_literal, connection)
    escape: Callable[[Any], str] = connection.escape
    return escape


def _literal(connection: Any, value: Any) -> str:
    literal: bytes = connection.literal(value)
    return literal.decode(connection.encoding)
