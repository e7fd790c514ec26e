"""Restore: put the database and the secrets of a backup in the place of the configured ones."""

import hmac
import os
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from app.clock import Clock
from app.database.dialects.choice import dialect_of, dialect_of_url, plain_engine
from app.database.engine import bind_engine, unbind_engine
from app.database.faults import not_configured, reason_of
from app.database.opening import check_database
from app.database.urls import sqlite_file
from app.domain.schedules.time_zones import differ
from app.errors import NotConfigured
from app.services.backups import archive, dumps, programs
from app.services.backups.backup import find_sealer, key_fingerprint
from app.services.backups.manifest import SIGNED_FORMAT, Manifest, SecretFrom, code_of
from app.services.backups.reconcile import Settlement, settle
from app.services.backups.restore_options import UNPROVEN, Options, RestoreResult
from app.services.installation.schema import RESTORING, Revisions, newest_revision
from app.services.installation.upgrade import upgrade
from app.settings.config import Config
from app.settings.home import (
    PASSWORD_FILE,
    SECRET_KEY_FILE,
    give_to_owner_of_folder,
    prepare_home,
    secret_file,
)
from app.store.copies import restore_mark, whole_tables
from app.store.copies.schema import find_revision
from app.store.copies.upgrade_lock import folder_lock, limit_table_waits, upgrade_lock

#: end of the names of what was replaced
REPLACED = ".replaced"
#: how long a server may take to end connections that have just been closed
CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class _Order:
    """A checked backup, and where it is to go."""

    path: Path
    manifest: Manifest
    secrets: dict[str, str]
    config: Config
    url: URL
    options: Options
    clock: Clock
    #: see ``RestoreResult``
    is_own: bool = False


def restore(config: Config, path: Path, options: Options, *, clock: Clock) -> RestoreResult:
    """Restore a backup; raises NotConfigured.

    Broken off anywhere, either the database is the earlier one, or no program starts on it until the restore
    has been run again.
    """
    manifest = archive.check_archive(path)
    secrets = archive.read_secrets(path, manifest)
    order = _Order(path, manifest, secrets, config, make_url(config.database_url), options, clock)
    _require_fitting(order)
    order = replace(order, is_own=_is_own(config, path, manifest))
    if not order.is_own:
        options.notify(UNPROVEN)
    prepare_home(config.home)
    try:
        file = sqlite_file(order.url)
        return _restore_tables(order) if file is None else _restore_file(order, file)
    except DBAPIError as exc:
        raise not_configured(exc) from exc
    except OSError as exc:
        raise NotConfigured(f"{exc.filename or config.home}: {exc.strerror or exc}") from exc


def _is_own(config: Config, path: Path, manifest: Manifest) -> bool:
    """Return whether this installation has made a backup; raises NotConfigured if it was changed since.

    False: that cannot be proven, because another one has made it, or a version without authentication codes.
    """
    sealer = find_sealer(config)
    fingerprint = manifest.key_fingerprint if manifest.format >= SIGNED_FORMAT else None
    if sealer is None or sealer.key_fingerprint != fingerprint:
        return False
    own_code = code_of(archive.stored_manifest(path), sealer)
    if not hmac.compare_digest(str(manifest.code).encode(), own_code.encode()):
        raise NotConfigured(
            f"{path} was changed: its manifest does not have the authentication code that the application key"
            " of this installation gives; restore another backup"
        )
    return True


def _require_fitting(order: _Order) -> None:
    """Raise NotConfigured if this program or these settings cannot use the backup."""
    manifest, config = order.manifest, order.config
    if manifest.database != dialect_of_url(order.url).name:
        raise NotConfigured(
            f"XXL_JOB_DATABASE_URL: the backup is of {manifest.database}, and can only be restored there"
        )
    if manifest.time_zone and differ(manifest.time_zone, config.time_zone, now_ms=order.clock()):
        raise NotConfigured(
            f"XXL_JOB_TIMEZONE: the backup says that its installation is in {manifest.time_zone},"
            f" this one is in {config.time_zone}; set it to {manifest.time_zone},"
            " or all times of the database are hours off"
        )
    try:
        Revisions().require_known(manifest.schema)
    except NotConfigured as exc:
        raise NotConfigured(
            f"the backup has a newer schema ({manifest.schema}) than this program knows;"
            f" restore it with version {manifest.program} or a later one"
        ) from exc
    if manifest.secrets.get(SECRET_KEY_FILE) is SecretFrom.SETTING and not config.secret_key:
        raise NotConfigured(
            "XXL_JOB_SECRET_KEY: the backup was made with this setting, and does not contain the key; set it"
        )
    own_fingerprint = key_fingerprint(config, order.secrets.get(SECRET_KEY_FILE, ""))
    if manifest.key_fingerprint not in ("", own_fingerprint):
        raise NotConfigured("XXL_JOB_SECRET_KEY: the backup was made with another application key")


