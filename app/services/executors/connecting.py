"""Connecting an executor: its access token, and refused attempts to register it. Administrators only."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.domain.access.permissions import Actor, require_admin
from app.models.group import Group
from app.services.auditing import audit
from app.store.accounts import audit as store

#: attempts are shown for this long
SHOWN_MS: Millis = 10 * MINUTE_MS
#: entries read, and attempts shown
READ_MAX, SHOWN_MAX = 100, 5
#: those of executors that may well be registered
OF_CONNECTED = ("refused.other_run", "refused.no_result")
ACTIONS = ("refused.no_token", "refused.token", "refused.registration", *OF_CONNECTED)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Refused registration, or results that are not stored."""

    #: source address
    address: str
    #: one of ACTIONS
    action: str
    at_ms: Millis
    #: why a registration with a valid token was refused, as the executor got it; what its results lack
    reason: str

    @property
    def is_of_connected(self) -> bool:
        """Whether it came from an executor that may well be registered."""
        return self.action in OF_CONNECTED


def reveal_token(
    session: Session, group: Group | None, *, global_token: str, actor: Actor, now_ms: Millis
) -> str:
    """Return the token that executors of a group (None: of one to be added) send; audited."""
    require_admin(actor)
    group_tokens = group.tokens if group is not None else ()
    target = ("group", group.id) if group is not None and group_tokens else ("", 0)
    audit.record(session, "group.token_show", actor=actor, now_ms=now_ms, target=target)
    return group_tokens[0] if group_tokens else global_token


def find_refused(session: Session, app_name: str, *, actor: Actor, now_ms: Millis) -> Sequence[Attempt]:
    """Return the latest refused attempts to register as ``app_name``, one of a kind and source address."""
    require_admin(actor)
    attempts: dict[tuple[str, str], Attempt] = {}
    for entry in store.find_recent(session, ACTIONS, since_ms=now_ms - SHOWN_MS, limit=READ_MAX):
        detail = audit.changes_of(entry)
        if detail.get("app_name") == app_name:
            attempt = Attempt(entry.address, entry.action, entry.at_ms, detail.get("reason") or "")
            attempts.setdefault((entry.address, entry.action), attempt)
    return list(attempts.values())[:SHOWN_MAX]
