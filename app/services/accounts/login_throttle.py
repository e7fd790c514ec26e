"""Login throttle: counters of failed attempts by account and by source address, and the waits they cause.

A source from which an account has logged in has a counter of its own for that account: others who guess the
password cannot lock the user out there.
"""

from hashlib import sha256
from ipaddress import ip_address, ip_network

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.text.texts import N_
from app.errors import TooManyAttempts
from app.models.throttle import SUBJECT_MAX, Throttle
from app.store.accounts import throttle

#: failures of an account before it has to wait; the first wait, doubled each time; the longest
FREE_FAILURES = 5
FIRST_WAIT_MS = SECOND_MS
LONGEST_WAIT_MS = 15 * MINUTE_MS
#: failures of an account are forgotten after this time without an attempt
FORGET_AFTER_MS = DAY_MS
#: a source is known to an account for this time after its last attempt
KNOWN_MS = 90 * DAY_MS
#: characters of a digest of the account in the subject of a known source
DIGEST_LENGTH = 32
#: failures of a source address within the window before it has to wait for the window's end
ADDRESS_FAILURES = 50
ADDRESS_WINDOW_MS = 5 * MINUTE_MS


def account_subject(username: str) -> str:
    """Return the key of an account's failure counter."""
    return f"account:{username.casefold()[:100]}"


def address_subject(address: str) -> str:
    """Return the key of a source's failure counter; an IPv6 /64 network is one source."""
    try:
        ip = ip_address(address)
    except ValueError:
        return f"address:{address[:100]}"
    ip = getattr(ip, "ipv4_mapped", None) or ip  # a proxy on a dual-stack socket; all would share one /64
    return f"address:{ip}" if ip.version == 4 else f"address:{ip_network((ip, 64), strict=False)}"


def forget_failures(session: Session, username: str) -> None:
    """Reset the failure counter of an account, which then knows no source."""
    throttle.delete_counter(session, account_subject(username))
    throttle.delete_below(session, _known_by(username))


def _known_by(username: str) -> str:
    """Return the common beginning of the keys of the sources that an account knows."""
    digest = sha256(account_subject(username).encode()).hexdigest()
    return f"{throttle.KNOWN}{digest[:DIGEST_LENGTH]}:"


def _known_subject(username: str, address: str) -> str:
    """Return the key of an account's failure counter for a source from which it has logged in."""
    return (_known_by(username) + address_subject(address))[:SUBJECT_MAX]


def count_failures(session: Session, username: str, address: str) -> int:
    """Return the failures of an account that count for a source."""
    counter = throttle.find_counter(session, _known_subject(username, address))
    counter = counter or throttle.find_counter(session, account_subject(username))
    return counter.failures if counter else 0


def reserve_attempt(
    session: Session, username: str, address: str, *, now_ms: Millis, is_logged_in: bool = False
) -> None:
    """Count an attempt as failed before it is checked, so that parallel attempts all count.

    ``is_logged_in``: the user is, wherever from, so that the source counts as known.
    """
    subject = _known_subject(username, address)
    if not is_logged_in and throttle.find_counter(session, subject) is None:
        subject = account_subject(username)
    account = throttle.lock_counter(session, subject, now_ms=now_ms)
    source = throttle.lock_counter(session, address_subject(address), now_ms=now_ms)
    require_no_wait(max(account.blocked_until_ms, source.blocked_until_ms), now_ms=now_ms)
    _count_failure(account, forget_after_ms=FORGET_AFTER_MS, since_ms=account.last_ms, now_ms=now_ms)
    count_source_failure(source, now_ms=now_ms)
    if account.failures >= FREE_FAILURES:
        doublings = min(account.failures - FREE_FAILURES, 20)
        account.blocked_until_ms = now_ms + min(FIRST_WAIT_MS << doublings, LONGEST_WAIT_MS)


def require_no_wait(blocked_until_ms: Millis, *, now_ms: Millis) -> None:
    """Raise TooManyAttempts before the end of a wait."""
    if wait_s := remaining_s(blocked_until_ms, now_ms=now_ms):
        raise TooManyAttempts(
            N_("Too many failed logins; try again in %(seconds)s s", seconds=wait_s), retry_after_s=wait_s
        )


def remaining_s(blocked_until_ms: Millis, *, now_ms: Millis) -> int:
    """Return the seconds until the end of a wait; 0: over, or set while the clock was ahead."""
    left_ms = blocked_until_ms - now_ms
    return -(-left_ms // SECOND_MS) if 0 < left_ms <= 2 * LONGEST_WAIT_MS else 0


def count_source_failure(source: Throttle, *, now_ms: Millis) -> None:
    """Count a failed login of a source address, which has to wait after ADDRESS_FAILURES."""
    _count_failure(source, forget_after_ms=ADDRESS_WINDOW_MS, since_ms=source.first_ms, now_ms=now_ms)
    if source.failures >= ADDRESS_FAILURES:
        source.blocked_until_ms = source.first_ms + ADDRESS_WINDOW_MS


def _count_failure(counter: Throttle, *, forget_after_ms: Millis, since_ms: Millis, now_ms: Millis) -> None:
    if abs(now_ms - since_ms) >= forget_after_ms:  # or counted while the clock was ahead
        counter.failures, counter.first_ms, counter.blocked_until_ms = 0, now_ms, 0
    counter.failures += 1
    counter.last_ms = now_ms


def release_attempt(session: Session, username: str, address: str, *, now_ms: Millis) -> None:
    """Undo the count of a successful attempt; its source is known to the account from now on.

    What others have failed elsewhere goes on to count there.
    """
    subject = _known_subject(username, address)
    if throttle.find_counter(session, subject) is None:
        throttle.delete_counter(session, account_subject(username))
    own_counter = throttle.lock_counter(session, subject, now_ms=now_ms)
    own_counter.failures, own_counter.last_ms, own_counter.blocked_until_ms = 0, now_ms, 0
    source = throttle.lock_counter(session, address_subject(address), now_ms=now_ms)
    source.failures = max(source.failures - 1, 0)
    if source.failures < ADDRESS_FAILURES:
        source.blocked_until_ms = 0
