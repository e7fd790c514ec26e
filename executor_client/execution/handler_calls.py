"""Handler calls: hooks, output capture, tracebacks and forks, in job threads, child processes and tests."""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from executor_client.capture.capture import renew
from executor_client.handlers.registry import Handler
from executor_client.runs.context import JobContext, as_current_run
from executor_client.runs.run import Work
from executor_client.wire.errors import Interruption, RunFailed


def call_handler(context: JobContext, work: Work, hooks: Handler | None = None) -> BaseException | None:
    """Call the handler of a run in this thread; return its exception, whose traceback is in the log.

    ``hooks`` is the handler whose init and destroy are called too. Never raises. A process that the handler
    has forked ends here, with the exit code that a program would have.
    """
    renew()
    process = os.getpid()
    context._begin_output()
    error: BaseException | None = None
    try:
        with as_current_run(context):
            _call(context, work, hooks)
    except BaseException as exc:
        error = exc
    is_forked = os.getpid() != process
    if error is not None and not isinstance(error, (RunFailed, SystemExit) if is_forked else RunFailed):
        context._write(traceback_of(error))
    context._end_output()
    if is_forked:
        os._exit(_exit_code(error))
    return error


def _exit_code(error: BaseException | None) -> int:
    """Return the exit code of a program that this exception ends."""
    code = error.code if isinstance(error, SystemExit) else error
    return 0 if code is None else code & 0xFF if isinstance(code, int) else 1


def _call(context: JobContext, work: Work, hooks: Handler | None) -> None:
    """Call init, the work and destroy; errors in hooks are logged only, the end of the run ends them too."""
    if hooks is None:
        work.run()
        return

    def report(error: BaseException) -> None:
        if isinstance(error, Interruption):
            raise error
        context.log_exception(error)

    call_hook(hooks.init, report)
    try:
        work.run()
    finally:
        call_hook(hooks.destroy, report)


def call_hook(hook: Callable[[], Any] | None, report: Callable[[BaseException], object]) -> None:
    """Call an init or destroy hook; pass an exception, ``sys.exit`` included, to ``report``.

    A process that the hook has forked ends here with an exception, as it would without this thread.
    """
    if hook is None:
        return
    process = os.getpid()
    try:
        hook()
    except BaseException as exc:
        if os.getpid() != process:
            os._exit(_exit_code(exc))
        report(exc)


def traceback_of(error: BaseException) -> str:
    """Return the traceback of a handler's error, with causes and notes, starting at the handler's frame."""
    frame = error.__traceback__
    here = Path(__file__).parents[1]
    while (
        frame is not None
        and here in Path(frame.tb_frame.f_code.co_filename).parents
        and frame.tb_next is not None
    ):
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame)).rstrip("\n")
