"""Kinds of work: a run as a function in the job thread, as a child process, or as a script."""

import asyncio
import inspect
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from executor_client.capture.capture import copies_records
from executor_client.config.config import Timing
from executor_client.execution.child_channel import ChildChannel
from executor_client.execution.event_loop import EventLoop, LoopTask
from executor_client.execution.glue import GlueScript, ScriptSettings, run_script
from executor_client.execution.interrupt import InterruptibleCall
from executor_client.handlers.registry import Handler
from executor_client.logs.lines import stamp_lines
from executor_client.processes.tree import LEFT_RUNNING, Command, ProcessTree, RunProcesses, python_program
from executor_client.runs.context import JobContext
from executor_client.runs.results import message_of
from executor_client.runs.run import Run
from executor_client.wire.errors import Interruption, RunFailed
from executor_client.wire.start_zone import start_tz


class FunctionWork:
    """Function in the calling thread, or coroutine on the event loop, for which the calling thread waits."""

    def __init__(
        self, handler: Handler, context: JobContext, timing: Timing, loop: EventLoop | None = None
    ) -> None:
        """``loop`` is the executor's; without it a coroutine gets its own."""
        self.grace_s = timing.cooperative_s
        self._handler = handler
        self._context = context
        self._loop = loop
        self._call: InterruptibleCall | None = None
        self._task: LoopTask | None = None
        self._is_cancelled = False

    def run(self) -> None:
        """Call the handler with its arguments; a returned value becomes the message."""
        args, kwargs = self._handler.arguments(self._context.param)
        value = self._call_interruptible(partial(self._handler.function, *args, **kwargs))
        # Both checks are needed: until Python 3.11, asyncio takes any generator for a coroutine.
        if asyncio.iscoroutine(value) and inspect.isawaitable(value):
            value = self._wait(value)
        _require_executed(value)
        if self._context.handle_msg is None:
            self._context.handle_msg = self._call_interruptible(lambda: message_of(value))

    def cancel(self, kind: type[Interruption]) -> None:
        """Cancel an async handler's task; a plain function has to watch ``context.cancelled``."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def force(self, kind: type[Interruption]) -> None:
        """Raise an exception in the handler, or cancel its task again, as other tasks share its thread."""
        if self._task is not None and not self._task.completion.done():
            self._task.cancel()
        elif self._call is not None:
            self._call.interrupt(kind)

    def stack(self) -> list[str]:
        """Return where the handler is, a text for each frame."""
        if self._task is not None and not self._task.completion.done():
            return self._task.stack()
        return self._call.stack() if self._call is not None else []

    def _call_interruptible(self, function: Callable[[], Any]) -> Any:
        """Call a function that ``force`` can interrupt."""
        self._call = InterruptibleCall(function)
        value, error = self._call.run()
        if error is not None:
            raise error
        return value

    def _wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        loop = self._loop or EventLoop()
        try:
            self._task = loop.start(coroutine, self._handler.name)
            if self._is_cancelled:
                self._task.cancel()
            value, error = self._task.wait()
        finally:
            if self._loop is None:
                loop.stop()
        if error is not None:
            raise error
        return value


def _require_executed(value: Any) -> None:
    """Raise RunFailed for a generator, and for a coroutine that an ``async def`` handler did not await."""
    kind = "generator" if inspect.isgenerator(value) or inspect.isasyncgen(value) else ""
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        kind = "coroutine"
        value.close()  # or Python warns
    if kind:
        raise RunFailed(f"the handler returned the {kind} {value.__qualname__}, whose code did not run")


class _TreeWork:
    """Base of scripts and child processes: SIGTERM, then SIGKILL, to the whole process tree."""

    def __init__(self, timing: Timing, processes: RunProcesses) -> None:
        self.grace_s = timing.terminate_s
        self._processes = processes
        self._tree: ProcessTree | None = None
        self._is_cancelled = False

    def cancel(self, kind: type[Interruption]) -> None:
        """Send SIGTERM to the tree."""
        self._is_cancelled = True
        if self._tree is not None:
            self._tree.terminate()

    def force(self, kind: type[Interruption]) -> None:
        """Send SIGKILL to the tree."""
        if self._tree is not None:
            self._tree.kill()

    def stack(self) -> list[str]:
        """Return nothing: another process executes it."""
        return []

    def _attach(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._processes.add(tree.identity)
        if self._is_cancelled:
            tree.terminate()


class ScriptWork(_TreeWork):
    """GLUE script."""

    def __init__(
        self,
        script: GlueScript,
        context: JobContext,
        settings: ScriptSettings,
        timing: Timing,
    ) -> None:
        super().__init__(timing, context._processes)
        self._script = script
        self._context = context
        self._settings = settings

    def run(self) -> None:
        """Run the script; raise RunFailed unless it exits with 0."""
        run_script(self._script, self._settings, self._context, self._attach)


class ChildWork(_TreeWork):
    """``process=True`` handler in its own child process, see ``executor_client.execution.child``."""

    def __init__(self, handler: Handler, run: Run, timing: Timing) -> None:
        super().__init__(timing, run.context._processes)
        self._handler = handler
        self._run = run
        self._timing = timing

    def run(self) -> None:
        """Run the handler; task and result are passed through unnamed temporary files."""
        self._handler.arguments(self._run.context.param)  # raises for invalid ones, before a process starts
        with (
            tempfile.TemporaryFile() as task_file,
            tempfile.TemporaryFile() as result_file,
            ChildChannel(self._run.context) as channel,
        ):
            task_file.write(json.dumps(self._task()).encode())
            task_file.flush()
            task_file.seek(0)
            descriptors = (task_file.fileno(), result_file.fileno(), channel.descriptor)
            argv = (python_program(), "-m", "executor_client.execution.child", *map(str, descriptors))
            tree = ProcessTree(Command(argv, Path.cwd(), _child_environment(), descriptors))
            channel.start()
            self._attach(tree)
            code = tree.follow(lambda text: self._run.log.write(stamp_lines(text)))
            self._processes.kill_programs_of_child()
            if tree.has_left_processes:
                self._run.context.log(LEFT_RUNNING)
            result_file.seek(0)
            self._take_result(result_file.read(), code)

    def _task(self) -> dict[str, Any]:
        module, qualname = self._handler.origin
        main, main_path = _main_program() if module == "__main__" else (None, None)
        return {
            "handler": self._handler.name,
            "module": module,
            "qualname": qualname,
            "main": main,
            "main_path": main_path,
            "django": module != "__main__" and _has_loaded_django(),
            "run": self._run.request.to_wire() | {"executorTimeout": 0},  # in a test a fraction
            "log": str(self._run.log.path),
            "cooperative_s": self._timing.cooperative_s,
            "log_level": _routed_level(),
            "sys_path": [entry for entry in sys.path if isinstance(entry, str)],  # Python ignores others
            "variables": {name: os.environ.get(name) for name in ("PYTHONPATH", "TZ")},
        }

    def _take_result(self, result_json: bytes, code: int) -> None:
        if not result_json:
            raise RunFailed(f"the handler's process ended without a result, exit value({code})")
        result = json.loads(result_json)
        self._run.context.result(result["code"], result["msg"])


def _main_program() -> tuple[str | None, str | None]:
    """Return the name of the module that ``python -m`` has started, or the path of the program."""
    main = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", "__main__")  # so for a folder or an archive
    path = getattr(main, "__file__", None)
    return (name, None) if name != "__main__" else (None, str(Path(path).resolve()) if path else None)


def _has_loaded_django() -> bool:
    """Return whether a Django site has loaded its apps here, by settings that a child finds too."""
    apps = getattr(sys.modules.get("django.apps"), "apps", None)
    return bool(getattr(apps, "ready", False)) and "DJANGO_SETTINGS_MODULE" in os.environ


def _routed_level() -> int | None:
    """Return the level of the root logger, None if ``logging`` is not copied into job logs."""
    return logging.getLogger().level if copies_records() else None


def _child_environment() -> dict[str, str]:
    """Return this environment with a PYTHONPATH on which the child finds this package, and its first TZ."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH", ""))))
    overrides = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": path, "TZ": start_tz()}
    return {name: value for name, value in {**os.environ, **overrides}.items() if value is not None}
