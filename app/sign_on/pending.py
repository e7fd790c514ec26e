"""Pending sign-ons: what ties the provider's answer to the browser that started it, sealed in a cookie."""

import base64
import hmac
import json
import secrets
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken

from app.clock import SECOND_MS, Millis

#: seconds between the start and the provider's answer
PENDING_S = 600


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


class Sealer:
    """Encrypts and signs pending sign-ons with a key derived from the application key."""

    def __init__(self, application_key: str) -> None:
        derived = hmac.digest(application_key.encode(), b"sign-on", "sha256")
        self._fernet = Fernet(base64.urlsafe_b64encode(derived))

    def seal(self, pending: Pending, *, now_ms: Millis) -> str:
        """Return the value of the cookie."""
        text = json.dumps([pending.state, pending.nonce, pending.verifier])
        return self._fernet.encrypt_at_time(text.encode(), now_ms // SECOND_MS).decode()

    def unseal(self, sealed: str, *, now_ms: Millis) -> Pending | None:
        """Return the pending sign-on of a cookie; None if it is forged or older than PENDING_S."""
        try:
            text = self._fernet.decrypt_at_time(sealed.encode(), PENDING_S, now_ms // SECOND_MS)
        except InvalidToken:
            return None
        return Pending(*json.loads(text))
