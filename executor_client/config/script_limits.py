"""Limits of GLUE scripts: CPU time, memory, file size, processes, open files."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from executor_client.processes.tree import Command, python_program

MIB = 1024 * 1024
#: default limit of a written file: large enough for the dump of a database
FILE_MAX_MB = 10_240
#: a script that ignores SIGXCPU is killed after further seconds of CPU time
CPU_GRACE_S = 5
#: characters of output that are searched for the message of a limit
TAIL_LENGTH = 4_096
#: arguments of Python: without site packages and variables of the environment it starts in 10 ms
_LAUNCHER = ("-I", "-S", str(Path(__file__).parents[1] / "processes" / "limits_launcher.py"))
#: messages of systems, shells, Perl and Go only: a server to which a script uploads a file has similar ones
_FILE_WORDS = "|".join(
    (
        r": File too large\r?$",
        r"[Ee]rrno[ =]27\b",
        r"os error 27\b",
        r"EFBIG",
        r"(^|: +\d+ )File size limit exceeded",
        r"(^|: )File too large at .+ line \d+\.",
        r"(\bwrite /.+|(^|[:\d] )write \S+): file too large\r?$",
    )
)


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits of each process of a script; 0: none."""

    cpu_s: int = 0
    #: address space
    memory_mb: int = 0
    #: each written file
    file_mb: int = FILE_MAX_MB
    #: processes and threads of the executor's user in all
    processes: int = 0
    open_files: int = 0

    def apply_to(self, command: Command) -> Command:
        """Return a command that sets the limits and becomes the given one; raise RunFailed without Python.

        Core dumps are disabled.
        """
        settings = ["RLIMIT_CORE=0:0"]
        for kind in KINDS:
            value = kind.value_of(self) * kind.factor
            if value:
                settings.append(f"{kind.resource}={value}:{value + kind.grace}")
        return replace(command, argv=(python_program(), *_LAUNCHER, *settings, "--", *command.argv))

    def find_reached(self, code: int, output: str) -> str:
        """Return the limit that ended a script, by exit code (negative: a signal) and output; "" for none."""
        for kind in KINDS:
            value = kind.value_of(self)
            text = f"{kind.title} limit of {value}{kind.unit} ({kind.variable})"
            if value and kind.ended_by is not None and code in (-kind.ended_by, 128 + kind.ended_by):
                return f"{text} reached"
            if value and re.search(kind.words, output, re.MULTILINE):
                return f"{text} probably reached"
        return ""


@dataclass(frozen=True, slots=True)
class LimitKind:
    """A limit of the operating system, its setting, and what a program prints when it reaches it."""

    title: str
    unit: str
    variable: str
    resource: str
    value_of: Callable[[ScriptLimits], int]
    #: pattern of the program's message
    words: str
    factor: int = 1
    grace: int = 0
    ended_by: signal.Signals | None = None


KINDS = (
    LimitKind(
        title="CPU time",
        unit=" s",
        variable="XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS",
        resource="RLIMIT_CPU",
        value_of=lambda limits: limits.cpu_s,
        grace=CPU_GRACE_S,
        ended_by=signal.SIGXCPU,
        words="(?i)cpu time limit exceeded",
    ),
    LimitKind(
        title="file size",
        unit=" MiB",
        variable="XXL_JOB_EXECUTOR_SCRIPT_FILE_MB",
        resource="RLIMIT_FSIZE",
        value_of=lambda limits: limits.file_mb,
        factor=MIB,
        ended_by=signal.SIGXFSZ,
        words=_FILE_WORDS,
    ),
    LimitKind(
        title="memory",
        unit=" MiB",
        variable="XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB",
        resource="RLIMIT_AS",
        value_of=lambda limits: limits.memory_mb,
        factor=MIB,
        words="(?i)memoryerror|cannot allocate memory|out of memory|bad_alloc|failed to map segment",
    ),
    LimitKind(
        title="process",
        unit="",
        variable="XXL_JOB_EXECUTOR_SCRIPT_PROCESSES",
        resource="RLIMIT_NPROC",
        value_of=lambda limits: limits.processes,
        words="(?i)resource temporarily unavailable|can't start new thread|cannot fork",
    ),
    LimitKind(
        title="open file",
        unit="",
        variable="XXL_JOB_EXECUTOR_SCRIPT_OPEN_FILES",
        resource="RLIMIT_NOFILE",
        value_of=lambda limits: limits.open_files,
        words="(?i)too many open files",
    ),
)


class OutputTail:
    """Copies output to a log and keeps its last characters."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self.text = ""

    def write(self, text: str) -> None:
        """Write a piece of output."""
        self._write(text)
        self.text = (self.text + text)[-TAIL_LENGTH:]
