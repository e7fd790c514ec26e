"""Declarative base, constraint names, and the column type that maps DATETIME to epoch milliseconds."""

from bisect import bisect_left
from datetime import datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, MetaData, String, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeEngine

from app.clock import Millis

#: Alembic needs a name for every constraint
NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
#: 64-bit ids; SQLite generates them only for columns of the type INTEGER
BigId = BigInteger().with_variant(Integer, "sqlite")
#: cached conversions: many rows have the same second, and a page of 100 jobs reads up to 2,000 seconds
SECONDS_KEPT = 4_096


def exact_text(length: int) -> TypeEngine[str]:
    """Return a VARCHAR compared by code point; MySQL's default collation takes ``é`` for ``e``."""
    return String(length).with_variant(String(length, collation="utf8mb4_bin"), "mysql", "mariadb")


class _MediumText(Text):
    """Text of up to 16 MB, by its name: the dialect of MySQL takes 3 MB, and is loaded only there."""

    __visit_name__ = "MEDIUMTEXT"


#: sources of GLUE jobs
LongText = Text().with_variant(_MediumText(), "mysql", "mariadb")


class Base(DeclarativeBase):
    """Base class of all models."""

    metadata = MetaData(naming_convention=NAMING)


class _Zone:
    """Time zone of DATETIME columns, one per process, set when the engine is bound."""

    def __init__(self) -> None:
        self.current = ZoneInfo("UTC")


_zone = _Zone()


def use_zone(name: str) -> None:
    """Set the time zone of DATETIME columns, by its IANA name."""
    _zone.current = ZoneInfo(name)


def zone_name() -> str:
    """Return the time zone of DATETIME columns, which is the configured one."""
    return _zone.current.key


def local_datetime(millis: Millis) -> datetime:
    """Return an instant as naive local time of the configured zone, in whole seconds."""
    return _to_local(millis // 1000, _zone.current)


def as_stored(millis: Millis) -> Millis:
    """Return an instant as a DATETIME column returns it: in seconds, of equal local times the first."""
    return _to_second(local_datetime(millis), _zone.current) * 1000


def lower_bound(millis: Millis) -> Millis:
    """Return the instant to compare a DATETIME column with, so that none from ``millis`` on is left out.

    In the first of two equal hours that is the start of the second, whose local time is the earliest.
    """
    repeated_s = _repeated_from(millis // 1000, _zone.current)
    return millis if repeated_s is None else max(millis, repeated_s * 1000)


def upper_bound(millis: Millis) -> Millis:
    """Return the instant to compare a DATETIME column with, so that none up to ``millis`` is left out.

    In the second of two equal hours that is the end of the first.
    """
    repeated_s = _repeated_from(millis // 1000, _zone.current)
    return millis if repeated_s is None else min(millis, (repeated_s - 1) * 1000)


def as_repeated(millis: Millis) -> Millis:
    """Return the second of the two instants that have the local time of one; itself if there is only one."""
    zone = _zone.current
    return int(datetime.fromtimestamp(millis // 1000, zone).replace(fold=1).timestamp()) * 1000


def _repeated_from(second: int, zone: ZoneInfo) -> int | None:
    """Return when the clocks are set back, if the local time of an instant occurs twice; else None."""
    local = datetime.fromtimestamp(second, zone)
    first, second_time = (int(local.replace(fold=fold).timestamp()) for fold in (0, 1))
    if first == second_time:
        return None
    between = range(first, second_time)
    return first + bisect_left(between, 1, key=lambda moment: datetime.fromtimestamp(moment, zone).fold)


@lru_cache(SECONDS_KEPT)
def _to_local(second: int, zone: ZoneInfo) -> datetime:
    # The column keeps no fold, and caches treat two times that differ only in it as one.
    return datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0)


@lru_cache(SECONDS_KEPT)
def _to_second(local: datetime, zone: ZoneInfo) -> int:
    return int(local.replace(tzinfo=zone).timestamp())


@lru_cache(SECONDS_KEPT)
def _second_of(local: str, zone: ZoneInfo) -> int:
    return _to_second(datetime.fromisoformat(local), zone)


def millis_of(local: str) -> Millis | None:
    """Return the instant of a DATETIME that MySQL returns as text; None if it is no date: 0000-00-00."""
    try:
        return _second_of(local, _zone.current) * 1000
    except ValueError:
        return None


class EpochMillis(TypeDecorator[Millis]):
    """DATETIME column with local time in whole seconds, as in the original; UTC epoch milliseconds in Python.

    Values are truncated to seconds before they are stored, because MySQL rounds and MariaDB truncates
    (docs/reference/schema.md, section 10). Of two equal local times at the end of summer time the first is
    meant.
    """

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: Millis | None, dialect: Dialect) -> datetime | None:
        """Convert a Python value for the database."""
        return None if value is None else local_datetime(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Millis | None:
        """Convert a value from the database."""
        return None if value is None else _to_second(value, _zone.current) * 1000
