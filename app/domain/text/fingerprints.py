"""Fingerprints: short values that change with what is stored, so that a save can notice another change."""

import json
from hashlib import sha256

from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile

#: characters of a fingerprint
LENGTH = 32


def fingerprint(stored: object) -> str:
    """Return the fingerprint of what is stored, as JSON has it."""
    return sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()[:LENGTH]


def require_unchanged(loaded: str, stored: object) -> None:
    """Raise ChangedMeanwhile unless ``loaded`` is the fingerprint of what is stored; empty: not compared."""
    present = fingerprint(stored)
    if loaded and loaded != present:
        raise ChangedMeanwhile(N_("This was changed after you had opened it."), present=present)
