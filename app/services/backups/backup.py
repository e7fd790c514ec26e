"""Backup: one file with a consistent copy of the database and the secrets of the home folder.

Regular backups are files of a folder named by their time, of which the newest are kept.
"""

import re
import shutil
import sqlite3
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import DBAPIError

from app.clock import DAY_MS, Millis
from app.database.dialects.choice import dialect_of_url, plain_engine
from app.database.faults import not_configured
from app.database.opening import check_database
from app.errors import NotConfigured
from app.services.backups import archive, dumps
from app.services.backups.archive import PART
from app.services.backups.manifest import Manifest, SecretFrom, code_of
from app.services.installation.schema import RESTORING, Revisions, newest_revision
from app.settings.config import Config
from app.settings.home import SECRET_FILES, SECRET_KEY_FILE, TOKEN_FILE
from app.settings.sealing import Sealer
from app.store.copies import restore_mark, schema, whole_tables
from app.store.copies.upgrade_lock import upgrade_lock
from app.store.nodes import nodes
from executor_client.wire.version import VERSION

#: names of the files, in UTC: their order is that of their times
_NAME = "xxl-job-%Y%m%dT%H%M%SZ.backup"
_OWN = re.compile(r"xxl-job-[0-9]{8}T[0-9]{6}Z\.backup")
#: age from which an unfinished file is one of a command that was killed
UNFINISHED_MS = DAY_MS


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup."""

    path: Path
    manifest: Manifest
    #: why it was not restored into a scratch database, and what allows it; empty: it was
    unverified: str


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables to copy, and their revision; ``namespace`` is PostgreSQL's schema."""

    revision: str
    namespace: str
    names: list[str]


def back_up(config: Config, path: Path, *, now_ms: Millis) -> Backup:
    """Write a backup to the new file ``path``; raises NotConfigured.

    The services go on meanwhile; an upgrade of the schema waits.
    """
    path = path.absolute()
    archive.refuse_existing(path)
    url, dialect = make_url(config.database_url), dialect_of_url(config.database_url)
    check_database(config)
    try:
        with plain_engine(url).connect() as connection, upgrade_lock(connection):
            tables = _find_tables(connection)
            with archive.working_folder(path) as folder:
                copy = folder / dialect.copy_name
                is_mysql = dialect.is_mysql(connection)
                rows = dumps.make_copy(url, tables.names, tables.namespace, copy, is_mysql=is_mysql)
                doubt = dumps.verify_copy(url, tables.namespace, copy, rows)
                files = {copy.name: copy, **_secret_files(config)}
                manifest = Manifest(
                    program=VERSION,
                    schema=tables.revision,
                    database=dialect_of_url(url).name,
                    namespace=tables.namespace,
                    made_ms=now_ms,
                    verified=not doubt,
                    rows=rows,
                    secrets=secret_sources(config),
                    key_fingerprint=key_fingerprint(config),
                    files={name: archive.digest_of(file) for name, file in files.items()},
                    time_zone=_time_zone(connection, config, tables),
                )
                manifest = _sign(manifest, config)
                archive.write_archive(path, manifest, files)
    except DBAPIError as exc:
        raise not_configured(exc) from exc
    except sqlite3.Error as exc:  # while copying: the disk is full, the file is damaged
        raise NotConfigured(f"{path.parent}: the database cannot be copied there: {exc}") from exc
    return Backup(path, manifest, doubt)


def back_up_to(config: Config, folder: Path, *, keep: int, now_ms: Millis) -> tuple[Backup, list[Path]]:
    """Write a backup to a folder and keep it with the newest others, ``keep`` in all.

    Return it and the removed ones. Files of other names stay. Raises NotConfigured before any is removed.
    """
    _remove_unfinished(folder, now_ms)
    name = datetime.fromtimestamp(now_ms / 1000, UTC).strftime(_NAME)
    backup = back_up(config, folder / name, now_ms=now_ms)
    # Not by its name: a clock that was ahead may have left newer ones.
    others = [path for path in folder.iterdir() if _OWN.fullmatch(path.name) and path.name != name]
    files = sorted(path for path in others if path.is_symlink() or not path.is_dir())
    old_files = files[: max(len(files) - keep + 1, 0)]
    for path in old_files:
        path.unlink()
    return backup, old_files


def _remove_unfinished(folder: Path, now_ms: Millis) -> None:
    """Remove what killed commands have left; ignore what cannot be removed."""
    for path in folder.glob(f".xxl-job-*.backup.*{PART}"):
        with suppress(OSError):  # Another command may be removing it.
            if path.lstat().st_mtime * 1000 < now_ms - UNFINISHED_MS:
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)


def secret_sources(config: Config) -> dict[str, SecretFrom]:
    """Return where the secrets of this installation come from: name of the file -> source."""
    settings = {SECRET_KEY_FILE: bool(config.secret_key), TOKEN_FILE: bool(config.access_tokens)}
    sources = {name: SecretFrom.SETTING for name, is_set in settings.items() if is_set}
    for name in SECRET_FILES:
        if name not in sources and (config.home / name).is_file():
            sources[name] = SecretFrom.FILE
    return sources


def key_fingerprint(config: Config, stored_key: str = "") -> str:
    """Return the fingerprint of the application key: configured, else stored; empty: there is none."""
    key_sealer = find_sealer(config, stored_key)
    return key_sealer.key_fingerprint if key_sealer is not None else ""


def find_sealer(config: Config, saved_key: str = "") -> Sealer | None:
    """Return the sealer of the application key: configured, else stored, else of the home; None: no key."""
    path = config.home / SECRET_KEY_FILE
    key = (
        config.secret_key or saved_key or (path.read_text(encoding="utf-8").strip() if path.is_file() else "")
    )
    return Sealer(lambda: key) if key else None


def _sign(manifest: Manifest, config: Config) -> Manifest:
    """Return the manifest with its authentication code."""
    sealer = find_sealer(config)
    return manifest if sealer is None else replace(manifest, code=code_of(manifest.to_json(), sealer))


def _time_zone(connection: Connection, config: Config, tables: Tables) -> str:
    """Return the zone of the services, which is not always that of this command's environment."""
    is_recorded = tables.revision == newest_revision()  # an older schema may have no column for it
    return (nodes.find_last_zone(connection) if is_recorded else "") or config.time_zone


def _secret_files(config: Config) -> dict[str, Path]:
    sources = secret_sources(config)
    return {
        f"{archive.SECRETS}/{name}": config.home / name
        for name, source in sources.items()
        if source is SecretFrom.FILE
    }


def _find_tables(connection: Connection) -> Tables:
    revision = schema.find_revision(connection)
    Revisions().require_known(RESTORING if restore_mark.is_unsettled(connection) else revision)
    if revision is None:
        raise NotConfigured("the database has no tables of this program: there is nothing to back up")
    tables = Tables(revision, whole_tables.namespace_of(connection), whole_tables.own_tables(connection))
    connection.rollback()
    return tables
