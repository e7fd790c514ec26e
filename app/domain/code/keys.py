"""Generated keys of jobs as code: made from names, for objects that have none yet."""

import re
import unicodedata
from collections.abc import Collection

from app.domain.code.document import KEY_MAX

#: longest key that is made, which leaves room for a number
_MADE_MAX = 60


def free_key(names: Collection[str], used_keys: Collection[str]) -> str:
    """Return a key made from the first of the ``names`` with letters or digits, and not in ``used_keys``.

    ``"Close the books (EU)"`` becomes ``close-the-books-eu``, a second one ``close-the-books-eu-2``.
    """
    base = next(filter(None, map(_slug, names)), "job")
    key, number = base, 1
    while key in used_keys:
        number += 1
        key = f"{base}-{number}"
    return key[:KEY_MAX]


def _slug(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", text)[:_MADE_MAX].strip("-")


def variable_name(*words: str) -> str:
    """Return the name of a variable for a secret: ``OPS_SLACK_URL``; it does not start with a digit."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper()).strip("_") or "SECRET"
    return f"_{name}" if name[0].isdigit() else name
