"""GLUE scripts: source that travels with the trigger, kept as a file for each version and run as a child process.

Arguments are the job parameter, the shard index and the shard total; exit code 0 is success; output goes into the job log.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from executor_client.context import JobContext
from executor_client.errors import RunFailed
from executor_client.processes import Command, ProcessTree, allowed_environment

#: folders below the log root
SOURCE_FOLDER = "gluesource"
WORK_FOLDER = "gluework"

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Language:
    """A script language: how it is allowed, named and started."""

    #: what ``allow_glue`` calls it
    name: str
    #: what the original's refusal calls it
    title: str
    #: programs to try, first found wins; empty: the Python this executor runs on
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
class GlueScript:
    """One version of one job's script. Compared by ``same_version``: its source does not decide."""

    job_id: int
    glue_type: str
    updatetime: int
    source: str

    def same_version(self, other: object) -> bool:
        """True if ``other`` is the same version of the same script."""
        mine = (self.job_id, self.glue_type, self.updatetime)
        return isinstance(other, GlueScript) and mine == (other.job_id, other.glue_type, other.updatetime)

    def prepare(self, root: Path) -> Path:
        """Write the script's file if it is not there yet, removing former versions; return it. Raise ``OSError``."""
        folder = root / SOURCE_FOLDER
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        path = folder / f"{self.job_id}_{self.updatetime}{LANGUAGES[self.glue_type].suffix}"
        for old in folder.glob(f"{self.job_id}_*"):
            if old != path:
                old.unlink(missing_ok=True)
        content = self.source.replace("\r\n", "\n").encode("utf-8", "replace")
        if path.is_symlink() or not path.is_file() or path.read_bytes() != content:
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE), "wb") as stream:
                stream.write(content)
            draft.replace(path)
        return path

    def command(self, root: Path, context: JobContext) -> Command:
        """Return how to run it, in a folder of the job's own; raise RunFailed if its language is not installed."""
        script = self.prepare(root)
        folder = root / WORK_FOLDER / str(self.job_id)
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        environment = allowed_environment(os.environ) | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        arguments = (context.param or "", str(context.shard_index), str(context.shard_total))
        return Command((self._program(), str(script.resolve()), *arguments), folder, environment)

    def _program(self) -> str:
        language = LANGUAGES[self.glue_type]
        if not language.programs:
            return sys.executable
        found = next((path for path in map(shutil.which, language.programs) if path), None)
        if found is None:
            raise RunFailed(f"{language.title}: {language.programs[0]} is not installed on this machine")
        return found


def run_script(
    script: GlueScript, root: Path, context: JobContext, on_started: Callable[[ProcessTree], None]
) -> None:
    """Run a script to its end; raise RunFailed unless it exits with 0. ``started`` gets the process at once."""
    try:
        command = script.command(root, context)
        context.log("script %s", command.argv[1])
        tree = ProcessTree(command)
    except (OSError, ValueError) as exc:
        raise RunFailed(f"the script cannot be started: {exc}") from exc
    on_started(tree)
    code = tree.follow(context._write)
    if code != 0:
        raise RunFailed(f"script exit value({code}) is failed")
