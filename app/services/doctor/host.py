"""Checks of this host: settings, files and their permissions, disk space. None needs the database."""

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from app.clock import DAY_MS, HOUR_MS, Millis
from app.database.urls import sqlite_file
from app.errors import NotConfigured
from app.services.backups.last_backup import find_last
from app.services.doctor.findings import (
    Finding,
    Findings,
    NothingFound,
    check,
    fine,
    name_list,
    problem,
    warning,
)
from app.services.installation import preconditions
from app.settings.config import Config
from app.settings.home import SECRET_FILES, SECRET_KEY_FILE, TOKEN_FILE, split_tokens

#: free space of a disk below which the doctor warns, as a share and in bytes; a tenth of it is a problem
FREE_SHARE, FREE_BYTES = 0.1, 2 * 1024**3
GIB = 1024**3
#: a backup of every day is missing after so long
BACKUP_MAX_MS: Millis = 2 * DAY_MS
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@check("settings")
def check_settings(config: Config) -> Findings:
    """Check what the settings leave open, and what needs more than their text."""
    try:
        preconditions.check_settings(config)
    except NotConfigured as exc:
        yield problem(str(exc), "correct it; console and workers do not start with it")
    else:
        yield fine(f"valid; time zone {config.time_zone}")
    if not config.on_loopback and not config.proxy_count:
        yield warning(
            f"the console listens on {config.host} without TLS",
            "put a proxy with TLS in front and set XXL_JOB_PROXY_COUNT=1",
        )
    if not config.on_loopback and not config.allowed_hosts:
        yield warning(
            "the console answers to any host name",
            "set XXL_JOB_ALLOWED_HOSTS to the names under which it is opened",
        )
    if config.mail.host and not config.public_url:
        yield warning("links in alarms lead to this host and port only", "set XXL_JOB_PUBLIC_URL")


@check("token")
def check_tokens(config: Config) -> Findings:
    """Check that there is an access token, and only one."""
    path = config.home / TOKEN_FILE
    try:
        tokens = stored_tokens(config)
    except OSError as exc:
        yield problem(
            f"there is no access token: XXL_JOB_ACCESS_TOKEN is not set, and {path}: {exc.strerror}",
            "set XXL_JOB_ACCESS_TOKEN to the one that executors have, as after a restore; on a new"
            " installation start the console, which makes one; or run the doctor as root",
        )
        return
    if len(tokens) > 1:
        is_set = bool(config.access_tokens)
        ending = "set XXL_JOB_ACCESS_TOKEN to it alone" if is_set else "run: duetime rotate-token --end"
        yield warning(
            "two access tokens are valid: a change has not been ended",
            f"give all executors the first one, then {ending}",
        )
    if config.access_tokens and not set(_tokens_in(path)) <= {*tokens}:
        yield warning(f"{path} has a token that is not valid: XXL_JOB_ACCESS_TOKEN is set", f"delete {path}")
    yield fine("set by XXL_JOB_ACCESS_TOKEN" if config.access_tokens else f"in {path}")


def stored_tokens(config: Config) -> tuple[str, ...]:
    """Return the access tokens, without making one; raises OSError if there is none."""
    return config.access_tokens or split_tokens((config.home / TOKEN_FILE).read_text(encoding="utf-8"))


def _tokens_in(path: Path) -> tuple[str, ...]:
    """Return the tokens of a file; none if it is absent or cannot be read."""
    try:
        return split_tokens(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ()


@check("files")
def check_files(config: Config, env_file: Path | None) -> Findings:
    """Check owner and permissions of the home folder, the secrets and the file of settings."""
    home = config.home
    try:
        names = {path.name for path in home.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        yield problem(
            f"the home folder {home} is absent",
            "set XXL_JOB_HOME to the folder of the services, or start the console, which creates it",
        )
        return
    except OSError as exc:
        yield from (*_open_files(config, env_file), _unreadable(home, exc))
        return
    yield from (*_open_files(config, env_file), *_foreign_files(home))
    if not config.secret_key and SECRET_KEY_FILE not in names:
        yield problem(
            f"there is no application key: {home / SECRET_KEY_FILE} is absent",
            "restore it from the backup; on a new installation the console makes it at its first start",
        )
    yield NothingFound(f"{home}: readable by its owner only")


def _open_files(config: Config, env_file: Path | None) -> Findings:
    """Yield findings on files that others than the owner can read or write."""
    home = config.home
    private = [home / name for name in SECRET_FILES]
    database = sqlite_file(config.database_url)
    private += [] if database is None else [database, *(_beside(database, end) for end in ("-wal", "-shm"))]
    if mode_of(home) & OTHERS:
        yield warning(f"{home} is open to other users", f"chmod 700 {home}")
    for path in private:
        if mode_of(path) & OTHERS and mode_of(path.parent) & OTHERS:
            yield problem(f"{path} is readable by other users", f"chmod 600 {path}")
    if env_file is not None and mode_of(env_file) & stat.S_IRWXO:
        yield problem(
            f"{env_file} is readable by every user",
            f"chown root:xxl-job {env_file}; chmod 640 {env_file}",
        )


def _foreign_files(home: Path) -> Findings:
    """Yield the files in the home folder that belong to another user than the folder, as after a ``sudo``."""
    try:
        owner = home.stat().st_uid
        foreign = sorted(path.name for path in home.iterdir() if path.lstat().st_uid != owner)
    except OSError as exc:
        yield _unreadable(home, exc)
        return
    if foreign:
        yield problem(
            f"{home} has files of another user than the folder: {name_list(foreign)}",
            f"chown --reference={home} {home}/*",
        )


def _unreadable(home: Path, error: OSError) -> Finding:
    return problem(f"{home} cannot be read: {error.strerror}", "run the doctor as the services do")


def mode_of(path: Path) -> int:
    """Return the permissions of a file; 0 if it is absent or cannot be seen."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _beside(database: Path, ending: str) -> Path:
    return database.with_name(database.name + ending)


@check("disk")
def check_disk(config: Config) -> Findings:
    """Check the free space of the disks with the home folder and the SQLite file."""
    for folder in _folders(config):
        usage = shutil.disk_usage(folder)
        text = f"{folder}: {usage.free / GIB:.1f} GiB of {usage.total / GIB:.1f} GiB free"
        least = min(FREE_SHARE * usage.total, FREE_BYTES)
        if usage.free >= least:
            yield fine(text)
            continue
        advice = "free some space; keep runs for fewer days (XXL_JOB_LOG_RETENTION_DAYS)"
        yield problem(text, advice) if usage.free < least / 10 else warning(text, advice)


@check("backup")
def check_backup(config: Config, *, now_ms: Millis) -> Findings:
    """Check the age of the last backup that was made on this host; another one may make them."""
    last = find_last(config)
    if last is None:
        if sqlite_file(config.database_url) is not None:
            yield warning("none has been made", "enable xxl-job-backup.timer, or run: duetime backup FILE")
        return
    text = f"the last one is {max(now_ms - last.made_ms, 0) // HOUR_MS} hours old: {last.path}"
    if now_ms - last.made_ms <= BACKUP_MAX_MS:
        yield fine(text)
    else:
        yield warning(text, "journalctl -u xxl-job-backup; then run: duetime backup FILE")


def _folders(config: Config) -> Iterator[Path]:
    file = sqlite_file(config.database_url)
    devices = set[int]()
    for folder in (config.home, *([] if file is None else [file.parent])):
        if mode_of(folder) and folder.stat().st_dev not in devices:
            devices.add(folder.stat().st_dev)
            yield folder
