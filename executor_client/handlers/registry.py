"""Handler registry: ``@job`` registers functions, executors look them up by name."""

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from executor_client.handlers.declarations import Declaration, Terms, declare
from executor_client.handlers.parameter_types import UnsupportedAnnotation
from executor_client.handlers.parameters import Parameters
from executor_client.wire.errors import HandlerConflict, InvalidParameters

if TYPE_CHECKING:
    from typing_extensions import Unpack  # typing has it from Python 3.11 on

#: attribute of a decorated method until ``register`` is called with its instance
_MARK = "__executor_client_job__"

Hook = Callable[[], Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """Handler: a named function with its hooks.

    Compared by identity, so registering it again replaces the thread of its job.
    """

    name: str
    #: may be ``async def``
    function: Callable[..., Any]
    #: hooks, called in the job thread when it starts and when it ends
    init: Hook | None = None
    destroy: Hook | None = None
    #: run in a child process, which can always be killed
    process: bool = False
    #: terms of its job, for ``python -m executor_client plan``; None: the console's alone
    declaration: Declaration | None = None
    #: arguments of the function, None if it is called without any
    parameters: Parameters | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        try:
            parameters = Parameters.of(self.function)
        except UnsupportedAnnotation as exc:
            raise HandlerConflict(f"job handler {self.name!r}: {'.'.join(self.origin)}: {exc}") from exc
        object.__setattr__(self, "parameters", parameters)

    def arguments(self, text: str | None) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments for a parameter text; raise InvalidParameters."""
        return self.parameters.read(text or "") if self.parameters else ([], {})

    def parameters_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of an object with the parameters, None for a function without arguments."""
        return self.parameters.schema() if self.parameters else None

    @property
    def origin(self) -> tuple[str, str]:
        """Return module and qualified name of the function."""
        return getattr(self.function, "__module__", ""), getattr(
            self.function, "__qualname__", repr(self.function)
        )


class HandlerRegistry:
    """Handlers by name. ``registry`` is the default instance, used by ``@job``; tests may create others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[str, Handler] = {}
        #: decorated methods without a registered instance: qualified name of the class -> handler name
        self._unbound: dict[str, str] = {}

    def job(
        self,
        name: str,
        *,
        init: Hook | str | None = None,
        destroy: Hook | str | None = None,
        process: bool = False,
        **terms: "Unpack[Terms]",
    ) -> Callable[[F], F]:
        """Register the decorated function as the handler ``name``.

        The function may be ``async def``. Its arguments, if any, are filled from the job's parameter by their
        annotations; ``context`` has the text. Returning means success, a returned value is the message, an
        exception means failure. ``init`` and ``destroy`` run at the start and end of the job thread. A
        decorated method becomes a handler with ``register(instance)``; its hooks are names of methods. The
        other keywords are terms of its job (``cron``, ``every``, ``retry``, ``owner``, …, see
        ``declarations.Terms``), which only ``plan`` and ``apply`` of the command line send to a console.
        Raises HandlerConflict for a blank or taken name, an argument whose annotation is not supported,
        an ``async def`` hook and an invalid term.
        """
        declaration = declare(name, terms)

        def decorate(function: F) -> F:
            owner = getattr(function, "__qualname__", "").rpartition(".")[0]
            if owner and not inspect.ismethod(function) and not owner.endswith("<locals>"):
                target = function.__func__ if isinstance(function, staticmethod | classmethod) else function
                setattr(target, _MARK, (name, init, destroy, process, declaration))
                with self._lock:
                    self._unbound[f"{function.__module__}.{owner}"] = name
            else:
                hooks = (_as_hook(init), _as_hook(destroy))
                self.add(Handler(name, function, *hooks, process, declaration))
            return function

        return decorate

    def register(self, instance: object) -> None:
        """Register all methods of this object that are decorated with ``@job``."""
        for kind in type(instance).__mro__:
            with self._lock:
                self._unbound.pop(f"{kind.__module__}.{kind.__qualname__}", None)
        for attribute in dir(type(instance)):
            mark = getattr(getattr(type(instance), attribute), _MARK, None)
            if mark is not None:
                name, init, destroy, process, declaration = mark
                if process:
                    raise HandlerConflict(
                        f"job handler {name!r}: process=True requires a module-level function, not a method"
                    )
                hooks = [
                    _as_hook(getattr(instance, hook) if isinstance(hook, str) else hook)
                    for hook in (init, destroy)
                ]
                method = getattr(instance, attribute)
                self.add(Handler(name, method, hooks[0], hooks[1], declaration=declaration))

    def add(self, handler: Handler) -> None:
        """Add a handler; the same function, from a reloaded module, replaces the earlier one."""
        _require_usable(handler)
        with self._lock:
            current = self._handlers.get(handler.name)
            if current is not None and current.origin != handler.origin:
                raise HandlerConflict(
                    f"job handler {handler.name!r} naming conflicts: {'.'.join(current.origin)},"
                    f" {'.'.join(handler.origin)}"
                )
            self._handlers[handler.name] = handler

    def find(self, name: str) -> Handler | None:
        """Return the handler of this name, or None."""
        with self._lock:
            return self._handlers.get(name)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        with self._lock:
            return sorted(self._handlers)

    def schemas(self) -> dict[str, Any]:
        """Return name -> JSON Schema of the parameters, for the handlers that declare parameters."""
        with self._lock:
            handlers = sorted(self._handlers.items())
        schema_by_name = {
            name: getattr(handler, "parameters_schema", lambda: None)() for name, handler in handlers
        }
        return {name: schema for name, schema in schema_by_name.items() if schema is not None}

    def require_bound(self) -> None:
        """Raise HandlerConflict if a class with ``@job`` methods has no registered instance."""
        with self._lock:
            unbound = dict(self._unbound)
        for owner, name in unbound.items():
            raise HandlerConflict(
                f"job handler {name!r} is a method of {owner}:"
                " call executor_client.register() with an instance"
            )


def _as_hook(hook: Hook | str | None) -> Hook | None:
    if isinstance(hook, str):
        raise HandlerConflict(f"hook {hook!r}: names are for methods only; pass the function itself")
    if inspect.iscoroutinefunction(hook):
        name = getattr(hook, "__name__", repr(hook))
        raise HandlerConflict(f"hook {name!r}: hooks must be plain functions, not async def")
    return hook


def _require_usable(handler: Handler) -> None:
    if not handler.name.strip():
        raise HandlerConflict(f"job handler name must not be blank: {'.'.join(handler.origin)}")
    if handler.process and not handler.origin[1].isidentifier():
        raise HandlerConflict(
            f"job handler {handler.name!r}: process=True requires a module-level function,"
            f" not {'.'.join(handler.origin)}"
        )
    _require_readable(handler)


def _require_readable(handler: Handler) -> None:
    """Refuse a declared parameter that the function cannot take: every run would fail.

    One with placeholders is another text in each run, as the console fills it in.
    """
    param = handler.declaration.terms.get("param") if handler.declaration is not None else None
    if param is None or "${" in param:
        return
    try:
        handler.arguments(param)
    except InvalidParameters as exc:
        problems = "; ".join(str(exc).splitlines())
        raise HandlerConflict(f"job handler {handler.name!r}: param {param!r}: {problems}") from exc


#: default registry of ``@job`` and of executors
registry = HandlerRegistry()
job = registry.job
register = registry.register
