"""Calls to executors: parts shared by both clients, ``dispatch_client`` (asyncio) and ``gateway`` (blocking).

Headers, limits of responses and reasons of failures are defined here, the address rule in ``addresses``.
"""

import errno
import re
import socket
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from app.clock import Millis
from app.domain.runs.trace_templates import CONNECTION_REFUSED, NAME_UNKNOWN, fill
from app.domain.text.texts import Text
from app.errors import InvalidInput
from app.executors.addresses import check_address, join
from app.settings.config import Network
from executor_client.wire.protocol import (
    APPNAME_HEADER,
    CONTENT_TYPE,
    FAIL,
    MSG_BAD_TOKEN,
    SUCCESS,
    TOKEN_HEADER,
    Reply,
)

#: longest response read, in bytes: of /run, /beat, /idleBeat and /kill; of /log
REPLY_MAX = 64 * 1024
LOG_REPLY_MAX = 512 * 1024
#: answers to a wrong token, up to 3.4 and from 3.5 on. Source: docs/reference/protocol.md, section 8
TOKEN_REFUSALS = frozenset(
    {(FAIL, MSG_BAD_TOKEN), (FAIL, "invalid request, accessToken or appname invalid.")}
)
#: tokens of a peer that must not receive any
NO_TOKEN = ("",)
#: longest reason of a failed call, in characters
REASON_MAX = 300
#: no free file descriptor in this process, or on this host; no memory
LACKS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Peer(NamedTuple):
    """An executor to call, with AppName and token for its request headers."""

    address: str
    app_name: str
    token: str
    #: previous token, which the executor may still have; sent if it refuses the current one; empty: none
    former_token: str = ""

    def __repr__(self) -> str:
        """Identify the executor without its token."""
        return f"Peer({self.address!r}, {self.app_name!r})"

    def with_former_token(self) -> "Peer":
        """Return the executor with the token before as its only one."""
        return self._replace(token=self.former_token, former_token="")


class Delivery(StrEnum):
    """Whether the executor may have received the request."""

    #: the executor responded
    ANSWERED = "answered"
    #: not received: no byte was written
    NO = "no"
    #: not tried: this host lacks files or memory for a connection, which says nothing of the executor
    UNTRIED = "untried"
    #: unknown: bytes were written, but no complete response arrived
    PERHAPS = "perhaps"


class CallOutcome(NamedTuple):
    """Outcome of one call: ``reply`` if the executor responded, ``reason`` otherwise."""

    delivery: Delivery
    reply: Reply | None
    reason: str
    took_ms: Millis
    #: boot id in responses of our own executors; empty for others
    boot_id: str = ""


def prepare(peer: Peer, action: str, networks: tuple[Network, ...]) -> tuple[SplitResult, dict[str, str]]:
    """Check a call; return its URL, and the headers that both clients send. Raises InvalidInput."""
    check_address(peer.address, networks)
    headers = {
        "Content-Type": CONTENT_TYPE,
        TOKEN_HEADER: _header("accessToken", peer.token),
        APPNAME_HEADER: _header("appname", peer.app_name),
    }
    return urlsplit(join(peer.address, action)), headers


def is_to_repeat(peer: Peer, reply: Reply | None) -> bool:
    """Whether a call is repeated with the token before.

    Only after an answer that executors give before they look at the request, so that nothing ran.
    """
    return bool(peer.former_token) and reply is not None and refuses_token(reply)


def refusal_of(reply: Reply) -> str:
    """Return why an executor has refused a call; empty if it has not."""
    return "" if reply.code == SUCCESS else reply.msg or f"code {reply.code}"


def refuses_token(reply: Reply) -> bool:
    """Whether an executor has refused a request for its token, before reading its content."""
    return (reply.code, reply.msg) in TOKEN_REFUSALS


def _header(field: str, text: str) -> str:
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
        raise InvalidInput(field, "it contains characters that are not allowed in a header")
    return text.encode().decode(
        "latin-1"
    )  # both clients encode headers as latin-1, so the bytes arrive as UTF-8


def reason_of(error: BaseException, host: str | None) -> str:
    """Return why a call failed, in one line; a reason raised by our own code is returned unchanged."""
    if isinstance(error, ConnectionRefusedError):
        return CONNECTION_REFUSED
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        return fill(NAME_UNKNOWN, host=host)
    own = next((text for text in error.args if isinstance(text, Text)), None)
    return own or str(error)[:REASON_MAX] or type(error).__name__
