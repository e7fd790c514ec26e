"""Leftovers of an interrupted promotion in the SQLite database, and the lock of a running one."""

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from app.database.urls import sqlite_file
from app.errors import Conflict, NotConfigured
from app.settings.config import Config
from app.settings.home import SECRET_MODE, give_to_owner_of_folder
from app.store.copies import promotion_source as source

logger = logging.getLogger(__name__)

#: file in the home folder that a running promotion has locked
LOCK_FILE = "promote.lock"


def database_file(config: Config) -> Path:
    """Return the SQLite file of the settings. Raises Conflict if they name a server."""
    file = sqlite_file(config.database_url)
    if file is None:
        raise Conflict("the settings name a database server already: there is nothing to promote")
    return file


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Keep other promotions of this home folder out, until the end of this process at the latest.

    Raises Conflict, or NotConfigured if the lock file cannot be opened.
    """
    path = home / LOCK_FILE
    try:  # Root must not write to the target of a link in the folder of the services.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, SECRET_MODE)
    except OSError as exc:
        raise NotConfigured(f"{path}: cannot be opened: {exc.strerror}") from exc
    with os.fdopen(descriptor, "w") as stream:
        give_to_owner_of_folder(path)  # The services clear what an interrupted promotion has left.
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise Conflict("another promotion is running") from exc
        yield


def clear_leftovers(config: Config) -> None:
    """Remove the record of changes of a promotion that was broken off, if there is one."""
    if not config.is_sqlite:
        return
    try:
        with closing(source.connect(database_file(config))) as connection:
            if source.is_recording(connection):
                with only_one(config.home):
                    source.stop_recording(connection)
                logger.warning("promotion was broken off, its record of changes is removed")
    except Conflict:
        logger.debug("promotion is running")
    except (sqlite3.Error, OSError) as exc:
        logger.warning("record of a promotion not removed error=%s", exc)
