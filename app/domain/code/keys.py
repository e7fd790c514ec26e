"""Generated keys of jobs as code: made from names, for objects that have none yet."""

import re
import unicodedata
from collections.abc import Iterable

#: longest key that is made, which leaves room for a number
_MADE_MAX = 60


class UsedKeys:
    """Keys of the jobs of a group, and those that are made beside them."""

    def __init__(self) -> None:
        self._keys = set[str]()
        #: base of made keys -> the last number, because thousands of jobs may have one name
        self._numbers: dict[str, int] = {}

    def add(self, key: str) -> None:
        """Add a key that is in use."""
        self._keys.add(key)

    def make(self, names: Iterable[str]) -> str:
        """Return a new key, made from the first of the ``names`` with letters or digits.

        ``"Close the books (EU)"`` becomes ``close-the-books-eu``, a second one ``close-the-books-eu-2``.
        """
        base = next(filter(None, map(_slug, names)), "job")
        number = self._numbers.get(base, 1)
        while (key := base if number == 1 else f"{base}-{number}") in self._keys:
            number += 1
        self._numbers[base] = number
        self._keys.add(key)
        return key


def _slug(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", text)[:_MADE_MAX].strip("-")


def variable_name(*words: str) -> str:
    """Return the name of a variable for a secret: ``OPS_SLACK_URL``; it does not start with a digit."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper()).strip("_") or "SECRET"
    return f"_{name}" if name[0].isdigit() else name
