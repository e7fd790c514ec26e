"""Child channel: socket over which a child process reports to its executor.

One JSON object per line: ``{"progress": "…"}``; ``{"processes": "…"}``, the programs that it runs; and
``{"checkpoint": "…"}``, which is answered with ``1`` once it is on disk, or with ``0``. An empty line hands
over a file descriptor: the output of a program that has ended, to which background processes still print.
"""

import contextlib
import json
import os
import socket
import threading
from typing import Any

from executor_client.processes.tree import RunProcesses, discard_rest
from executor_client.runs.context import JobContext
from executor_client.wire.clock import monotonic_s
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.run_reports import Progress, usable_checkpoint

#: least time between two progress messages of a child, in seconds
PROGRESS_PERIOD_S = 0.2
_READ_BYTES = 65_536
#: file descriptors of one message
_DESCRIPTORS_MAX = 1


class ChildChannel:
    """The executor's end: applies what the child reports to the run's context, until the end of the block."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._parent_end, self._child_end = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="child-channel", daemon=True)

    def __enter__(self) -> "ChildChannel":
        return self

    def __exit__(self, *error: object) -> None:
        self._child_end.close()
        if self._thread.ident is not None:
            self._thread.join(1)  # a descendant of the child may still hold its end
        with contextlib.suppress(OSError):
            self._parent_end.shutdown(socket.SHUT_RDWR)
        self._parent_end.close()

    @property
    def descriptor(self) -> int:
        """Descriptor for the child to inherit."""
        return self._child_end.fileno()

    def start(self) -> None:
        """Listen; call after the child has inherited its end."""
        self._child_end.close()
        self._thread.start()

    def _listen(self) -> None:
        buffer, chunk = b"", b"\n"
        with contextlib.suppress(OSError, ValueError):
            while chunk:
                chunk, descriptors, _, _ = socket.recv_fds(self._parent_end, _READ_BYTES, _DESCRIPTORS_MAX)
                for descriptor in descriptors:
                    discard_rest(descriptor)
                    os.close(descriptor)
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in filter(None, lines):
                    self._apply(json.loads(line))

    def _apply(self, message: dict[str, Any]) -> None:
        if (progress := Progress.parse(message.get("progress"))) is not None:
            self._context.current_progress = progress
        if isinstance(identities := message.get("processes"), str):
            self._context._processes.set_child(identities)
        if (text := usable_checkpoint(message.get("checkpoint"))) is not None:
            self._parent_end.sendall(b"1" if self._context.keep_checkpoint(text) else b"0")


class ChildReporter:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._lock = threading.Lock()
        self._sent_s = -PROGRESS_PERIOD_S
        self._unsent: Progress | None = None

    def attach(self, context: JobContext) -> None:
        """Report the checkpoints, progress and processes of this run."""
        context.keep_checkpoint, context.report_progress = self.keep_checkpoint, self.report_progress
        context._processes = RunProcesses(self.report_processes)
        context._processes.discard = self.hand_over

    def keep_checkpoint(self, text: str) -> bool:
        """Return whether the executor has stored the checkpoint."""
        with self._lock:
            return self._send("checkpoint", text) and self._socket.recv(1) == b"1"

    def report_progress(self, progress: Progress) -> None:
        """Send a progress, unless the last one was sent just now."""
        with self._lock:
            if monotonic_s() - self._sent_s < PROGRESS_PERIOD_S:
                self._unsent = progress
                return
            self._sent_s, self._unsent = monotonic_s(), None
            self._send("progress", progress.to_text())

    def report_processes(self, identities: str) -> bool:
        """Send the programs that the handler has started; False if the executor has ended."""
        with self._lock:
            return self._send("processes", identities)

    def hand_over(self, descriptor: int) -> None:
        """Let the executor read the rest of an output, as this process ends with its handler."""
        with self._lock:
            try:
                socket.send_fds(self._socket, [b"\n"], [descriptor])
            except OSError:  # the executor has ended
                discard_rest(descriptor)

    def close(self) -> None:
        """Send the last progress and end."""
        with self._lock:
            if self._unsent is not None:
                self._send("progress", self._unsent.to_text())
            self._socket.close()

    def _send(self, name: str, text: str) -> bool:
        try:
            self._socket.sendall(dump_json({name: text}) + b"\n")
        except OSError:
            return False
        return True
