"""Source locations: file, line and column, and the errors reported at them."""

from collections.abc import Iterable
from dataclasses import dataclass

from executor_client.wire.errors import ExecutorError


@dataclass(frozen=True, order=True)
class SourceLocation:
    """Source location, formatted as ``file:line:column``; line and column from 1, 0: the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class CodeError:
    """Error at a source location; None: it concerns all files."""

    location: SourceLocation | None
    problem: str

    def __str__(self) -> str:
        return f"{self.location}: {self.problem}" if self.location is not None else self.problem


class InvalidCode(ExecutorError):
    """Invalid files; ``errors`` are sorted by location."""

    def __init__(self, errors: Iterable[CodeError]) -> None:
        self.errors = sorted(
            set(errors), key=lambda error: (error.location or SourceLocation(""), error.problem)
        )
        super().__init__("\n".join(map(str, self.errors)))
