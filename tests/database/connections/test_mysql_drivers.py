"""Drivers of MySQL: what mysqlclient, which need not be installed, gives instead of PyMySQL's attributes.

``XXL_TEST_MYSQL_DRIVER=mysqldb`` runs the tests of MariaDB with it.
"""

import pytest
from pymysql.connections import Connection

from app.database.connections.mysql_drivers import literals_of, may_have_transaction, socket_of


class Mysqlclient:
    """A connection of mysqlclient."""

    encoding = "utf8"

    def fileno(self) -> int:
        return 7

    def literal(self, value: str) -> bytes:
        return f"'{value}'".encode()


def test_the_literals_of_mysqlclient_are_texts() -> None:
    assert literals_of(Mysqlclient())("行 \U0001f600") == "'行 \U0001f600'"


def test_the_socket_of_each_driver_is_watched() -> None:
    pymysql = Connection(defer_connect=True)
    pymysql._sock = 5
    assert (socket_of(Mysqlclient()), socket_of(pymysql)) == (7, 5)


@pytest.mark.parametrize(("status", "expected"), [(0, False), (3, True)])
def test_only_pymysql_reports_that_no_transaction_is_open(status: int, expected: bool) -> None:
    pymysql = Connection(defer_connect=True)
    pymysql.server_status = status
    assert may_have_transaction(pymysql) is expected
    assert may_have_transaction(Mysqlclient())
