"""Limit keys: the text of a job's `limit_key` for the parameter of a run."""

import hashlib
from functools import lru_cache

from app.domain.parameters.errors import InvalidTemplate, NotFilled
from app.domain.parameters.template import Template, parse
from app.domain.parameters.values import Values

#: characters of the column
KEY_MAX = 64


def key_for(template: str, param: str) -> str | None:
    """Return the key of a run with this parameter; None if it cannot be filled in.

    A longer one is its SHA-256, in hexadecimal digits.
    """
    try:
        text = _parse(template).fill(Values(0, "UTC", 0, "", own_param=param)).text
    except (InvalidTemplate, NotFilled):
        return None
    return text if len(text) <= KEY_MAX else hashlib.sha256(text.encode()).hexdigest()


@lru_cache(256)
def _parse(template: str) -> Template:
    return parse(template, with_param=True)
