"""Access tokens of the executor API: global ones and those of groups, compared in constant time."""

import hmac
import threading
from hashlib import sha256

from app.clock import Millis, monotonic_ms
from app.db import read_scope
from app.store import groups

#: group tokens are cached this long
CACHE_MS: Millis = 5_000


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class TokenBook:
    """Valid access tokens, with a cache of the group tokens. Thread-safe."""

    def __init__(self, global_tokens: tuple[str, ...]) -> None:
        self._global = [_digest(token) for token in global_tokens]
        self._groups: dict[str, bytes] = {}
        self._read_ms: Millis | None = None
        self._lock = threading.Lock()

    def accepts(self, token: str, app_name: str | None = None) -> bool:
        """Return whether a token is valid; a group with its own token accepts only that one."""
        given = _digest(token)
        own = self._of_groups()
        if app_name is not None and app_name in own:
            return hmac.compare_digest(given, own[app_name])
        known = self._global if app_name is not None else [*self._global, *own.values()]
        # a list: all digests are compared, so that the time does not depend on the match
        matches = [hmac.compare_digest(given, digest) for digest in known]
        return True in matches

    def _of_groups(self) -> dict[str, bytes]:
        with self._lock:
            if self._read_ms is None or monotonic_ms() - self._read_ms > CACHE_MS:
                with read_scope() as session:
                    self._groups = {
                        app_name: _digest(token) for app_name, token in groups.list_tokens(session).items()
                    }
                self._read_ms = monotonic_ms()
            return self._groups
