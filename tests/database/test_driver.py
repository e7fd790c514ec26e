"""Statements executed by the driver: what listeners of SQLAlchemy, such as Sentry's, get of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, ExceptionContext, bindparam, event, select, update
from sqlalchemy.engine import ExecutionContext
from sqlalchemy.exc import DBAPIError, IntegrityError

from app.database import single_statement
from app.database.engine import bound_engine, read_scope, session_scope
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import among
from app.models.fire import Fire
from tests.support.factories import all_rows, make_fire, make_job

_TABLE = Fire.metadata.tables["xxl_job_fire"]
_OWNER = select(Fire.owner).where(Fire.id == bindparam("which"))
_GIVE = update(_TABLE).where(_TABLE.c.id == bindparam("which")).values(owner="one")
_TAKE_KEY = update(_TABLE).where(_TABLE.c.id == bindparam("which")).values(fire_key=bindparam("key"))
_AMONG = select(Fire.owner).where(among(Fire.id))


class Monitor:
    """Listeners that keep a span on the execution context and read what such libraries read."""

    def __init__(self) -> None:
        self.open: list[ExecutionContext] = []
        self.ended: list[str] = []
        self.failed: list[str] = []
        #: appended to each statement
        self.comment = ""

    def before(
        self, connection: Any, cursor: Any, sql: str, parameters: Any, context: Any, many: bool
    ) -> tuple[str, Any]:
        assert callable(cursor.execute)
        assert connection.engine.url.database == bound_engine().url.database
        assert (context.statement, context.executemany, context.cursor) == (sql, many, cursor)
        assert context.dialect.paramstyle == connection.engine.dialect.paramstyle
        assert parameters is not None
        context.span = "span of " + sql
        self.open.append(context)
        return sql + self.comment, parameters

    def after(
        self, _connection: Any, _cursor: Any, _sql: str, _parameters: Any, context: Any, _many: Any
    ) -> None:
        self.open.remove(context)
        self.ended.append(context.span)

    def error(self, error: ExceptionContext) -> None:
        context: Any = error.execution_context
        self.open.remove(context)
        self.failed.append(context.span)


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    made = Monitor()
    listeners = {"before_cursor_execute": made.before, "after_cursor_execute": made.after}
    for name, listener in (listeners | {"handle_error": made.error}).items():
        event.listen(Engine, name, listener, retval=name == "before_cursor_execute")
    yield made
    for name, listener in (listeners | {"handle_error": made.error}).items():
        event.remove(Engine, name, listener)


@pytest.fixture
def fire(database: str) -> Fire:
    return make_fire(make_job())


def in_session(work: Callable[..., Any], *arguments: Any) -> None:
    with session_scope() as session:
        work(session, *arguments)


def copy_of(fire: Fire) -> dict[str, Any]:
    row = {column.name: getattr(fire, column.name) for column in _TABLE.columns if column.name != "id"}
    return row | {"fire_key": "another"}


PATHS: dict[str, Callable[[Fire], object]] = {
    "read": lambda fire: in_session(direct.read, _OWNER, {"which": fire.id}),
    "change": lambda fire: in_session(direct.change, _GIVE, {"which": fire.id}),
    "read many": lambda fire: in_session(bulk.read_among, _AMONG, [fire.id]),
    "insert many": lambda fire: in_session(bulk.insert_whole, Fire, [copy_of(fire)]),
    "insert with ids": lambda fire: in_session(bulk.insert_with_ids, Fire, [copy_of(fire)]),
    "update many": lambda fire: in_session(bulk.update_many, Fire, [{"id": fire.id, "owner": "one"}]),
    "single read": lambda fire: single_statement.read(_OWNER, {"which": fire.id}),
    "single write": lambda fire: single_statement.write(_GIVE, {"which": fire.id}),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_listener_can_trace_each_statement(fire: Fire, monitor: Monitor, path: str) -> None:
    PATHS[path](fire)
    assert monitor.open == []
    assert [span for span in monitor.ended if "xxl_job_fire" in span]


@pytest.mark.parametrize("path", ["change", "single write"])
def test_a_listener_may_replace_a_statement(fire: Fire, monitor: Monitor, path: str) -> None:
    monitor.comment = " AND 1 = 0"
    PATHS[path](fire)
    monitor.comment = ""
    assert [row.owner for row in all_rows(Fire)] == [""]


TAKE_KEY: dict[str, Callable[[dict[str, Any]], object]] = {
    "session": lambda values: in_session(direct.change, _TAKE_KEY, values),
    "single": lambda values: single_statement.write(_TAKE_KEY, values),
}


@pytest.mark.parametrize("path", TAKE_KEY)
def test_a_listener_gets_the_error_of_its_statement(fire: Fire, monitor: Monitor, path: str) -> None:
    other = make_fire(make_job())
    monitor.ended.clear()
    with pytest.raises(IntegrityError):
        TAKE_KEY[path]({"which": other.id, "key": fire.fire_key})
    assert (monitor.open, monitor.ended) == ([], [])
    assert len(monitor.failed) == 1
    assert "UPDATE xxl_job_fire SET fire_key" in monitor.failed[0]


@pytest.mark.databases("mariadb", "postgresql")
def test_a_connection_that_was_closed_is_a_lost_one(fire: Fire) -> None:
    with read_scope() as session:
        raw: Any = session.connection().connection.driver_connection
        raw.close()
        with pytest.raises(DBAPIError) as caught:
            direct.read(session, _OWNER, {"which": fire.id})
    assert caught.value.connection_invalidated
