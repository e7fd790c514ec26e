"""Console addresses: validation, and detection of loopback."""

from urllib.parse import urlsplit

from executor_client.api.errors import NotConfigured
from executor_client.api.transport import BASE_PATH

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_loopback(url: str) -> bool:
    """Return whether an address is on this host."""
    return urlsplit(url).hostname in _LOOPBACK


def console_url(url: str) -> str:
    """Return the address of a console without the API's path; raise NotConfigured if it is invalid."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise NotConfigured(
            f"{url.strip()!r} is not the address of a console: expected one like https://host/xxl-job-admin"
        )
    if parts.username or parts.password:
        raise NotConfigured(
            "the address of a console cannot contain a user or password; the token is given separately"
        )
    return url.strip().rstrip("/").removesuffix(BASE_PATH).rstrip("/")
