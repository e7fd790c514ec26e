"""What an answer, a time-out or a probe says of a run: accepted, refused, unknown; started, not started.

Source: spec/reliability.md (definite refusal, acceptance, ambiguous) and spec/clients.md A4, A5.
"""

from dataclasses import dataclass
from enum import StrEnum

from executor_client.protocol import MSG_DISCARD_LATER, SUCCESS, Reply, says_repeated

#: statuses of proxies that may have handed the request on
AMBIGUOUS_STATUS = ("HTTP status 502", "HTTP status 504")


class Fate(StrEnum):
    """What became of one send."""

    ACCEPTED = "accepted"
    #: definite: the executor does not have the run
    REFUSED = "refused"
    #: the executor may or may not have it
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fate of one send, and the words for it."""

    fate: Fate
    code: int
    text: str


def judge_answer(reply: Reply, *, attempt: int) -> Verdict:
    """Judge an answer to ``/run``; ``attempt`` counts the sends of this run from 1."""
    text = reply.msg or ""
    if reply.code == SUCCESS:
        return Verdict(Fate.ACCEPTED, reply.code, text)
    if says_repeated(reply):
        return Verdict(Fate.ACCEPTED, SUCCESS, f"{text} (it has this run already)")
    if text.startswith(AMBIGUOUS_STATUS):
        return Verdict(Fate.UNKNOWN, reply.code, text)
    if attempt > 1 and text.startswith(MSG_DISCARD_LATER):
        return Verdict(Fate.UNKNOWN, reply.code, f"{text} (what keeps it busy may be our own first send)")
    return Verdict(Fate.REFUSED, reply.code, text)


def judge_silence(*, delivered: bool, reason: str) -> Verdict:
    """Judge a call without an answer; ``delivered`` False: surely no byte of the request was written."""
    return Verdict(Fate.UNKNOWN if delivered else Fate.REFUSED, 500, reason)
