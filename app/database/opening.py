"""Opening of a database: checks before the start, with the problem in one line, and the file of a new one."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    OperationalError,
    ProgrammingError,
    ResourceClosedError,
)

from app.database.dialects.choice import dialect_of
from app.database.engine import make_engine
from app.database.urls import open_error, sqlite_file, without_password
from app.errors import NotConfigured
from app.runtime.program import upgrade_command
from app.settings.config import Config
from app.settings.home import SECRET_MODE, give_to_owner_of_folder


def check_database(config: Config) -> None:
    """Raise NotConfigured, with the problem in one line, if the database cannot be opened.

    Creates no file.
    """
    try:
        if file := sqlite_file(config.database_url):
            file.stat()
    except FileNotFoundError as exc:
        hint = f"there is no such file; for a new installation, run: {upgrade_command()}"
        raise open_error(config.database_url, hint) from exc
    except OSError as exc:
        raise open_error(config.database_url, str(exc.strerror)) from exc
    try:
        _connect_once(config)
    except OperationalError as exc:
        raise open_error(config.database_url, " ".join(str(exc.orig).split())) from exc
    except ResourceClosedError as exc:  # The database went away while SQLAlchemy got to know it.
        raise open_error(config.database_url, "connection lost") from exc
    except NotConfigured as exc:
        raise NotConfigured(f"XXL_JOB_DATABASE_URL: {exc}") from exc


def _connect_once(config: Config) -> None:
    with known_parameters(config.database_url):
        engine = make_engine(config)
    try:
        with known_parameters(config.database_url):
            connection = engine.connect()
        with connection:
            dialect_of(connection).require_usable(connection)
    finally:
        engine.dispose()


@contextmanager
def known_parameters(url: str) -> Iterator[None]:
    """Raise NotConfigured if the driver refuses a parameter of the URL, when a connection is opened in it."""
    try:
        yield
    except (ArgumentError, AttributeError, OSError, ProgrammingError, TypeError, ValueError) as exc:
        reason = exc.orig if isinstance(exc, DBAPIError) else exc
        raise NotConfigured(
            f"{without_password(url)}: the driver refuses a parameter: {' '.join(str(reason).split())}"
        ) from exc


def create_database_file(config: Config) -> None:
    """Create the file of a new SQLite database, readable by its owner only: it contains password hashes.

    The files that SQLite creates beside it get the same mode. Raises NotConfigured if that fails.
    """
    file = sqlite_file(config.database_url)
    try:
        if file is not None and not file.exists():
            file.touch(mode=SECRET_MODE)
            give_to_owner_of_folder(file)
    except OSError as exc:
        raise NotConfigured(f"XXL_JOB_DATABASE_URL: cannot create {file}: {exc.strerror}") from exc
