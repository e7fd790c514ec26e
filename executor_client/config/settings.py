"""Settings: table of variables and command-line options, their parsers, and the detection of typos.

A row is a field of ExecutorConfig with its variable and its option.
"""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from executor_client.wire.errors import StartRefused

PREFIX = "XXL_JOB_EXECUTOR_"
#: prefix of all variables, including those of the console
SHARED_PREFIX = "XXL_JOB_"
#: similarity from which a variable counts as a typo of one of ours; no variable of the console is so similar
CLOSE = 0.85
#: variables with our prefix that belong to other programs of the same environment, such as the console
FOREIGN = frozenset({"XXL_JOB_EXECUTOR_NETWORKS"})
#: Kubernetes sets these for a service called ``xxl-job-executor`` or ``xxl-job-executor-…``
_KUBERNETES_NAME = re.compile(
    r"XXL_JOB_EXECUTOR_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_\w+)?)", re.ASCII
)
_KUBERNETES_VALUE = re.compile(r"(tcp|udp|sctp)://")
PORT_MAX = 65_535
#: a larger limit of scripts would overflow those of the operating system
LIMIT_MAX_DIGITS = 9
#: longest wait for running handlers at a stop, in seconds
WAIT_MAX_S = 86_400
LOG_LEVELS = ("debug", "info", "warning", "error")


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas; trim the parts and skip empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_languages(text: str) -> frozenset[str]:
    """Parse ``python,shell``."""
    return frozenset(part.lower() for part in split_list(text))


def parse_port(text: str) -> int:
    """Parse a port; 0 means a free port."""
    if text.isascii() and text.isdigit() and int(text) <= PORT_MAX:
        return int(text)
    raise ValueError(f"{text!r} is not a port (0 to {PORT_MAX})")


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


def parse_wait(text: str) -> float:
    """Parse a number of seconds to wait."""
    if text.isascii() and text.isdigit() and int(text[:9]) <= WAIT_MAX_S:
        return float(text)
    raise ValueError(f"{text!r} is not a number of seconds (0 to {WAIT_MAX_S})")


def parse_switch(text: str) -> bool:
    """Parse ``on`` or ``off``, also ``true``/``false``, ``yes``/``no`` and ``1``/``0``."""
    value_by_word = {"on": True, "true": True, "yes": True, "1": True}
    value_by_word |= {"off": False, "false": False, "no": False, "0": False}
    try:
        return value_by_word[text.lower()]
    except KeyError as exc:
        raise ValueError(f"{text!r} is neither on nor off") from exc


def parse_level(text: str) -> str:
    """Parse a log level, in any case."""
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"{text!r} is not one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def level_number(level: str) -> int:
    """Return the number ``logging`` has for a level of LOG_LEVELS."""
    return int(getattr(logging, level.upper()))


def read_token_file(path: Path, *, missing_ok: bool = False) -> tuple[str, ...]:
    """Read one or two tokens from a file; raise StartRefused if that fails."""
    try:
        return split_list(path.read_text(encoding="utf-8-sig"))
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


class Setting(NamedTuple):
    """Field of ExecutorConfig (or ``timing.`` and a field of Timing), with its variable and option."""

    field: str
    variable: str
    #: "" for the token, which would be visible in the process list
    option: str
    parse: Callable[[str], Any]
    #: "" for a switch, which has the options ``--x`` and ``--no-x``
    metavar: str
    help: str


def _of_field(field: str, parse: Callable[[str], Any], metavar: str, text: str) -> Setting:
    """Return the setting of a field whose variable and option are named after it."""
    return Setting(field, PREFIX + field.upper(), f"--{field.replace('_', '-')}", parse, metavar, text)


