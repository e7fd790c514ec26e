"""Calls to executors: what both clients share, ``dispatch_client`` (asyncio) and ``gateway`` (blocking).

The address rule, the headers, the bounds of an answer and the reasons of a failure are defined here and in ``addresses``,
once.
"""

import re
import socket
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from app.clock import Millis
from app.config import Network
from app.domain.texts import Text
from app.domain.trace_templates import CONNECTION_REFUSED, NAME_UNKNOWN, fill
from app.errors import InvalidInput
from app.executors.addresses import check_address, join
from executor_client.protocol import APPNAME_HEADER, CONTENT_TYPE, TOKEN_HEADER, Reply

#: longest answer read, in bytes: of /run, /beat, /idleBeat and /kill, and of /log
REPLY_MAX = 64 * 1024
LOG_REPLY_MAX = 512 * 1024
#: longest reason of a failed call, in characters
REASON_MAX = 300


class Peer(NamedTuple):
    """An executor to call, with the name and the token it knows us by."""

    address: str
    app_name: str
    token: str

    def __repr__(self) -> str:
        """Name the executor; the token stays out of logs."""
        return f"Peer({self.address!r}, {self.app_name!r})"


class Prepared(NamedTuple):
    """A call that may be made: its URL, and the headers both clients send."""

    url: SplitResult
    headers: dict[str, str]


class Delivered(StrEnum):
    """Whether the executor can have received the request."""

    #: an answer came
    ANSWERED = "answered"
    #: certainly not: no byte was written
    NO = "no"
    #: perhaps: bytes were written, no complete answer came
    PERHAPS = "perhaps"


class CallOutcome(NamedTuple):
    """Outcome of one call: ``reply`` if an answer came, ``reason`` otherwise."""

    delivered: Delivered
    reply: Reply | None
    reason: str
    took_ms: Millis
    #: boot id our own executors answer with; empty for others
    boot_id: str = ""


def prepare(peer: Peer, action: str, networks: tuple[Network, ...]) -> Prepared:
    """Check the address and the headers of a call. Raises InvalidInput."""
    check_address(peer.address, networks)
    headers = {
        "Content-Type": CONTENT_TYPE,
        TOKEN_HEADER: _header("accessToken", peer.token),
        APPNAME_HEADER: _header("appname", peer.app_name),
    }
    return Prepared(urlsplit(join(peer.address, action)), headers)


def _header(field: str, text: str) -> str:
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise InvalidInput(field, "it contains characters that are not allowed in a header")
    return text


def reason_of(error: BaseException, host: str | None) -> str:
    """Return why a call failed, in one line; a reason that our own code raised stays as it is."""
    if isinstance(error, ConnectionRefusedError):
        return CONNECTION_REFUSED
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        return fill(NAME_UNKNOWN, host=host)
    own = next((text for text in error.args if isinstance(text, Text)), None)
    return own or str(error)[:REASON_MAX] or type(error).__name__
