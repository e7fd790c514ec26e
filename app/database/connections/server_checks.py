"""Checks of a database server before it is used: its product and its version."""

import re

from app.errors import NotConfigured

#: oldest versions with what the scheduler needs: SKIP LOCKED, on MariaDB RETURNING
_OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 6), "PostgreSQL": (12, 0)}
#: products that pass for MySQL or PostgreSQL, by a word of their version -> what they lack
_UNSUITABLE = {
    "TiDB": "it accepts SKIP LOCKED and locks nothing, so that two nodes would send the same run",
    "CockroachDB": "its advisory locks have no effect, so that two upgrades would run at once",
}
_USABLE = "MySQL, MariaDB or PostgreSQL"


def require_suitable(version: str) -> None:
    """Raise NotConfigured for the version text of a server whose locks cannot be relied on.

    ``"8.0.11-TiDB-v8.5.6"``
    """
    for product, reason in _UNSUITABLE.items():
        if re.search(rf"\b{product}\b", version, re.IGNORECASE):
            raise NotConfigured(f"{product} ({version[:40]}) is not supported: {reason}; use {_USABLE}")


def require_version(product: str, version: tuple[int, ...] | None) -> None:
    """Raise NotConfigured if a version of a product, such as ``(10, 11, 6)``, is too old."""
    if version is not None and version < _OLDEST[product]:
        actual, oldest = (".".join(map(str, numbers)) for numbers in (version, _OLDEST[product]))
        raise NotConfigured(f"{product} {actual} is too old, expected {oldest} or later")