def _restore_file(order: _Order, file: Path) -> RestoreResult:
    """Prepare the SQLite file beside its place, then put it there; the earlier one is whole until then."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = file.resolve()  # a link is kept
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with folder_lock(file), archive.working_folder(place) as folder:
        if place.exists() and place.stat().st_size:
            with plain_engine(order.url).connect() as connection:
                _require_free(connection, order)
            _close_journal(place)
        secrets = _changed_secrets(order)
        copy = folder / dialect_of_url(order.url).copy_name
        archive.extract(order.path, order.manifest, copy.name, copy)
        dumps.require_same(order.manifest.rows, dumps.check_file(copy, order.manifest.rows))
        settlement = _finish(order, URL.create("sqlite", database=str(copy)))
        old_files = _make_way(copy, place)
        old_files += _write_secrets(order, secrets)  # last: the earlier database needs the earlier secrets
        copy.replace(place)
        give_to_owner_of_folder(place)
    return RestoreResult(order.manifest, settlement, old_files, order.is_own, [])


def _restore_tables(order: _Order) -> RestoreResult:
    """Replace the tables of a server's database; no program starts on it until they are complete."""
    check_database(order.config)
    with (
        plain_engine(order.url).connect() as connection,
        upgrade_lock(connection),
        archive.working_folder(order.config.home / "restore") as folder,
    ):
        _require_free(connection, order)
        _require_alone(connection)
        _require_namespace(connection, order)
        secrets = _changed_secrets(order)
        copy = folder / dialect_of_url(order.url).copy_name
        archive.extract(order.path, order.manifest, copy.name, copy)
        _prepare_dump(order, copy)
        _load(connection, order, copy)
        old_files = _write_secrets(order, secrets)  # the earlier tables need the earlier secrets
        restore_mark.mark_unsettled(connection)
        whole_tables.stamp(connection, order.manifest.schema)
        connection.commit()
        unknown = whole_tables.other_tables(connection, order.manifest.rows)
    return RestoreResult(order.manifest, _finish(order, order.url), old_files, order.is_own, unknown)


def _require_free(connection: Connection, order: _Order) -> None:
    """Raise NotConfigured while a node uses the database, or if it has tables that must not be replaced."""
    if alive := whole_tables.live_nodes(connection, now_ms=order.clock()):
        raise NotConfigured(f"stop every console and all workers first; alive: {', '.join(alive)}")
    if whole_tables.own_tables(connection, order.manifest.rows):
        _require_permitted(order)
    connection.rollback()


def _require_permitted(order: _Order) -> None:
    """Raise NotConfigured unless the operator permits that the tables of the database are replaced."""
    if not order.options.replace_all:
        raise NotConfigured("the database has tables of this program; to replace them: --replace")
    # The fields of origin and format can be altered, too.
    if not order.is_own and not order.options.accepts_unproven and find_sealer(order.config) is not None:
        raise NotConfigured(f"{order.path}: {UNPROVEN}; to restore it nevertheless: --accept-unproven")


def _require_alone(connection: Connection) -> None:
    """Raise NotConfigured while programs without a heartbeat use the database as the same user.

    Such as a Java admin, which would fire what is not settled, or the client of a restore that was killed.
    """
    until = time.monotonic() + CLOSING_S
    while count := whole_tables.other_sessions(connection):
        if time.monotonic() > until:
            raise NotConfigured(
                f"the user of XXL_JOB_DATABASE_URL has other connections to the database ({count}),"
                " such as those of a Java admin or of a restore that was killed; end them first"
            )
        threading.Event().wait(CLOSING_S / 20)


def _require_namespace(connection: Connection, order: _Order) -> None:
    here, there = whole_tables.namespace_of(connection), order.manifest.namespace
    if here != there:
        raise NotConfigured(
            f"the tables of the backup are in the schema {there}, those of"
            f" XXL_JOB_DATABASE_URL in {here or 'none'}; set the search path of the user to the former"
        )
    connection.rollback()


def _prepare_dump(order: _Order, copy: Path) -> None:
    """Raise NotConfigured, before anything is removed, if the client could run commands of the dump."""
    try:
        dumps.prepare_dump(copy, for_psql=dialect_of_url(order.url).dumps_for_psql)
    except NotConfigured as exc:
        raise _not_replaced(str(exc)) from exc


