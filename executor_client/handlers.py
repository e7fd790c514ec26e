"""``@job``: how a function becomes a handler, and where handlers are found by name."""

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from executor_client.errors import HandlerConflict

#: attribute on a method that waits for its object, see ``register``
_MARK = "__executor_client_job__"

Hook = Callable[[], Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Handler:
    """A named function and what belongs to it; compared by identity, so a re-registered one replaces a job's thread."""

    name: str
    #: called without arguments; may be ``async def``
    function: Callable[[], Any]
    #: called in the job's thread when it starts and when it ends
    init: Hook | None = None
    destroy: Hook | None = None
    #: run each time in a child process that can be killed for certain
    process: bool = False

    @property
    def origin(self) -> tuple[str, str]:
        """Module and qualified name of the function."""
        return getattr(self.function, "__module__", ""), getattr(
            self.function, "__qualname__", repr(self.function)
        )


class HandlerRegistry:
    """Handlers by name. One instance, ``registry``, holds what ``@job`` finds; tests may make their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[str, Handler] = {}
        #: marked methods whose object has not been registered yet: qualified name of the class -> handler name
        self._unbound: dict[str, str] = {}

    def job(
        self,
        name: str,
        *,
        init: Hook | str | None = None,
        destroy: Hook | str | None = None,
        process: bool = False,
    ) -> Callable[[F], F]:
        """Make the decorated function the handler ``name``.

        The function takes no arguments (parameter and shard come from ``context``) and may be ``async def``. Returning means success,
        a returned text is the message, an exception means failure. ``init`` and ``destroy`` run at the start and end of the job's
        thread. On a method this only leaves a mark (hooks are then names of methods): ``register(instance)`` makes it a handler.
        Raises HandlerConflict for a blank or taken name and for a function that needs arguments.
        """

        def decorate(function: F) -> F:
            owner = getattr(function, "__qualname__", "").rpartition(".")[0]
            if owner and not inspect.ismethod(function) and not owner.endswith("<locals>"):
                setattr(function, _MARK, (name, init, destroy, process))
                with self._lock:
                    self._unbound[f"{function.__module__}.{owner}"] = name
            else:
                self.add(Handler(name, function, _as_hook(init), _as_hook(destroy), process))
            return function

        return decorate

    def register(self, instance: object) -> None:
        """Make every method of this object that carries ``@job`` a handler."""
        for kind in type(instance).__mro__:
            with self._lock:
                self._unbound.pop(f"{kind.__module__}.{kind.__qualname__}", None)
        for attribute in dir(type(instance)):
            mark = getattr(getattr(type(instance), attribute), _MARK, None)
            if mark is not None:
                name, init, destroy, process = mark
                if process:
                    raise HandlerConflict(
                        f"job handler {name!r}: process=True needs a function of a module, not a method"
                    )
                hooks = [
                    _as_hook(getattr(instance, hook) if isinstance(hook, str) else hook)
                    for hook in (init, destroy)
                ]
                self.add(Handler(name, getattr(instance, attribute), hooks[0], hooks[1]))

    def add(self, handler: Handler) -> None:
        """Take a handler; the same function again (a reloaded module) replaces its former self."""
        _require_usable(handler)
        with self._lock:
            known = self._handlers.get(handler.name)
            if known is not None and known.origin != handler.origin:
                raise HandlerConflict(
                    f"job handler {handler.name!r} naming conflicts: {'.'.join(known.origin)}, {'.'.join(handler.origin)}"
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

    def require_bound(self) -> None:
        """Raise HandlerConflict if a class with ``@job`` methods has no registered object."""
        with self._lock:
            unbound = dict(self._unbound)
        for owner, name in unbound.items():
            raise HandlerConflict(
                f"job handler {name!r} is a method of {owner}: call executor_client.register() with an object of it"
            )


def _as_hook(hook: Hook | str | None) -> Hook | None:
    if isinstance(hook, str):
        raise HandlerConflict(f"hook {hook!r}: a name is only possible on methods; give the function itself")
    return hook


def _require_usable(handler: Handler) -> None:
    if not handler.name.strip():
        raise HandlerConflict(f"job handler name must not be blank: {'.'.join(handler.origin)}")
    try:
        inspect.signature(handler.function).bind()
    except TypeError as exc:
        text = f"job handler {handler.name!r}: {'.'.join(handler.origin)} must be callable without arguments ({exc})"
        raise HandlerConflict(f"{text}; the parameter is context.param") from exc
    if handler.process and not handler.origin[1].isidentifier():
        raise HandlerConflict(
            f"job handler {handler.name!r}: process=True needs a function of a module, not {'.'.join(handler.origin)}"
        )


#: what ``@job`` fills and an executor serves unless it is given another registry
registry = HandlerRegistry()
job = registry.job
register = registry.register
