"""Private names of libraries that the server uses: an upgrade that changes one fails here."""

import pymysql
import pytest
import requests
from psycopg import errors
from sqlalchemy import create_engine
from sqlalchemy.exc import IntegrityError

from app import compat


def test_a_response_of_requests_has_the_content_it_is_given() -> None:
    response = requests.Response()
    compat.set_content(response, b'{"a": 1}')
    assert (response.content, response.json()) == (b'{"a": 1}', {"a": 1})


def test_a_connection_of_pymysql_has_a_socket_while_it_is_open() -> None:
    connection = pymysql.Connection(defer_connect=True)
    assert compat.mysql_socket(connection) is None
    connection._sock = socket = object()
    assert compat.mysql_socket(connection) is socket


def test_sqlalchemy_raises_its_error_for_one_of_the_driver() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(IntegrityError):
        compat.raise_driver_error(connection, engine.dialect.loaded_dbapi.IntegrityError("known"), "SELECT 1")


def test_psycopg_has_an_error_of_its_wait() -> None:
    assert issubclass(compat.answer_timeout(errors), Exception)
