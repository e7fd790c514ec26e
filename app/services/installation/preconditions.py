"""Preconditions of console and workers: settings that can be used, and the schema of this program."""

import os

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from app.blobs.stores import check_store
from app.database.faults import reason_of
from app.database.urls import sqlite_file
from app.errors import NoDatabase, NotConfigured
from app.runtime.program import upgrade_command
from app.services.installation.schema import RESTORING, Revisions
from app.settings.config import Config
from app.store.copies import restore_mark, schema


def check_settings(config: Config) -> None:
    """Raise NotConfigured for settings whose check needs more than their text."""
    from app.services.alarms.channels import url_refusal  # imported here, because not all commands need it

    check_store(config)
    for url in config.alarm_urls:
        reason = url_refusal(url)
        if reason:
            raise NotConfigured(f"XXL_JOB_ALARM_URLS: {reason}")


def check_schema(engine: Engine) -> None:
    """Raise NotConfigured unless the database has the schema of this program."""
    revisions = Revisions()
    try:
        with engine.connect() as connection:
            revision = schema.find_revision(connection)
            is_restoring = restore_mark.is_unsettled(connection)
    except DBAPIError as exc:
        reason = reason_of(exc) + _of_folder(engine)
        raise NotConfigured(f"XXL_JOB_DATABASE_URL: the schema cannot be read: {reason}") from exc
    except ResourceClosedError as exc:  # The database went away while SQLAlchemy got to know it.
        raise NotConfigured("XXL_JOB_DATABASE_URL: the schema cannot be read: connection lost") from exc
    revisions.require_known(RESTORING if is_restoring else revision)
    if revision == revisions.newest:
        return
    newest = revisions.newest
    if not revision:
        raise NoDatabase(f"the database has no tables of this program yet; run: {upgrade_command()}")
    raise NotConfigured(
        f"the database has the schema {revision}, but {newest} is needed; run: {upgrade_command()}"
    )


def _of_folder(engine: Engine) -> str:
    """Return the error that SQLite does not report: the folder, where it creates files, is read-only."""
    file = sqlite_file(engine.url)
    return "" if file is None or os.access(file.parent, os.W_OK) else f"; {file.parent} is not writable"
