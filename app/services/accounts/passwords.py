"""Hashes of passwords: Argon2id, in the texts that ``app.domain.access.stored_passwords`` describes."""

import functools
import hashlib
import hmac
import secrets
import threading

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.domain.access.stored_passwords import (
    FIRST_PREFIX,
    MD5_PREFIX,
    SHA256_PREFIX,
    UNUSABLE,
    is_bare,
)

_hasher = PasswordHasher()
#: limits parallel hashes: each takes 64 MiB, and a burst of logins must not exhaust the memory
_hashing = threading.BoundedSemaphore(4)


def hash_password(password: str, *, must_change: bool = False) -> str:
    """Return the stored form of a new password."""
    return (FIRST_PREFIX if must_change else "") + _argon2(password)


def wrap(hash_text: str) -> str:
    """Hash a bare hash with Argon2id; return anything else unchanged."""
    if not is_bare(hash_text):
        return hash_text
    prefix = MD5_PREFIX if len(hash_text) == 32 else SHA256_PREFIX
    return prefix + _argon2(hash_text.lower())


def verify(hash_text: str | None, password: str) -> bool:
    """Whether ``password`` matches; takes the same time for None (no such user) and UNUSABLE."""
    if hash_text == UNUSABLE:
        hash_text = None
    if hash_text is None or is_bare(hash_text):
        _matches(_dummy(), password)
        return hash_text is not None and hmac.compare_digest(
            fast_hash(password, len(hash_text)), hash_text.lower()
        )
    text = hash_text.removeprefix(FIRST_PREFIX)
    for prefix, length in ((MD5_PREFIX, 32), (SHA256_PREFIX, 64)):
        if text.startswith(prefix):
            return _matches(text.removeprefix(prefix), fast_hash(password, length))
    return _matches(text, password)


def is_outdated(hash_text: str) -> bool:
    """Whether to hash the password again at its next use: wrapped, bare or with weaker parameters."""
    text = hash_text.removeprefix(FIRST_PREFIX)
    try:
        return _hasher.check_needs_rehash(text)
    except InvalidHashError:
        return True


def fast_hash(password: str, length: int) -> str:
    """Return the bare hash of an adopted database in lower-case hex; ``length`` is one of BARE_LENGTHS."""
    make = hashlib.md5 if length == 32 else hashlib.sha256
    return make(password.encode(), usedforsecurity=False).hexdigest()


def _argon2(text: str) -> str:
    with _hashing:
        return _hasher.hash(text)


def _matches(hash_text: str, text: str) -> bool:
    try:
        with _hashing:
            return _hasher.verify(hash_text, text)
    except (VerificationError, InvalidHashError):
        return False


@functools.cache
def _dummy() -> str:
    return _argon2(secrets.token_hex(16))
