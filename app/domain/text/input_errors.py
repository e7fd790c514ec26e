"""Input errors: collection of the errors of all fields, so that a form shows them at once."""

from collections.abc import Iterable
from types import TracebackType

from app.errors import InvalidInput, XxlJobError


class InputErrors:
    """Collected errors; ``with errors:`` around each check adds its InvalidInput and continues after it.

    Any other error ends the checks: it is raised itself, or in its place the errors collected before it.
    """

    def __init__(self, errors: Iterable[InvalidInput] = ()) -> None:
        self.errors = list(errors)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, InvalidInput):
            self.errors += error.errors
            return True
        if isinstance(error, XxlJobError):
            self.raise_all()
        return False

    def raise_all(self) -> None:
        """Raise the first error with the others, if there are any."""
        if not self.errors:
            return
        first, *further = self.errors
        first.further_errors = tuple(further)
        raise first
