"""Lists as parameters: found as they are, whatever they contain."""

import pytest
from sqlalchemy import select

from app.database.connections.mysql_drivers import literals_of
from app.database.engine import read_scope
from app.database.list_parameters import Numbers, Texts, list_of
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.models.job import Job

TEXTS = ["", "it's", 'a "quote"', "back\\slash", "{1,2}", "NULL", "null", "行 \U0001f600", "a\nb", ",", None]


def test_a_list_of_one_kind_is_recognized() -> None:
    assert type(list_of([1, None])) is Numbers
    assert type(list_of([None, "a"])) is Texts
    assert type(list_of([])) is type(list_of([None])) is type(list_of([1.5])) is list


@pytest.mark.databases("postgresql")
def test_postgresql_gets_texts_and_numbers_exactly(database: str) -> None:
    numbers = [1, None, -(2**63), 2**63 - 1]
    with read_scope() as session:
        raw = session.connection().connection.driver_connection
        assert raw is not None
        row = (
            raw.cursor()
            .execute("SELECT %s::text[], %s::bigint[]", (Texts(TEXTS), Numbers(numbers)))
            .fetchone()
        )
    assert row == (TEXTS, numbers)


@pytest.mark.databases("mariadb")
def test_mysql_gets_numbers_for_an_in(database: str) -> None:
    with read_scope() as session:
        raw = session.connection().connection.driver_connection
        assert raw is not None
        assert literals_of(raw)(Numbers([1, -2])) == "(1,-2)"


@pytest.mark.databases("mariadb", "postgresql")
def test_a_text_among_numbers_is_an_error_and_no_part_of_the_statement(database: str) -> None:
    named = select(Job.id).where(among(Job.id))
    with pytest.raises(TypeError), read_scope() as session:
        bulk.read_among(session, named, [1, "2) OR (1 = 1"])  # type: ignore[arg-type]
