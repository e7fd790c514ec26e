"""Places in files, and errors that name them."""

from collections.abc import Iterable
from dataclasses import dataclass

from executor_client.wire.errors import ExecutorError


@dataclass(frozen=True, order=True)
class Place:
    """Place in a file, as editors understand it; line and column from 1, 0: the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class CodeError:
    """What is wrong at a place; without one it concerns everything."""

    place: Place | None
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}" if self.place is not None else self.problem


class InvalidCode(ExecutorError):
    """Files that cannot be used, with all errors in the order of their places."""

    def __init__(self, errors: Iterable[CodeError]) -> None:
        self.errors = sorted(set(errors), key=lambda error: (error.place or Place(""), error.problem))
        super().__init__("\n".join(map(str, self.errors)))
