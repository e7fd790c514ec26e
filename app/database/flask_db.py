"""Flask-SQLAlchemy of the console and of ``flask db``: transactions of views, in its session of the request.

Apart from ``engine``, so that the workers do without Flask: that takes 8 MB in each of their processes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.database import engine
from app.models.base import Base

T = TypeVar("T")


class ViewSession(FlaskSession):
    """Session on the engine of this process, which is another one after a move of the database."""

    def get_bind(self, *_args: Any, **_options: Any) -> Engine:
        """Return the engine."""
        return engine.bound_engine()


db = SQLAlchemy(
    model_class=Base,
    session_options={"class_": ViewSession, "autoflush": False, "expire_on_commit": False},
)


@contextmanager
def read_scope() -> Iterator[Session]:
    """Open a read-only transaction of a view; it ends with the block, before the page is rendered."""
    with db.session() as session:
        yield session


@contextmanager
def session_scope() -> Iterator[Session]:
    """Open a writing transaction of a view, as ``engine.session_scope`` does."""
    with db.session() as session, session.begin():
        session.connection(execution_options=engine.WRITING)
        yield session


def transact(work: Callable[[Session], T]) -> T:
    """Run ``work`` in a writing transaction of a view, repeated as ``engine.transact`` does."""
    return engine.transact(work, scope=session_scope)
