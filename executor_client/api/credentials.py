"""Credentials of the API client: console and token from arguments, the environment or profiles.

The address of a console is validated, and one on this host is detected.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from executor_client.api.errors import NotConfigured
from executor_client.api.profiles import (
    TOKEN,
    TOKEN_FILE,
    URL,
    Profile,
    find_profile,
    profiles_path,
    read_profiles,
    token_of,
)
from executor_client.api.transport import BASE_PATH
from executor_client.config.program_name import program_name

PREFIX = "xxl_"
_MAKE_ONE = "make an API token in the console: your name, Account and settings, API tokens"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def find_credentials(url: str, token: str, profile: str, environ: Mapping[str, str]) -> Profile:
    """Return console and token; empty values come from ``profile``, the environment or the last login.

    The token of a profile is sent to the console of that profile only. Raises NotConfigured.
    """
    if url and token:
        credentials = Profile(console_url(url), token.strip())
    elif url:
        address = console_url(url)
        credentials = Profile(address, token_of(environ) or _profile_token(address, environ))
        if not credentials.token:
            raise NotConfigured(
                f"no API token for {address}: set {TOKEN} or {TOKEN_FILE},"
                f" or run: {program_name()} login; {_MAKE_ONE}"
            )
    else:
        entry = find_profile(profile, {**environ, **({TOKEN: token, TOKEN_FILE: ""} if token else {})})
        if entry is None:
            raise NotConfigured(
                f"no console to call: give its address (--admin), set {URL}, or run: {program_name()} login"
            )
        credentials = Profile(console_url(entry.url), entry.token)
    require_api_token(credentials.token)
    return credentials


def require_api_token(token: str) -> None:
    """Raise NotConfigured for a text that is not an API token, so that it is not sent."""
    if not token.startswith(PREFIX):
        raise NotConfigured(
            f"this is not an API token, which begins with {PREFIX}; the access token of executors does not"
            f" open the API: {_MAKE_ONE}"
        )


def _profile_token(address: str, environ: Mapping[str, str]) -> str:
    entries = read_profiles(profiles_path(environ)).profiles.values()
    return next((entry.token for entry in entries if entry.url.rstrip("/") == address), "")


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
