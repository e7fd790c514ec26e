"""Refusals: a bounded number of audit entries about refused requests.

The first refusal of an action, source address and user is written at once. Further ones are counted, and the
count is written when the period ends; the period of a key that goes on doubles. Entries are written in
transactions of their own, by a thread once ``start`` was called, otherwise by the caller of ``note``. A
database that is away never fails or delays a refusal: the entries wait in memory.
"""

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from app.clock import MINUTE_MS, SECOND_MS, Millis, monotonic_ms
from app.database.engine import session_scope
from app.database.faults import AWAY, reason_of
from app.domain.access.permissions import Actor
from app.errors import ForeignValue, InvalidInput, NotVisible, PermissionDenied, XxlJobError
from app.runtime.logging import QuotedText
from app.services.auditing import audit
from executor_client.wire.lenient_json import as_text

logger = logging.getLogger(__name__)

#: period of a key after its first refusal; it doubles while the refusals go on
FIRST_PERIOD_MS: Millis = MINUTE_MS
LONGEST_PERIOD_MS: Millis = 60 * MINUTE_MS
#: keys of one action at a time; the refusals of further ones are only counted
KEYS_MAX = 50
#: most entries that wait for the database; further ones are lost
WAITING_MAX = 1_000
#: pause after a failed write
RETRY_MS: Millis = 10 * SECOND_MS
#: period of the thread
TICK_S = 5.0
#: longest part of a user name in a log line
NAME_MAX = 64
#: user and password in a URL
_USER_INFO = re.compile(r"//[^/\s]*@")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One audit entry; ``detail`` has no secrets."""

    action: str
    actor: Actor
    at_ms: Millis
    target: tuple[str, int] = ("", 0)
    detail: Mapping[str, Any] | None = None


@dataclass(slots=True)
class _Key:
    last: Refusal
    ends_ms: Millis
    period_ms: Millis = FIRST_PERIOD_MS
    #: refusals since the last entry
    count: int = 0


class Recorder:
    """Refusals of this process. Thread-safe; ``monotonic`` measures the periods."""

    def __init__(self, monotonic: Callable[[], Millis] = monotonic_ms) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str, str], _Key] = {}
        self._keys_of: Counter[str] = Counter()
        #: refusals beyond KEYS_MAX by action, and the last of them
        self._more: Counter[str] = Counter()
        self._last_more: Refusal | None = None
        self._more_ends_ms: Millis = 0
        self._waiting: list[Refusal] = []
        self._resume_ms: Millis | None = None
        self._logged_ms: Millis | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, refusal: Refusal) -> bool:
        """Record a refusal; return whether it is the first of its key."""
        with self._lock:
            is_first = self._count(refusal)
        if self._thread is None:
            self.flush()
        elif is_first:
            self._wake.set()
        return is_first

    def flush(self, *, last: bool = False) -> None:
        """Write the entries that are due; ``last``: all counts, because the process stops."""
        with self._lock:
            self._end_periods(everything=last)
            is_pause = self._resume_ms is not None and self._monotonic() < self._resume_ms
            if not self._waiting or (is_pause and not last):
                return
            batch, self._waiting, self._resume_ms = self._waiting, [], None
        try:
            _write(batch)
        except AWAY as exc:
            self._put_back(batch, exc)
        except SQLAlchemyError as exc:  # not caused by the state of the database: they would fail again
            logger.exception(
                "audit of refused requests dropped count=%s reason=%s", len(batch), type(exc).__name__
            )

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread = threading.Thread(target=self._run, name="refusals", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write the remaining entries, waiting a few seconds at most; end the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=TICK_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(TICK_S)
            self._wake.clear()
            self.flush(last=self._stopping.is_set())

    def _count(self, refusal: Refusal) -> bool:
        self._end_periods()
        name = (refusal.action, refusal.actor.address, refusal.actor.username.casefold())
        key = self._keys.get(name)
        if key is not None:
            key.last, key.count = refusal, key.count + 1
            return False
        if self._keys_of[refusal.action] >= KEYS_MAX:
            if not self._more:
                self._more_ends_ms = self._monotonic() + FIRST_PERIOD_MS
            self._more[refusal.action] += 1
            self._last_more = refusal
            return False
        self._keys[name] = _Key(refusal, self._monotonic() + FIRST_PERIOD_MS)
        self._keys_of[refusal.action] += 1
        self._put(refusal)
        return True

    def _end_periods(self, *, everything: bool = False) -> None:
        now_ms = self._monotonic()
        for name, key in list(self._keys.items()):
            if key.ends_ms > now_ms and not everything:
                continue
            if key.count:
                self._put(replace(key.last, detail={**(key.last.detail or {}), "count": key.count}))
                key.period_ms = min(2 * key.period_ms, LONGEST_PERIOD_MS)
                key.count, key.ends_ms = 0, now_ms + key.period_ms
            else:
                del self._keys[name]
                self._keys_of[name[0]] -= 1
        if self._last_more is not None and (everything or now_ms >= self._more_ends_ms):
            anyone = replace(self._last_more.actor, user_id=0, username="", address="")
            more = replace(self._last_more, action="refused.more", actor=anyone, target=("", 0))
            self._put(replace(more, detail=dict(self._more)))
            self._more.clear()
            self._last_more = None

    def _put(self, refusal: Refusal) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(refusal)

    def _put_back(self, batch: Sequence[Refusal], error: DBAPIError) -> None:
        with self._lock:
            now_ms = self._monotonic()
            self._waiting = [*batch, *self._waiting][:WAITING_MAX]
            self._resume_ms = now_ms + RETRY_MS
            is_logged = self._logged_ms is not None and now_ms - self._logged_ms < MINUTE_MS
            if not is_logged:
                self._logged_ms = now_ms
        if not is_logged:
            logger.error("refusals not written count=%s database_error=%s", len(batch), reason_of(error))


def _write(batch: Sequence[Refusal]) -> None:
    with session_scope() as session:
        for refusal in batch:
            audit.record(
                session,
                refusal.action,
                actor=refusal.actor,
                now_ms=refusal.at_ms,
                target=refusal.target,
                changes=refusal.detail,
            )


#: the recorder of this process
recorder = Recorder()


def note(
    action: str,
    actor: Actor,
    *,
    now_ms: Millis,
    target: tuple[str, int] = ("", 0),
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """Record a refusal, such as ``refused.admin``; return whether it is the first of its key for a while.

    Call it outside of transactions. ``target`` is kind and id of the object.
    """
    user = replace(actor, username=_clean(actor.username), address=_clean(actor.address))
    clean_detail = {name: _clean(value) for name, value in (detail or {}).items()}
    return recorder.note(Refusal(action, user, now_ms, target, clean_detail))


def note_error(
    error: XxlJobError,
    actor: Actor,
    *,
    now_ms: Millis,
    detail: Mapping[str, Any],
    for_admins: bool = False,
) -> None:
    """Record an error if it is a refusal; ``for_admins``: what was requested is for administrators only."""
    if isinstance(error, NotVisible):
        note("refused.object", actor, now_ms=now_ms, target=error.target, detail=detail)
    elif isinstance(error, PermissionDenied):
        note("refused.admin" if for_admins else "refused.right", actor, now_ms=now_ms, detail=detail)
    elif isinstance(error, InvalidInput):
        for item in error.errors:
            if isinstance(item, ForeignValue):
                wrong = {**detail, "field": item.field, "reason": str(item.message)}
                note("refused.value", actor, now_ms=now_ms, detail=wrong)


def log_login(username: str, address: str, reason: str) -> None:
    """Log a refused login in one line of a fixed form, for programs such as fail2ban.

    ``login refused address=10.0.0.1 username="admin" reason=password``: the name is a JSON string in ASCII;
    ``reason`` is a word.
    """
    source = re.sub(r"[^0-9A-Za-z.:%_-]", "?", address)[:NAME_MAX] or "-"
    logger.warning(
        "login refused address=%s username=%s reason=%s", source, QuotedText(username[:NAME_MAX]), reason
    )


def _clean(value: Any) -> Any:
    """Return a text without passwords of URLs and without characters that cannot be stored."""
    if not isinstance(value, str):
        return value
    return _USER_INFO.sub("//***@", as_text(value))
