"""Fingerprints: short hashes of stored values, by which a save notices another change."""

import json
from hashlib import sha256

from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile

#: characters of a fingerprint
LENGTH = 32


def fingerprint(value: object) -> str:
    """Return the fingerprint of what is stored, as JSON has it."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:LENGTH]


def require_unchanged(former: str, value: object) -> None:
    """Raise ChangedMeanwhile unless ``former`` is the fingerprint of the value; empty: not compared."""
    present = fingerprint(value)
    if former and former != present:
        raise ChangedMeanwhile(N_("This was changed after you had opened it."), present=present)
