"""Import of handler modules named on the command line: ``myapp.jobs``, or a file ``jobs.py``."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from executor_client.executor import Executor, for_handlers_only
from executor_client.runs.run import describe
from executor_client.wire.errors import StartRefused

SUFFIX = ".py"


def import_handlers(names: Sequence[str]) -> list[Executor]:
    """Import modules, up to the line that starts an executor; return the executors; raise StartRefused."""
    executors: list[Executor] = []
    _search_first(Path.cwd())
    for name in names:
        module = _module_of(name)
        try:
            with for_handlers_only() as module_executors:
                importlib.import_module(module)
            executors += module_executors
        except StartRefused:
            raise
        except (Exception, SystemExit) as exc:
            raise StartRefused(f"cannot import {name}: {_reason(exc, module)}") from exc
    return executors


def _reason(error: BaseException, module: str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
        return "there is no such module here; a file is named with its suffix, such as jobs.py"
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}:{error.lineno})"
    return describe(error)


def _module_of(name: str) -> str:
    """Return the module of a name; a file is made importable, together with the packages that contain it."""
    if not name.endswith(SUFFIX):
        return name
    path = Path(name).resolve()
    if not path.is_file():
        raise StartRefused(f"cannot import {name}: there is no such file")
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    _search_first(folder)
    return ".".join(parts)


def _search_first(folder: Path) -> None:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
