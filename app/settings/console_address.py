"""Address of this host's console, and a check whether it answers; for runner, watchdog and container."""

import urllib.error
import urllib.request
from dataclasses import replace
from http.client import HTTPException

from app.settings.config import Config


def console_address(config: Config) -> str:
    """Return the URL of the console on this host."""
    if config.host in ("0.0.0.0", "::", "localhost"):  # nosec B104
        config = replace(config, host="127.0.0.1")
    return config.address


def failure(url: str, *, timeout_s: float = 2) -> Exception | None:
    """Return why a URL is not answered with success, None if it is; uses no proxy of the environment."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=timeout_s).close()
    except (OSError, HTTPException) as exc:  # An HTTPError is an OSError.
        return exc
    return None


def answers(url: str, *, error: bool = True, timeout_s: float = 2) -> bool:
    """Whether an HTTP server answers; ``error``: with an error status too."""
    problem = failure(url, timeout_s=timeout_s)
    return problem is None or (error and isinstance(problem, urllib.error.HTTPError))
