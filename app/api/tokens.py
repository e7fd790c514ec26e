"""Access tokens of the executor API: global ones and those of groups, compared in constant time."""

import hmac
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from app.clock import Millis, monotonic_ms
from app.db import read_scope
from app.domain.token_scope import TokenScope
from app.store import groups

#: group tokens are cached this long
CACHE_MS: Millis = 5_000


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def _matches(given: bytes, known: Iterable[bytes]) -> bool:
    # a list: all digests are compared, so that the time does not depend on the match
    return True in [hmac.compare_digest(given, digest) for digest in known]


@dataclass(frozen=True, slots=True)
class _GroupTokens:
    """A group with a token of its own: the digests it takes, two while the token is being replaced."""

    group_id: int
    app_name: str
    digests: tuple[bytes, ...]


class TokenBook:
    """Valid access tokens, with a cache of the group tokens. Thread-safe."""

    def __init__(self, global_tokens: tuple[str, ...]) -> None:
        self._global = [_digest(token) for token in global_tokens]
        self._groups: list[_GroupTokens] = []
        self._protected: frozenset[int] = frozenset()
        self._read_ms: Millis | None = None
        self._lock = threading.Lock()

    def find_scope(self, token: str) -> TokenScope | None:
        """Return the groups a token acts for, None if it is unknown."""
        given = _digest(token)
        own, protected = self._of_groups()
        scope = TokenScope(
            _matches(given, self._global),
            frozenset([group.group_id for group in own if _matches(given, group.digests)]),
            protected,
        )
        return scope if scope.is_global or scope.own else None

    def accepts(self, token: str, app_name: str) -> bool:
        """Return whether a token acts for an application; a group with its own token accepts only that."""
        own = [group for group in self._of_groups()[0] if group.app_name == app_name]
        known = [digest for group in own for digest in group.digests] if own else self._global
        return _matches(_digest(token), known)

    def _of_groups(self) -> tuple[list[_GroupTokens], frozenset[int]]:
        with self._lock:
            if self._read_ms is None or monotonic_ms() - self._read_ms > CACHE_MS:
                with read_scope() as session:
                    self._groups = [
                        _GroupTokens(group.id, group.app_name.strip(), tuple(map(_digest, group.tokens)))
                        for group in groups.find_with_token(session)
                    ]
                self._protected = frozenset(group.group_id for group in self._groups)
                self._read_ms = monotonic_ms()
            return self._groups, self._protected
