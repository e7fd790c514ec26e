"""Executor configuration: read from variables and options, checked before anything is opened."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from executor_client.errors import StartRefused
from executor_client.script_limits import FILE_MAX_MB, ScriptLimits

#: languages ``allow_glue`` may name
GLUE_LANGUAGES = ("python", "shell", "php", "nodejs", "powershell")
#: file in the home that holds the token of a console on the same machine
TOKEN_FILE = "access_token"
#: well-known tokens, refused like those shorter than MIN_TOKEN_LENGTH, except on loopback
REFUSED_TOKENS = frozenset({"default_token"})
MIN_TOKEN_LENGTH = 16
#: a larger limit of scripts would overflow those of the operating system
LIMIT_MAX_DIGITS = 9
#: the token, or a file that holds it
TOKEN_VARIABLES = ("XXL_JOB_ACCESS_TOKEN", "XXL_JOB_ACCESS_TOKEN_FILE")
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
ANY_HOSTS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True)
class Timing:
    """Periods and limits, in seconds unless the name has another unit. Defaults follow XXL-JOB."""

    #: connect and read timeout of a call to an admin
    admin_timeout_s: float = 3.0
    registry_period_s: float = 30.0
    #: shortest and longest delay before results are sent again
    callback_retry_min_s: float = 1.0
    callback_retry_max_s: float = 30.0
    #: an idle job thread ends after this
    idle_limit_s: float = 93.0
    #: grace period of a killed handler; then an exception is raised in it
    cooperative_s: float = 1.0
    #: grace period of a killed script or child process; then its process tree is killed
    terminate_s: float = 5.0
    #: after that a handler that does not end is abandoned and its job continues in a new thread
    abandon_s: float = 10.0
    #: a graceful stop waits this long for running handlers, then kills them
    shutdown_wait_s: float = 30.0
    #: a graceful stop reports results for this long; the rest stays on disk
    drain_s: float = 5.0
    #: finished log ids are kept this long, to recognize duplicates
    dedup_retention_days: int = 30
    #: after a restart, accepted runs older than this are reported as failed instead of started
    restore_max_age_s: float = 86_400.0


@dataclass(frozen=True, slots=True)
class ExecutorConfig:
    """Settings of an executor; ``from_env`` reads the variables, ``check`` validates them."""

    admin_addresses: tuple[str, ...] = ()
    appname: str = ""
    #: address to listen on
    host: str = "127.0.0.1"
    #: 0: a free port
    port: int = 9999
    #: URL to register instead of ``http://host:port/``
    address: str = ""
    #: empty: ``executor-logs`` in the home
    log_path: Path | None = None
    #: below 3: kept forever
    log_retention_days: int = 30
    #: accepted tokens; the first is sent to admins. Two during a token change
    access_tokens: tuple[str, ...] = field(default=(), repr=False)
    #: folder of the journal
    home: Path = Path("instance")
    #: languages of GLUE scripts that may run
    allow_glue: frozenset[str] = frozenset()
    #: limits of each process of a GLUE script, see ScriptLimits; 0: none
    script_cpu_s: int = 0
    script_memory_mb: int = 0
    script_file_mb: int = FILE_MAX_MB
    script_processes: int = 0
    script_open_files: int = 0
    #: serve ``GET /metrics``
    metrics: bool = False
    #: copy a handler's ``logging`` records into its job log
    route_logging: bool = True
    timing: Timing = Timing()

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **settings: Any) -> "ExecutorConfig":
        """Read the ``XXL_JOB_*`` variables; keyword arguments override them.

        Raises StartRefused with one line that names the variable, its value and the expected values.
        """
        environ = os.environ if environ is None else environ
        if "access_tokens" not in settings and all(environ.get(name, "").strip() for name in TOKEN_VARIABLES):
            raise StartRefused(f"{' and '.join(TOKEN_VARIABLES)} are both set: set one of them")
        values: dict[str, Any] = {}
        for variable, (name, parse) in VARIABLES.items():
            text = environ.get(variable, "").strip()
            if text and name not in settings:
                try:
                    values[name] = parse(text)
                except ValueError as exc:
                    raise StartRefused(f"{variable}: {exc}") from exc
        config = cls(**{**values, **settings})
        if config.access_tokens:
            return config
        return cls(
            **{
                **values,
                **settings,
                "access_tokens": read_token_file(config.home / TOKEN_FILE, missing_ok=True),
            }
        )

    def check(self) -> None:
        """Raise StartRefused for the first invalid setting."""
        if not self.appname.strip():
            raise StartRefused("no app name: set XXL_JOB_EXECUTOR_APPNAME or --appname")
        if not self.admin_addresses:
            raise StartRefused(
                "no admin address: set XXL_JOB_ADMIN_ADDRESSES or --admin,"
                " for example http://127.0.0.1:8080/xxl-job-admin"
            )
        for url in (*self.admin_addresses, *([self.address] if self.address else [])):
            if not is_http_url(url):
                raise StartRefused(f"{url!r} is not a URL: http://host:port/ is expected")
        unknown = self.allow_glue.difference(GLUE_LANGUAGES)
        if unknown:
            raise StartRefused(
                f"allow-glue: {', '.join(sorted(unknown))} is not one of {', '.join(GLUE_LANGUAGES)}"
            )
        self._check_token()

    def _check_token(self) -> None:
        """Refuse a weak or missing token on a reachable port: callers could run any handler."""
        weak = [
            token for token in self.access_tokens if len(token) < MIN_TOKEN_LENGTH or token in REFUSED_TOKENS
        ]
        if self.is_loopback or (self.access_tokens and not weak):
            return
        problem = (
            f"the access token is a known default or shorter than {MIN_TOKEN_LENGTH} characters"
            if weak
            else "no access token is set"
        )
        raise StartRefused(
            f"refused to start: {self.host_text} is reachable from other hosts, and {problem};"
            " set XXL_JOB_ACCESS_TOKEN"
        )

    @property
    def host_text(self) -> str:
        """Address of this executor, for messages."""
        return self.address or f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if listening and registered address are both on loopback."""
        registered = urlsplit(self.address).hostname if self.address else self.host
        return self.host in LOOPBACK_HOSTS and registered in LOOPBACK_HOSTS

    @property
    def log_root(self) -> Path:
        """Folder of the job logs and script files."""
        return self.log_path or self.home / "executor-logs"

    @property
    def script_limits(self) -> ScriptLimits:
        """Limits of GLUE scripts."""
        return ScriptLimits(
            self.script_cpu_s,
            self.script_memory_mb,
            self.script_file_mb,
            self.script_processes,
            self.script_open_files,
        )

    @property
    def journal_path(self) -> Path:
        """Journal file: one per app name and port."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.appname)
        return self.home / f"executor-{name}-{self.port}.sqlite3"


def is_http_url(text: str) -> bool:
    """Return whether a text is ``http://host[:port][/path]`` or the same with https."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


