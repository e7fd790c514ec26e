"""GLUE scripts: source sent with the trigger, saved as one file per version and run as a child process.

Arguments are job parameter, shard index and shard total. Exit code 0 is success. Output goes to the job log.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from executor_client.config.script_limits import OutputTail, ScriptLimits
from executor_client.processes.tree import (
    LEFT_RUNNING,
    Command,
    ProcessTree,
    allowed_environment,
    python_program,
)
from executor_client.runs.context import JobContext
from executor_client.wire.errors import RunFailed

#: folders below the log root
SOURCE_FOLDER = "gluesource"
WORK_FOLDER = "gluework"

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Language:
    """Script language and its interpreters."""

    #: name in ``allow_glue``
    name: str
    #: name in XXL-JOB's messages
    title: str
    #: interpreters in order of preference; empty: the Python of this executor
    programs: tuple[str, ...]
    suffix: str


LANGUAGES = {
    "GLUE_SHELL": Language("shell", "GLUE(Shell)", ("bash", "sh"), ".sh"),
    "GLUE_PYTHON": Language("python", "GLUE(Python)", (), ".py"),
    "GLUE_PHP": Language("php", "GLUE(PHP)", ("php",), ".php"),
    "GLUE_NODEJS": Language("nodejs", "GLUE(Nodejs)", ("node", "nodejs"), ".js"),
    "GLUE_POWERSHELL": Language("powershell", "GLUE(PowerShell)", ("pwsh", "powershell"), ".ps1"),
}


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """Root folder of scripts and their work folders, and limits of each script."""

    root: Path
    limits: ScriptLimits


@dataclass(frozen=True, slots=True)
class GlueScript:
    """One version of a job's script, identified by its update time and not by its source."""

    job_id: int
    glue_type: str
    updatetime: int
    source: str

    def same_version(self, other: object) -> bool:
        """Return whether ``other`` is the same version of the same script."""
        version = (self.job_id, self.glue_type, self.updatetime)
        return isinstance(other, GlueScript) and version == (other.job_id, other.glue_type, other.updatetime)

    def prepare(self, root: Path) -> Path:
        """Write the script file if needed, delete older versions, return the path; raise ``OSError``."""
        folder = root / SOURCE_FOLDER
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        path = folder / f"{self.job_id}_{self.updatetime}{LANGUAGES[self.glue_type].suffix}"
        for old in folder.glob(f"{self.job_id}_*"):
            if old != path:
                old.unlink(missing_ok=True)
        # A byte-order mark would become part of the first command.
        source = self.source.removeprefix("\ufeff").replace("\r\n", "\n")
        content = source.encode("utf-8", "replace")
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb") as stream:
                stream.write(content)
            draft.replace(path)
        return path

    def command(self, root: Path, context: JobContext) -> Command:
        """Return the command, with a work folder per job; raise RunFailed without an interpreter."""
        script = self.prepare(root)
        (root / WORK_FOLDER).mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        folder = root / WORK_FOLDER / str(self.job_id)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        environment = allowed_environment(os.environ) | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        arguments = (context.param or "", str(context.shard_index), str(context.shard_total))
        return Command((self._program(), str(script.resolve()), *arguments), folder, environment)

    def _program(self) -> str:
        language = LANGUAGES[self.glue_type]
        if not language.programs:
            return python_program()
        program = next((path for path in map(shutil.which, language.programs) if path), None)
        if program is None:
            raise RunFailed(f"{language.title}: {language.programs[0]} is not installed on this host")
        return program


def run_script(
    script: GlueScript,
    settings: ScriptSettings,
    context: JobContext,
    on_start: Callable[[ProcessTree], None],
) -> None:
    """Run a script and wait; raise RunFailed unless it exits with 0. ``on_start`` gets the process tree."""
    try:
        command = script.command(settings.root, context)
        context.log("script %s", command.argv[1])
        tree = ProcessTree(settings.limits.apply_to(command))
    except (OSError, ValueError) as exc:
        raise RunFailed(f"cannot start the script: {exc}") from exc
    on_start(tree)
    output = OutputTail(context._write)
    code = tree.follow(output.write)
    if tree.has_left_processes:
        context.log(LEFT_RUNNING)
    if code != 0:
        limit = settings.limits.find_reached(code, output.text)
        raise RunFailed(f"script exit value({code}) is failed" + (f": {limit}" if limit else ""))