def _load(connection: Connection, order: _Order, copy: Path) -> None:
    """Replace the tables, and the revision by RESTORING, which every program refuses."""
    manifest = order.manifest
    names = whole_tables.own_tables(connection, manifest.rows)
    connection.rollback()
    if dialect_of(connection).undoes_table_changes:
        replacing = whole_tables.replacing(connection, names, RESTORING)
        try:
            dumps.load_copy(order.url, manifest.namespace, copy, replacing)
        except NotConfigured as exc:
            raise _not_replaced(str(exc)) from exc
    else:
        programs.find_program(programs.MYSQL_CLIENT)  # before anything is removed
        dumps.require_same_product(copy, is_mysql=dialect_of(connection).is_mysql(connection))
        _drop(connection, names)
        dumps.load_copy(order.url, manifest.namespace, copy)
    counts = whole_tables.count_rows(connection, whole_tables.own_tables(connection, manifest.rows))
    dumps.require_same(manifest.rows, counts)


def _drop(connection: Connection, names: list[str]) -> None:
    """Set the revision to RESTORING and remove the tables, which MySQL and MariaDB cannot undo.

    Raises NotConfigured, with the earlier revision, if none was removed.
    """
    limit_table_waits(connection)
    earlier = find_revision(connection)
    whole_tables.stamp(connection, RESTORING)
    connection.commit()
    try:
        whole_tables.drop_all(connection, names)
    except DBAPIError as exc:
        if exc.connection_invalidated or whole_tables.own_tables(connection, names) != names:
            raise
        whole_tables.stamp(connection, earlier)
        connection.commit()
        raise _not_replaced(reason_of(exc)) from exc


def _not_replaced(reason: str) -> NotConfigured:
    return NotConfigured(f"the tables were not replaced: {reason}; the database is as before")


def _finish(order: _Order, url: URL) -> Settlement:
    """Bring the tables to the schema of this program and settle their fires, with the key of the backup."""
    database_url = url.render_as_string(hide_password=False)
    key = order.config.secret_key or order.secrets.get(SECRET_KEY_FILE, "")
    if order.manifest.schema != newest_revision():
        upgrade(database_url)
    bind_engine(replace(order.config, database_url=database_url, secret_key=key))
    try:
        return settle(made_ms=order.manifest.made_ms, clock=order.clock)
    finally:
        unbind_engine()


def _make_way(copy: Path, place: Path) -> list[Path]:
    """Free the place of the database; return the files that were there, under their new names."""
    _close_journal(copy)
    old_files = []
    if place.exists() and place.stat().st_size:
        _close_journal(place)  # once more, because a program may have been started meanwhile
        old_files.append(_free_name(place))
        os.link(place, old_files[0])
    else:  # journals of a file that was removed: SQLite would write their content into the new one
        journals = [place.with_name(place.name + end) for end in ("-wal", "-shm", "-journal")]
        old_files += [_set_aside(journal) for journal in journals if journal.exists()]
    return old_files


def _close_journal(database: Path) -> None:
    """Write the journal of a SQLite database back into it; raises NotConfigured if a program has it open."""
    try:
        with closing(sqlite3.connect(database, timeout=1)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as exc:
        raise NotConfigured(f"{database} is in use ({exc}); stop every program that has it open") from exc


def _changed_secrets(order: _Order) -> dict[str, str]:
    """Return the secrets to write; raises NotConfigured if there are others that must not be replaced."""
    files = {name: order.config.home / name for name in order.secrets}
    secrets = {
        name: order.secrets[name]
        for name, path in files.items()
        if not path.is_file() or path.read_text(encoding="utf-8").strip() != order.secrets[name]
    }
    paths = [str(files[name]) for name in secrets if files[name].is_file()]
    if paths and not order.options.replace_all:
        raise NotConfigured(f"{', '.join(paths)}: not that of the backup; to replace it: --replace")
    return secrets


def _write_secrets(order: _Order, secrets: dict[str, str]) -> list[Path]:
    """Write secrets to the home folder; return those of before, under their new names.

    An initial password that is not in the backup is one of other users.
    """
    home = order.config.home
    names = [*secrets, *({PASSWORD_FILE} - order.secrets.keys())]
    old_files = [_set_aside(home / name) for name in names if (home / name).is_file()]
    for name, secret in secrets.items():
        secret_file(home / name, secret)
    return old_files


def _set_aside(path: Path) -> Path:
    """Give a file a free name beside it and return it."""
    return path.rename(_free_name(path))


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}{REPLACED}-{number}")).exists():
        number += 1
    return aside
