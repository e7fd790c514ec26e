"""Input errors: collect the errors of all fields, so that a form shows them at once."""

from collections.abc import Iterable
from types import TracebackType

from app.errors import InvalidInput, XxlJobError


class InputErrors:
    """Errors found so far; ``with errors:`` around each check adds its InvalidInput and continues after it.

    Any other error ends the checks: it is raised itself, or in its place the errors found before it.
    """

    def __init__(self, found: Iterable[InvalidInput] = ()) -> None:
        self.found = list(found)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, InvalidInput):
            self.found += error.errors
            return True
        if isinstance(error, XxlJobError):
            self.raise_all()
        return False

    def raise_all(self) -> None:
        """Raise the first error with the others, if there are any."""
        if not self.found:
            return
        first, *others = self.found
        first.further_errors = tuple(others)
        raise first
