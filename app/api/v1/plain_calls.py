"""Plain calls: triggers that ``app.fast_triggers`` answers, like earlier ones of the same token."""

from dataclasses import dataclass

from pydantic import ValidationError

from app.api.v1 import idempotency
from app.api.v1.bodies import read_body
from app.api.v1.rates import RateLimit
from app.api.v1.run_answers import waiting_answer
from app.api.v1.schemas.runs import TriggerIn
from app.clock import Millis, monotonic_ms
from app.errors import InvalidInput, RetryLater
from app.services.accounts.api_tokens import ApiCaller
from app.services.jobs.jobs import QueuedRun


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A caller whose token and right were checked."""

    caller: ApiCaller
    limit: RateLimit

    def goes_on(self, now_ms: Millis) -> bool:
        """Count a request; whether the token is valid and has not made too many."""
        if 0 < self.caller.expires_ms <= now_ms:
            return False
        try:
            self.limit.take(self.caller.token_id, at_ms=monotonic_ms())
        except RetryLater:
            return False
        return True

    def key_of(self, text: str, path: str, body: bytes) -> idempotency.Key | None:
        """Return the key of a POST to ``path``, without parameters; None: it cannot be used."""
        if not idempotency.is_well_formed(text):
            return None
        return idempotency.make_key(text, ("POST", path + "?", body), self.caller.token_id)


def read_plain(body: bytes) -> TriggerIn | None:
    """Return how to run a job; None: not now on any instance of its group, or the body is invalid."""
    try:
        asked = read_body(TriggerIn, body)
    except (ValidationError, InvalidInput):
        return None
    return None if asked.addresses or asked.at is not None or asked.in_s is not None else asked


def answer_of(run: QueuedRun) -> bytes:
    """Return the body of the answer about a run that was just queued."""
    return waiting_answer(run).model_dump_json().encode()