SETTINGS = (
    Setting(
        "admin_addresses",
        "XXL_JOB_ADMIN_ADDRESSES",
        "--admin",
        split_list,
        "URL[,URL]",
        "http://host:port/xxl-job-admin",
    ),
    _of_field("appname", str, "NAME", "name of the executor group"),
    _of_field("host", str, "ADDRESS", "address to listen on (default 127.0.0.1)"),
    _of_field("port", parse_port, "PORT", "port to listen on (default 9999)"),
    _of_field("address", str, "URL", "URL to register (default http://host:port/)"),
    Setting("access_tokens", "XXL_JOB_ACCESS_TOKEN", "", split_list, "", ""),
    Setting(
        "access_tokens",
        "XXL_JOB_ACCESS_TOKEN_FILE",
        "--token-file",
        parse_token_file,
        "FILE",
        "file that holds the access token",
    ),
    Setting(
        "home",
        "XXL_JOB_HOME",
        "--home",
        Path,
        "DIR",
        "folder of the journal and the token file (default instance)",
    ),
    _of_field("log_path", Path, "DIR", "folder of the job logs (default executor-logs in the home)"),
    _of_field(
        "log_retention_days", parse_days, "DAYS", "days to keep job logs (default 30; below 3: forever)"
    ),
    _of_field(
        "log_level",
        parse_level,
        "LEVEL",
        "lowest level of the executor's own log on stderr: debug, info (default), warning, error",
    ),
    _of_field(
        "route_logging",
        parse_switch,
        "",
        "copy a handler's logging records into its job log (default on, off where mounted)",
    ),
    _of_field(
        "capture_output",
        parse_switch,
        "",
        "copy what a handler prints into its job log (default on, off where mounted)",
    ),
    Setting(
        "timing.shutdown_wait_s",
        f"{PREFIX}SHUTDOWN_WAIT_SECONDS",
        "--shutdown-wait",
        parse_wait,
        "SECONDS",
        "a stop waits this long for running handlers, then kills them (default 30)",
    ),
    _of_field(
        "allow_glue",
        parse_languages,
        "LANG[,LANG]",
        "script languages to allow: python, shell, php, nodejs, powershell",
    ),
    *(
        Setting(field, f"{PREFIX}SCRIPT_{variable}", option, parse_limit, metavar, f"{text}; 0 for no limit")
        for field, variable, option, metavar, text in (
            ("script_cpu_s", "CPU_SECONDS", "--script-cpu", "SECONDS", "CPU time of a script's process"),
            ("script_memory_mb", "MEMORY_MB", "--script-memory", "MIB", "address space of such a process"),
            ("script_file_mb", "FILE_MB", "--script-file-size", "MIB", "size of a file that it writes"),
            ("script_processes", "PROCESSES", "--script-processes", "N", "processes of the executor's user"),
            ("script_open_files", "OPEN_FILES", "--script-open-files", "N", "open files of such a process"),
        )
    ),
    _of_field("metrics", parse_switch, "", "serve GET /metrics (default off)"),
)


def refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    """Raise StartRefused for a mistyped variable.

    That is an unknown one with our prefix, or a name close to another of our variables, such as
    ``XXL_JOB_ADMIN_ADDRESS``; all others belong to other programs.
    """
    variables = {setting.variable for setting in SETTINGS}
    variable_by_stem = {
        _stem(variable, SHARED_PREFIX): variable for variable in variables if not variable.startswith(PREFIX)
    }
    for name in sorted(environ.keys() - variables - FOREIGN):
        if name.startswith(PREFIX) and not set_by_kubernetes(name, environ[name]):
            raise StartRefused(f"{name}: no such setting{suggestion(name, variables, prefix=PREFIX)}")
        if name.startswith(SHARED_PREFIX) and not name.startswith(PREFIX):
            near = difflib.get_close_matches(_stem(name, SHARED_PREFIX), variable_by_stem, n=1, cutoff=CLOSE)
            if near:
                raise StartRefused(f"{name}: no such setting; did you mean {variable_by_stem[near[0]]}?")


def set_by_kubernetes(name: str, value: str) -> bool:
    """Return whether Kubernetes set this variable for a service: ``XXL_JOB_EXECUTOR_PORT=tcp://10.0.0.7:80``.

    A plain ``XXL_JOB_EXECUTOR_PORT=9999`` is our setting.
    """
    if not _KUBERNETES_NAME.fullmatch(name):
        return False
    is_link = name.endswith("_PORT") and "_SERVICE_" not in name and not re.search(r"_PORT_\d+_", name)
    return bool(_KUBERNETES_VALUE.match(value)) if is_link else True


def suggestion(name: str, names: Iterable[str], *, prefix: str = "") -> str:
    """Return ``; did you mean appname?`` for the known name nearest to a mistyped one, or all names."""
    stems = {_stem(candidate, prefix): candidate for candidate in names if candidate.startswith(prefix)}
    near = difflib.get_close_matches(_stem(name, prefix), stems, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {stems[near[0]]}?"
    return f"; known are {', '.join(sorted(stems.values()))}"


def _stem(name: str, prefix: str) -> str:
    """Return the part of a name to compare: a shared prefix and underscores would make all names similar."""
    return name.removeprefix(prefix).lower().replace("_", "")
