"""Database URLs: the file that one names, and the form without passwords for logs and pages."""

from pathlib import Path

from sqlalchemy import URL, make_url

from app.errors import NoDatabase

MASK = "***"


def sqlite_file(url: str | URL) -> Path | None:
    """Return the file of a SQLite database, also of ``sqlite:///file:/PATH?uri=true``; None for a server."""
    parsed_url = make_url(url)
    name = parsed_url.database if parsed_url.get_backend_name() == "sqlite" else None
    return Path(name.removeprefix("file:")) if name else None


def without_password(url: str | URL) -> str:
    """Return the URL with MASK for its passwords."""
    parsed_url = make_url(url)
    # The names are password, passwd, sslpassword and ssl_key_password.
    parts = {name: MASK for name in parsed_url.query if "pass" in name}
    text = parsed_url.update_query_dict(parts).render_as_string(hide_password=True)
    return text.replace("%2A%2A%2A", MASK)


def open_error(url: str, reason: str) -> NoDatabase:
    """Return the error for a database that cannot be opened."""
    return NoDatabase(f"XXL_JOB_DATABASE_URL: {without_password(url)} cannot be opened: {reason}")
