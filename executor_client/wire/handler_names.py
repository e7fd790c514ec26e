"""Handler names: the known one that a mistyped one means, for both sides."""

import difflib
from collections.abc import Iterable

#: likeness, from 0 to 1, from which a name is suggested
CLOSE = 0.6


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the name that differs least, whatever its case and separators; "" if none is close."""
    by_stem = {_stem(known_name): known_name for known_name in names}
    near = difflib.get_close_matches(_stem(name), by_stem, n=1, cutoff=CLOSE)
    return by_stem[near[0]] if near else ""


def _stem(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
