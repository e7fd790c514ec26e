"""Values copied from SQLite, which checks neither types nor lengths, to a column of a database server."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any


class ColumnKind(Enum):
    """What a column holds."""

    INTEGER = auto()
    TEXT = auto()
    #: local time in whole seconds
    TIME = auto()


@dataclass(frozen=True, slots=True)
class CopiedColumn:
    """A column of the server's table, with what it can hold."""

    name: str
    kind: ColumnKind
    nullable: bool = True
    #: of an integer
    bits: int = 64
    #: longest text; None: no limit
    characters: int | None = None
    utf8_bytes: int | None = None
    #: whether a text may contain the character NUL, which PostgreSQL refuses
    takes_nul: bool = True

    def convert(self, value: Any) -> Any:
        """Return a value of SQLite's driver as the server's driver takes and returns it.

        Raises ValueError with the reason if the column cannot hold the value.
        """
        if value is None:
            if not self.nullable:
                raise ValueError("is null")
            return None
        if self.kind is ColumnKind.INTEGER:
            return self._integer(value)
        if not isinstance(value, str):
            raise ValueError(f"is not text but {type(value).__name__}")
        return self._text(value) if self.kind is ColumnKind.TEXT else _time(value)

    def _integer(self, value: Any) -> int:
        if not isinstance(value, int):
            raise ValueError(f"is not a whole number but {type(value).__name__}")
        if not -(1 << self.bits - 1) <= value < 1 << self.bits - 1:
            raise ValueError(f"is {value}, the column holds {self.bits} bits")
        return value

    def _text(self, value: str) -> str:
        if self.characters is not None and len(value) > self.characters:
            raise ValueError(f"has {len(value)} characters, the column holds {self.characters}")
        if not self.takes_nul and "\0" in value:
            raise ValueError("contains the character NUL, which PostgreSQL does not store")
        if value.isascii():
            length = len(value)
        else:
            try:
                length = len(value.encode())
            except UnicodeEncodeError as exc:
                raise ValueError("is not valid UTF-8") from exc
        if self.utf8_bytes is not None and length > self.utf8_bytes:
            raise ValueError(f"has {length} bytes, the column holds {self.utf8_bytes}")
        return value


def _time(value: str) -> datetime:
    """Return a stored ``2026-11-23 05:37:15.000000``, in whole seconds as the program reads it."""
    try:
        return datetime.fromisoformat(value).replace(microsecond=0, tzinfo=None)
    except ValueError as exc:
        raise ValueError(f"is not a time: {value[:40]!r}") from exc
