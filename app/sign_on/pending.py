"""Pending sign-ons: a sealed cookie ties the provider's answer to the browser that started it."""

import json
import secrets
from dataclasses import dataclass

from app.clock import SECOND_MS, Millis
from app.settings.sealing import CannotUnseal, sealer

#: seconds between the start and the provider's answer
PENDING_S = 600
PURPOSE = b"pending sign-ons"


@dataclass(frozen=True, slots=True)
class Pending:
    """Secrets of one sign-on, random for each."""

    #: returned by the provider with the code
    state: str
    #: returned inside the ID token
    nonce: str
    #: proves to the provider that the code is redeemed by the client that requested it (PKCE)
    verifier: str


def new_pending() -> Pending:
    """Return the secrets of a new sign-on, of 256 bits each."""
    return Pending(*(secrets.token_urlsafe(32) for _ in range(3)))


def seal(pending: Pending, *, now_ms: Millis) -> str:
    """Return the value of the cookie."""
    text = json.dumps([pending.state, pending.nonce, pending.verifier])
    return sealer().seal_dated(text, purpose=PURPOSE, now_s=now_ms // SECOND_MS)


def unseal(cookie: str, *, now_ms: Millis) -> Pending | None:
    """Return the pending sign-on of a cookie; None if it is forged or older than PENDING_S."""
    now_s = now_ms // SECOND_MS
    try:
        text = sealer().unseal_dated(cookie, purpose=PURPOSE, now_s=now_s, max_age_s=PENDING_S)
    except CannotUnseal:
        return None
    return Pending(*json.loads(text))
