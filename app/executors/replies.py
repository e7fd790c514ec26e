"""What came of one call to an executor, as a value."""

from enum import StrEnum
from typing import NamedTuple

from app.clock import Millis
from executor_client.protocol import Reply

#: longest answer read: of /run, /beat, /idleBeat and /kill, and of /log
REPLY_MAX = 64 * 1024
LOG_REPLY_MAX = 512 * 1024


class Delivered(StrEnum):
    """Can the executor have got the request."""

    #: an answer came
    ANSWERED = "answered"
    #: surely not: no byte was written
    NO = "no"
    #: perhaps: bytes left, no whole answer came
    PERHAPS = "perhaps"


class CallOutcome(NamedTuple):
    """The outcome of one call; ``reply`` is there when an answer came, ``reason`` otherwise."""

    delivered: Delivered
    reply: Reply | None
    reason: str
    took_ms: Millis
    #: boot id our own executors answer with; empty for others
    boot_id: str = ""
