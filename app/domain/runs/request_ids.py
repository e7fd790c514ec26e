"""Request ids: ids of requests, which are stored in the fires that a request triggers."""

import re
import secrets

#: header of every answer, and of requests that a trusted proxy passes on
HEADER = "X-Request-Id"
#: such as a UUID, or 32 hexadecimal digits; the limit leaves room in the key of a fire
_REQUEST_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{7,49}")
_IN_KEY = re.compile(r"(?:manual|once):[0-9]+-[0-9a-f]+@([^:]+)(?::[0-9]+)?")


def new_request_id() -> str:
    """Return a new id."""
    return secrets.token_hex(16)


def is_request_id(text: str) -> bool:
    """Whether a text is an id of 8 to 50 letters, digits, dots, hyphens and underscores."""
    return _REQUEST_ID.fullmatch(text) is not None


def request_of(fire_key: str) -> str:
    """Return the id of the request that triggered a fire, from its key; empty: none is known."""
    match = _IN_KEY.fullmatch(fire_key) if "@" in fire_key else None
    return match[1] if match is not None else ""
