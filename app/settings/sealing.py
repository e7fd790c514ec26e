"""Sealing: encryption of stored secrets, and fingerprints, with the application key of this process.

The sealed form is ``enc1:`` and a Fernet token (AES-128 in CBC mode with HMAC-SHA-256). Keys are derived
from the application key by HKDF-SHA-256, a different one for each purpose. ``cryptography`` is loaded for the
first secret: it costs a process 6 MB.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

#: marks sealed texts; another algorithm gets another number
PREFIX = "enc1:"
#: unsealed texts kept per key: those of all groups are read every few milliseconds
UNSEALED_KEPT = 4_096
#: characters of a fingerprint
FINGERPRINT_LENGTH = 16


class CannotUnseal(Exception):
    """A text was sealed with another key or too long ago, or has been changed."""


class Sealer:
    """Seals texts with an application key, which is read at the first use. Thread-safe."""

    def __init__(self, read_key: Callable[[], str]) -> None:
        self._read_key = read_key
        self._unseal_cached = lru_cache(UNSEALED_KEPT)(self._unseal)

    def seal(self, text: str) -> str:
        """Return the sealed form of a text, each time another one."""
        return PREFIX + self._fernet.encrypt(text.encode()).decode()

    def unseal(self, text: str) -> str:
        """Return the text of a sealed form; one without the prefix is returned unchanged.

        Raises CannotUnseal.
        """
        return self._unseal_cached(text) if is_sealed(text) else text

    def seal_dated(self, text: str, *, purpose: bytes, now_s: int) -> str:
        """Return a text sealed together with the time, in seconds since 1970, for one purpose."""
        return self._fernet_for(purpose).encrypt_at_time(text.encode(), now_s).decode()

    def unseal_dated(self, token: str, *, purpose: bytes, now_s: int, max_age_s: int) -> str:
        """Return the text of ``seal_dated``. Raises CannotUnseal, also for one older than ``max_age_s``."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet_for(purpose).decrypt_at_time(token.encode(), max_age_s, now_s).decode()
        except InvalidToken as exc:
            raise CannotUnseal from exc

    def fingerprint(self, text: str) -> str:
        """Return a fingerprint that can be neither compared nor tried out without the application key."""
        return hmac.new(self._fingerprint_key, text.encode(), sha256).hexdigest()[:FINGERPRINT_LENGTH]

    def code_of(self, content: bytes, *, purpose: bytes) -> str:
        """Return the authentication code that the application key gives a content, for one purpose."""
        return hmac.new(self._derive(purpose), content, sha256).hexdigest()

    @property
    def key_fingerprint(self) -> str:
        """Fingerprint of the application key itself."""
        return self._derive(b"fingerprint of the key").hex()[:FINGERPRINT_LENGTH]

    def _unseal(self, text: str) -> str:
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(text.removeprefix(PREFIX)).decode()
        except InvalidToken as exc:
            raise CannotUnseal from exc

    @cached_property
    def _fernet(self) -> "Fernet":
        return self._fernet_for(b"stored secrets")

    @cached_property
    def _fingerprint_key(self) -> bytes:
        return self._derive(b"fingerprints")

    def _fernet_for(self, purpose: bytes) -> "Fernet":
        from cryptography.fernet import Fernet

        return Fernet(urlsafe_b64encode(self._derive(purpose)))

    def _derive(self, purpose: bytes) -> bytes:
        """Return 32 bytes by HKDF-SHA-256 without a salt: one block of its expansion."""
        root_key = hmac.digest(bytes(sha256().digest_size), self._read_key().encode(), "sha256")
        return hmac.digest(root_key, b"xxl-job " + purpose + b"\x01", "sha256")


def is_sealed(text: str) -> bool:
    """Whether a stored text is in the sealed form."""
    return text.startswith(PREFIX)


class _Process:
    """Sealer of this process, set when the engine is bound."""

    def __init__(self) -> None:
        self.sealer: Sealer | None = None


_process = _Process()


def use_key(read_key: Callable[[], str]) -> None:
    """Set where the application key comes from; it is read when a secret is sealed or read."""
    _process.sealer = Sealer(read_key)


def sealer() -> Sealer:
    """Return the sealer of this process."""
    if _process.sealer is None:
        raise RuntimeError("no engine is bound")
    return _process.sealer
