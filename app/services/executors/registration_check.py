"""Check of a registration that an executor would send: its group, and one call back to its address.

Called by ``python -m executor_client check``. Nothing is stored.
"""

import logging
import os
import threading

from app.clock import MINUTE_MS, monotonic_ms
from app.database.engine import read_scope
from app.domain.access.call_rate import CallRate
from app.domain.enums import AddressType
from app.domain.text.texts import Text
from app.errors import Conflict, ExecutorUnreachable
from app.executors.calls import Peer, refusal_of, refuses_token
from app.executors.gateway import Gateway
from app.settings.config import Network
from app.store.executors import groups
from executor_client.wire.protocol import RegistryRequest
from executor_client.wire.registration_check import RegistrationCheck

logger = logging.getLogger(__name__)

#: calls back per minute on average, and at once
A_MINUTE, BURST = 20, 5
#: seconds for the call back
TIMEOUT_S = 3.0
TOO_MANY = "too many checks at a time; run it again in a few seconds"
NO_EXECUTOR = "what answers there is not an executor"
OTHER_TOKEN = "the executor there has another access token"


class RegistrationChecks:
    """Checks of one console process: one call back at a time, and few a minute. Thread-safe.

    Without that bound, the holder of a token could use the console to find open ports of its networks.
    """

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._gateway = Gateway(networks)
        self._rate = CallRate(A_MINUTE, MINUTE_MS, burst=BURST)
        self._calling = threading.Lock()

    def check(self, request: RegistryRequest, token: str) -> RegistrationCheck:
        """Return the result for an acceptable registration with an accepted token.

        The address is called only if runs would be sent to it, and with the token of the request, which the
        caller knows. Raises Conflict for too many calls.
        """
        with read_scope() as session:
            matches = groups.find_by_app_name(session, request.registry_key)
            address = request.registry_value.strip().rstrip("/")
            is_listed = any(
                group.address_type == AddressType.AUTOMATIC
                or address in [own_address.rstrip("/") for own_address in group.addresses]
                for group in matches
            )
        if not is_listed:
            return RegistrationCheck(bool(matches))
        if not self._calling.acquire(blocking=False):
            raise Conflict(TOO_MANY)
        try:
            if self._rate.take(at_ms=monotonic_ms()):
                raise Conflict(TOO_MANY)
            problem = self._call_back(Peer(request.registry_value, request.registry_key, token))
        finally:
            self._calling.release()
        logger.info(
            "address checked app_name=%s address=%s problem=%s",
            request.registry_key,
            request.registry_value,
            problem or "-",
        )
        return RegistrationCheck(True, True, True, problem)

    def _call_back(self, peer: Peer) -> str:
        """Return why the address cannot be used, "" if an executor answers; nothing of a foreign answer."""
        try:
            reply = self._gateway.beat(peer, timeout_s=TIMEOUT_S)
        except ExecutorUnreachable as exc:
            return _reason(exc)
        if refuses_token(reply):
            return OTHER_TOKEN
        return NO_EXECUTOR if refusal_of(reply) else ""


def _reason(error: ExecutorUnreachable) -> str:
    """Return one of our own reasons or that of the operating system: others may quote what answered."""
    if isinstance(error.reason, Text):
        return str(error.reason)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return NO_EXECUTOR
