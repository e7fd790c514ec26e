"""Interruptible call: raise an exception in another thread while it runs a given function, never after it.

CPython delivers the exception between two bytecodes: a loop ends at once, a call into C (``time.sleep``, a
socket without a timeout) only when it returns.
"""

import ctypes
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from executor_client.wire.errors import Interruption


def _raise_in(thread_id: int, kind: type[BaseException] | None) -> None:
    """Make an exception pending in a thread; None clears a pending one."""
    exception = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), exception)


class InterruptibleCall:
    """Function call that other threads can interrupt.

    The calling thread takes no lock, because an exception could arrive while it holds one. ``_open`` and
    ``_raising`` are a handshake: the interrupting thread sets ``_raising`` before it reads ``_open``, the
    calling thread clears ``_open`` before it reads ``_raising``.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._thread_id = 0
        self._open = False
        self._raising = False
        self._raisers = threading.Lock()

    def run(self) -> tuple[Any, BaseException | None]:
        """Call the function in this thread; return its value and the exception raised, or None for it."""
        self._thread_id = threading.get_ident()
        value: Any = None
        error: BaseException | None = None
        try:
            self._open = True
            try:
                value = self._function()
            except BaseException as exc:
                error = exc
            self._close()
        except Interruption as exc:  # raised after the function returned, before _close()
            error = error or exc
            self._close_despite_interruption()
        return value, error

    def interrupt(self, kind: type[Interruption]) -> bool:
        """Raise in the calling thread; False if the function is not running."""
        with self._raisers:
            self._raising = True
            try:
                if self._open:
                    _raise_in(self._thread_id, kind)
                    return True
                return False
            finally:
                self._raising = False

    def stack(self) -> list[str]:
        """Return where the function is, a text for each frame; empty if it is not running."""
        frame = sys._current_frames().get(self._thread_id) if self._open else None
        frames = traceback.extract_stack(frame) if frame is not None else []
        own_frames = [index for index, entry in enumerate(frames) if entry.filename == __file__]
        return traceback.format_list(frames[own_frames[-1] + 1 :]) if own_frames else []

    def _close(self) -> None:
        self._open = False
        while self._raising:
            pass
        _raise_in(self._thread_id, None)

    def _close_despite_interruption(self) -> None:
        while True:
            try:
                return self._close()
            except Interruption:
                continue
