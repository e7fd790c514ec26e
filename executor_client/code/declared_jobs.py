"""Job declarations of handlers, as a jobs-as-code document."""

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from executor_client.api.errors import FieldError
from executor_client.code.source_locations import CodeError, SourceLocation
from executor_client.handlers.declarations import MEMBERS, SCHEDULES, Declaration
from executor_client.handlers.registry import Handler

FORMAT = 1


class DeclaredJobs:
    """The handlers that declare a job, under the AppName of their executor group."""

    def __init__(self, handlers: Collection[Handler], app_name: str) -> None:
        self.app_name = app_name
        #: key -> handler
        self.handlers: Mapping[str, Handler] = {
            f"{app_name}/{handler.name}": handler for handler in handlers if handler.declaration is not None
        }

    def document(self, *, with_group: bool) -> dict[str, Any]:
        """Return the document; ``with_group``: it also creates the group, with default values."""
        jobs = {
            key: {"handler": handler.name, **handler.declaration.members}
            for key, handler in self.handlers.items()
            if handler.declaration is not None
        }
        return {
            "format": FORMAT,
            "groups": {self.app_name: {}} if with_group else {},
            "jobs": jobs,
            "channels": {},
        }

    def error(self, error: FieldError) -> CodeError:
        """Return an error of the API as one at the handler that names the argument of ``@job``."""
        name = error.field.removeprefix("document.").removeprefix("jobs.")
        keys = [key for key in self.handlers if name == key or name.startswith(f"{key}.")]
        if not keys:
            return CodeError(None, str(error))
        key = max(keys, key=len)
        handler = self.handlers[key]
        member = name.removeprefix(key).removeprefix(".")
        prefix = f"{_argument(member, handler.declaration)}: " if member else ""
        return CodeError(location_of(handler), f"{handler.name}: {prefix}{error.reason}")


def location_of(handler: Handler) -> SourceLocation | None:
    """Return the source location of a handler's function; None for a function without code."""
    function = inspect.unwrap(handler.function)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    path = Path(code.co_filename)
    display_path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return SourceLocation(str(display_path), code.co_firstlineno, 1)


def _argument(member: str, declaration: Declaration | None) -> str:
    """Return the argument of ``@job`` that sets a member of the API."""
    if member in ("schedule", "schedule_type"):
        terms = declaration.terms if declaration is not None else {}
        return next((name for name in SCHEDULES if name in terms), member)
    head, dot, rest = member.partition(".")
    return {value: name for name, value in MEMBERS.items()}.get(head, head) + dot + rest
