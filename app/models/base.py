"""Declarative base, names of constraints, and the column type that maps DATETIME to epoch milliseconds."""

from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, MetaData, String, Text, TypeDecorator
from sqlalchemy.dialects.mysql import MEDIUMTEXT
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeEngine

from app.clock import Millis

#: Alembic needs a name for every constraint
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
#: 64-bit ids; SQLite counts up only in a column of the type INTEGER
BigId = BigInteger().with_variant(Integer, "sqlite")
#: sources of GLUE jobs: up to 16 MB on MySQL
LongText = Text().with_variant(MEDIUMTEXT, "mysql", "mariadb")
#: a herd writes and reads one and the same second a thousand times; a page of 100 jobs reads 2,000 seconds, and mostly the same ones again
SECONDS_KEPT = 4_096


def exact_text(length: int) -> TypeEngine[str]:
    """Return a VARCHAR whose values are equal only where they are the same; MySQL's own sorting takes ``é`` for ``e``."""
    return String(length).with_variant(String(length, collation="utf8mb4_bin"), "mysql", "mariadb")


class Base(DeclarativeBase):
    """Parent of all models."""

    metadata = MetaData(naming_convention=NAMING)


class _Zone:
    """The zone DATETIME columns are written in; one for a process, set when its engine is bound."""

    def __init__(self) -> None:
        self.current = ZoneInfo("UTC")


_zone = _Zone()


def use_zone(name: str) -> None:
    """Read and write DATETIME columns as local time of this IANA zone from now on."""
    _zone.current = ZoneInfo(name)


def zone_name() -> str:
    """Return the zone DATETIME columns are written in: the configured one."""
    return _zone.current.key


def local_datetime(millis: Millis) -> datetime:
    """Return an instant as naive local time of the configured zone, in whole seconds."""
    return _to_local(millis // 1000, _zone.current)


@lru_cache(SECONDS_KEPT)
def _to_local(second: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None)


@lru_cache(SECONDS_KEPT)
def _to_second(local: datetime, zone: ZoneInfo) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


class EpochMillis(TypeDecorator[Millis]):
    """A DATETIME column of local time in whole seconds, as the original writes it; in Python: UTC epoch milliseconds.

    Always cut to seconds before it is stored: MySQL rounds, MariaDB cuts
    (docs/reference/schema.md, section 10). Of two equal local
    times at the end of summer time the first is meant.
    """

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: Millis | None, dialect: Dialect) -> datetime | None:
        """Python to database."""
        return None if value is None else local_datetime(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Millis | None:
        """Database to Python."""
        return None if value is None else _to_second(value, _zone.current) * 1000