def read_token_file(path: Path, *, missing_ok: bool = False) -> tuple[str, ...]:
    """Read one or two tokens from a file; raise StartRefused if that fails."""
    try:
        return split_list(path.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        if missing_ok:
            return ()
        raise StartRefused(f"{path}: no such token file") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise StartRefused(f"{path}: cannot read the token file: {exc}") from exc


def parse_token_file(text: str) -> tuple[str, ...]:
    """Read the file that XXL_JOB_ACCESS_TOKEN_FILE names."""
    tokens = read_token_file(Path(text))
    if not tokens:
        raise ValueError(f"the file {text} is empty")
    return tokens


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas; trim the parts and skip empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_languages(text: str) -> frozenset[str]:
    """Parse ``python,shell``."""
    return frozenset(part.lower() for part in split_list(text))


def parse_port(text: str) -> int:
    """Parse a port; 0 means a free port."""
    if text.isascii() and text.isdigit() and int(text) < 65_536:
        return int(text)
    raise ValueError(f"{text!r} is not a port (0 to 65535)")


def parse_days(text: str) -> int:
    """Parse a number of days."""
    try:
        return int(text)
    except ValueError as exc:
        raise ValueError(f"{text!r} is not a number of days") from exc


def parse_limit(text: str) -> int:
    """Parse a limit of scripts; 0 means none."""
    if text.isascii() and text.isdigit() and len(text) <= LIMIT_MAX_DIGITS:
        return int(text)
    raise ValueError(f"{text!r} is not a limit (a whole number, 0 for none)")


VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "XXL_JOB_ADMIN_ADDRESSES": ("admin_addresses", split_list),
    "XXL_JOB_EXECUTOR_APPNAME": ("appname", str),
    "XXL_JOB_EXECUTOR_HOST": ("host", str),
    "XXL_JOB_EXECUTOR_PORT": ("port", parse_port),
    "XXL_JOB_EXECUTOR_ADDRESS": ("address", str),
    "XXL_JOB_EXECUTOR_LOG_PATH": ("log_path", Path),
    "XXL_JOB_EXECUTOR_LOG_RETENTION_DAYS": ("log_retention_days", parse_days),
    "XXL_JOB_EXECUTOR_ALLOW_GLUE": ("allow_glue", parse_languages),
    "XXL_JOB_EXECUTOR_SCRIPT_CPU_SECONDS": ("script_cpu_s", parse_limit),
    "XXL_JOB_EXECUTOR_SCRIPT_MEMORY_MB": ("script_memory_mb", parse_limit),
    "XXL_JOB_EXECUTOR_SCRIPT_FILE_MB": ("script_file_mb", parse_limit),
    "XXL_JOB_EXECUTOR_SCRIPT_PROCESSES": ("script_processes", parse_limit),
    "XXL_JOB_EXECUTOR_SCRIPT_OPEN_FILES": ("script_open_files", parse_limit),
    "XXL_JOB_ACCESS_TOKEN": ("access_tokens", split_list),
    "XXL_JOB_ACCESS_TOKEN_FILE": ("access_tokens", parse_token_file),
    "XXL_JOB_HOME": ("home", Path),
}
