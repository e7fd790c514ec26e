"""Executor configuration: read from variables and options, checked before anything is opened."""

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from executor_client.config.script_limits import FILE_MAX_MB, ScriptLimits
from executor_client.config.settings import (
    PORT_MAX,
    SETTINGS,
    parse_level,
    read_token_file,
    refuse_unknown_variables,
    set_by_kubernetes,
    suggestion,
)
from executor_client.wire.errors import StartRefused

#: languages ``allow_glue`` may name
GLUE_LANGUAGES = ("python", "shell", "php", "nodejs", "powershell")
#: file in the home that holds the token of a console on the same machine
TOKEN_FILE = "access_token"
#: well-known tokens, refused like those shorter than MIN_TOKEN_LENGTH, except on loopback
REFUSED_TOKENS = frozenset({"default_token"})
MIN_TOKEN_LENGTH = 16
PORT_DEFAULT = 9999
#: fields of Timing in the table of settings
TIMING_PREFIX = "timing."
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
    #: port to listen on; 0: a free port, None: PORT_DEFAULT. Mounted: that of the application, unless None
    port: int | None = None
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
    #: lowest level of the executor's own log on stderr, unless the program has set up ``logging``
    log_level: str = "info"
    #: copy a handler's ``logging`` records into its job log; None: unless mounted on an application
    route_logging: bool | None = None
    #: copy what a handler prints into its job log; None: unless mounted on an application
    capture_output: bool | None = None
    timing: Timing = Timing()

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **settings: Any) -> "ExecutorConfig":
        """Read the ``XXL_JOB_*`` variables; keyword arguments override them.

        A keyword argument is a field of this class; its value may be text, as in the variable. Raises
        StartRefused with one line that names the variable or argument, its value and the expected values.
        """
        environ = os.environ if environ is None else environ
        refuse_unknown_variables(environ)
        overrides = {name: _parse_argument(name, value) for name, value in settings.items()}
        if "access_tokens" not in overrides and all(
            environ.get(name, "").strip() for name in TOKEN_VARIABLES
        ):
            raise StartRefused(f"{' and '.join(TOKEN_VARIABLES)} are both set: set one of them")
        values = {**_from_variables(environ, overrides), **overrides}
        times = {name: values.pop(name) for name in [*values] if name.startswith(TIMING_PREFIX)}
        if times:
            timing = values.get("timing", Timing())
            changes = {name.removeprefix(TIMING_PREFIX): value for name, value in times.items()}
            values["timing"] = replace(timing, **changes)
        config = cls(**values)
        if config.access_tokens:
            return config
        return replace(config, access_tokens=read_token_file(config.home / TOKEN_FILE, missing_ok=True))

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
                raise StartRefused(f"{without_user(url)!r} is not a URL: http://host:port/ is expected")
        if not 0 <= self.listen_port <= PORT_MAX:
            raise StartRefused(f"port: {self.listen_port} is not a port (0 to {PORT_MAX})")
        try:
            parse_level(self.log_level)
        except ValueError as exc:
            raise StartRefused(f"log level: {exc}") from exc
        unknown = self.allow_glue.difference(GLUE_LANGUAGES)
        if unknown:
            raise StartRefused(
                f"allow-glue: {', '.join(sorted(unknown))} is not one of {', '.join(GLUE_LANGUAGES)}"
            )
        self._check_token()

    def _check_token(self) -> None:
        """Refuse a token that no header can carry, and a weak or missing one on a reachable port.

        With that, callers could run any handler.
        """
        if not all(token.isprintable() and max(token, default="") <= "\xff" for token in self.access_tokens):
            raise StartRefused(
                "access token: expected printable characters of Latin-1, as in any HTTP header"
            )
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
    def listen_port(self) -> int:
        """Port to listen on."""
        return PORT_DEFAULT if self.port is None else self.port

    @property
    def host_text(self) -> str:
        """Address of this executor, for messages."""
        return self.address or f"{self.host}:{self.listen_port}"

    @property
    def is_loopback(self) -> bool:
        """True if listening and registered address are both on loopback."""
        registered_host = urlsplit(self.address).hostname if self.address else self.host
        return self.host in LOOPBACK_HOSTS and registered_host in LOOPBACK_HOSTS

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
        """Journal file: one per app name and port.

        A name with other characters than these gets a digest, because they all become ``_``.
        """
        name = _file_name(self.appname)
        if name != self.appname:
            name += f"-{hashlib.sha256(self.appname.encode()).hexdigest()[:8]}"
        return self.home / f"executor-{name}-{self.listen_port}.sqlite3"

    @property
    def earlier_journal_path(self) -> Path:
        """Journal file of earlier versions, whose name had no digest."""
        return self.home / f"executor-{_file_name(self.appname)}-{self.listen_port}.sqlite3"


def _file_name(appname: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", appname)


def without_user(url: str) -> str:
    """Return a URL without user and password, as messages show it."""
    return re.sub(r"//[^/?#\s]*@", "//", url)


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


def _from_variables(environ: Mapping[str, str], overrides: Collection[str]) -> dict[str, Any]:
    """Return the fields that variables set, except those in ``overrides``."""
    values: dict[str, Any] = {}
    skipped_fields = {*overrides, *([f"{TIMING_PREFIX}shutdown_wait_s"] if "timing" in overrides else [])}
    for variable, (name, parse) in VARIABLES.items():
        text = environ.get(variable, "").strip()
        if text and name not in skipped_fields and not set_by_kubernetes(variable, text):
            try:
                values[name] = parse(text)
            except ValueError as exc:
                raise StartRefused(f"{variable}: {exc}") from exc
    return values


def _parse_argument(name: str, value: Any) -> Any:
    """Return the value of a keyword argument, parsed if it is text; raise StartRefused."""
    field_names = {field.name for field in fields(ExecutorConfig)} | {setting.field for setting in SETTINGS}
    if name not in field_names:
        names = [field_name for field_name in field_names if not field_name.startswith(TIMING_PREFIX)]
        raise StartRefused(f"{name}: no such setting{suggestion(name, names)}")
    parse = next((setting.parse for setting in SETTINGS if setting.field == name), None)
    try:
        return parse(value) if isinstance(value, str) and parse else value
    except ValueError as exc:
        raise StartRefused(f"{name}: {exc}") from exc


#: variable -> field and parser
VARIABLES = {setting.variable: (setting.field, setting.parse) for setting in SETTINGS}
