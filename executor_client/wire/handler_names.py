"""Handler names: the known one that a mistyped one means, for both sides."""

import difflib
from collections.abc import Iterable
from itertools import islice

#: likeness, from 0 to 1, from which a name is suggested
CLOSE = 0.6
#: names that are compared: each takes up to a millisecond
NAMES_MAX = 1_000


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the name that differs least, whatever its case and separators; "" if none is close.

    Beyond the first NAMES_MAX only one without other differences counts.
    """
    stem, by_stem = _stem(name), {_stem(known_name): known_name for known_name in names}
    if stem in by_stem:
        return by_stem[stem]
    near = difflib.get_close_matches(stem, islice(by_stem, NAMES_MAX), n=1, cutoff=CLOSE)
    return by_stem[near[0]] if near else ""


def _stem(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
