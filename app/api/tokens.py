"""Access tokens of the executor API: global ones and those of groups, compared in constant time."""

import hmac
import logging
import threading
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.clock import Millis, monotonic_ms
from app.database.engine import read_scope
from app.database.faults import fault_log
from app.domain.executors.token_scope import TokenScope
from app.store.executors import groups

logger = logging.getLogger(__name__)

#: lifetime of cached group tokens
CACHE_MS: Millis = 5_000
#: delay before group tokens are read again after a failure
RETRY_MS: Millis = 1_000


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def _matches(token_digest: bytes, known_digests: Iterable[bytes]) -> bool:
    # The list compares all digests, so that the time does not depend on the match.
    return True in [hmac.compare_digest(token_digest, digest) for digest in known_digests]


@dataclass(frozen=True, slots=True)
class _GroupTokens:
    """A group with its own token: the valid digests, two while the token is being replaced."""

    group_id: int
    app_name: str
    digests: tuple[bytes, ...]


class _Snapshot(NamedTuple):
    """Snapshot of all groups with their own token."""

    groups: Sequence[_GroupTokens]
    #: ids of these groups
    protected_ids: frozenset[int]


class TokenBook:
    """Valid access tokens, with a cache of the group tokens. Thread-safe.

    One thread at a time reads the database; meanwhile, and while it cannot be read, the tokens read last are
    valid. Before the first time all threads wait for that one, and get its error.
    """

    def __init__(self, global_tokens: tuple[str, ...]) -> None:
        self._global = [_digest(token) for token in global_tokens]
        self._snapshot: _Snapshot | None = None
        #: error of the latest read, if it failed
        self._error: Exception | None = None
        #: monotonic time of the next read
        self._next_ms: Millis | None = None
        self._reading = threading.Lock()

    def find_scope(self, token: str) -> TokenScope | None:
        """Return the groups a token acts for, None if it is unknown."""
        digest, snapshot = _digest(token), self._current()
        scope = TokenScope(
            _matches(digest, self._global),
            frozenset([group.group_id for group in snapshot.groups if _matches(digest, group.digests)]),
            snapshot.protected_ids,
        )
        return scope if scope.is_global or scope.own else None

    def accepts(self, token: str, app_name: str) -> bool:
        """Return whether a token acts for an application; a group with its own token accepts only that."""
        own_groups = [group for group in self._current().groups if group.app_name == app_name]
        digests = [digest for group in own_groups for digest in group.digests] if own_groups else self._global
        return _matches(_digest(token), digests)

    def _current(self) -> _Snapshot:
        if self._is_due() and self._reading.acquire(blocking=self._snapshot is None):
            try:
                if self._is_due():  # no other thread has read them meanwhile
                    self._read()
            finally:
                self._reading.release()
        if self._snapshot is None:
            assert self._error is not None
            raise copy(self._error) from None  # each raise of one exception would lengthen its traceback
        return self._snapshot

    def _is_due(self) -> bool:
        return self._next_ms is None or monotonic_ms() > self._next_ms

    def _read(self) -> None:
        try:
            with read_scope() as session:
                rows = [
                    _GroupTokens(group.id, group.app_name.strip(), tuple(map(_digest, group.tokens)))
                    for group in groups.find_with_token(session)
                ]
        except Exception as exc:  # for any error the last snapshot stays valid
            if self._snapshot is not None:
                _log_failure(exc, earlier=self._error)
            elif not isinstance(exc, SQLAlchemyError):
                raise
            self._error, self._next_ms = exc, monotonic_ms() + RETRY_MS
            return
        self._snapshot = _Snapshot(rows, frozenset([group.group_id for group in rows]))
        self._error, self._next_ms = None, monotonic_ms() + CACHE_MS


def _log_failure(error: Exception, *, earlier: Exception | None) -> None:
    """Log a failed read; an error that is no database fault only if it differs from the last one."""
    if isinstance(error, DBAPIError):
        fault_log.write(logger, "group tokens not read", error)
    elif repr(error) != repr(earlier):  # such as no free connection
        is_known = isinstance(error, SQLAlchemyError)
        logger.error('group tokens not read reason="%s"', error, exc_info=None if is_known else error)
