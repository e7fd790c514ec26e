"""The sentences the pipeline tells a run's trace in, as templates: what was stored in English is found again by them, to be said
in the reader's language. A sentence that none of them fits, such as an executor's own, is left as it is.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from app.domain.texts import N_, Text

#: a line of `trigger_msg`; of two that fit a line the first is meant
LINES = (
    N_("Trigger: %(trigger)s, due %(instant)s, seen by node %(node)s"),
    N_("Trigger: %(trigger)s, due %(instant)s"),
    N_("Claimed: %(instant)s (%(ms)s ms after due), node %(node)s"),
    N_("Claimed: %(instant)s, node %(node)s"),
    N_("Addresses: registered [%(addresses)s and %(n)s more]"),
    N_("Addresses: registered [%(addresses)s]"),
    N_("Addresses: entered [%(addresses)s and %(n)s more]"),
    N_("Addresses: entered [%(addresses)s]"),
    N_("Drained: 1 address left out [%(addresses)s]"),
    N_("Drained: %(n)s addresses left out [%(addresses)s and %(more)s more]"),
    N_("Drained: %(n)s addresses left out [%(addresses)s]"),
    N_("Drained: 1 address entered for this run all the same [%(addresses)s]"),
    N_("Drained: %(n)s addresses entered for this run all the same [%(addresses)s and %(more)s more]"),
    N_("Drained: %(n)s addresses entered for this run all the same [%(addresses)s]"),
    N_("Route: %(route)s; block strategy: %(block)s; timeout: %(seconds)s s; retries left: %(n)s"),
    N_(
        "Route: %(route)s (%(shard)s); block strategy: %(block)s; timeout: %(seconds)s s; retries left: %(n)s"
    ),
    N_(">>> trigger <<<"),
    N_(">>> sent again, attempt %(n)s <<<"),
    N_("Probe %(action)s %(address)s: yes, %(reason)s (%(ms)s ms)"),
    N_("Probe %(action)s %(address)s: no, %(reason)s (%(ms)s ms)"),
    N_("Sent to: %(address)s"),
    N_("Result: %(fate)s, answered after %(ms)s ms, code %(code)s"),
    N_("Result: %(fate)s, answered after %(ms)s ms, code %(code)s: %(reason)s"),
    N_("Result: %(fate)s, no answer after %(ms)s ms, code %(code)s"),
    N_("Result: %(fate)s, no answer after %(ms)s ms, code %(code)s: %(reason)s"),
    N_("Result: not sent, the executor group of this job does not exist any more"),
    N_("Result: not sent, no executor of %(app)s is registered; the last one was seen %(instant)s"),
    N_("Result: not sent, no executor of %(app)s is registered"),
    N_("Result: not sent, no executor of %(app)s takes new runs: its only address is drained"),
    N_("Result: not sent, no executor of %(app)s takes new runs: all %(n)s addresses are drained"),
    N_("Result: not sent, no executor said yes"),
    N_("Result: not sent, the claim ran out"),
    N_("Result: unknown, node %(node)s never reported"),
    N_("Resolver: %(outcome)s, %(reason)s"),
    N_("… (cut) …"),
)
#: why a line says what it says: the resolver's reasons, and those of a call without an answer
WHYS = (
    N_("the executor has it: %(sign)s"),
    N_("the executor is %(sign)s"),
    N_("the executor starts a log id at most once"),
    N_("idle and without a log at %(n)s looks, %(ms)s ms apart: not started"),
    N_("delivery is at_most_once"),
    N_("delivery is at_least_once"),
    N_("delivery is at_least_once, and the executor has not answered for %(seconds)s s"),
    N_("delivery is at_least_once, and the executor is gone"),
    N_("delivery is at_least_once, and its result is lost"),
    N_("accepted, then lost before it began; delivery is at_most_once"),
    N_("accepted, then lost before it began: idle and without a log twice"),
    N_("result lost: the run began and is over, and no result came in 90 s"),
    N_("result lost: the run is not to be found, the executor is %(sign)s, and no result came in 90 s"),
    N_("%(said)s (it has this run already)"),
    N_("%(said)s (what keeps it busy may be our own first send)"),
    N_("no connection in time"),
    N_("no answer in time"),
    N_("not answered when another was chosen"),
    N_("the connection was closed before an answer came"),
    N_("the name %(host)s leads nowhere"),
    N_("the answer is empty"),
    N_("no usable answer: %(said)s"),
    N_("HTTP status %(code)s: %(said)s"),
)
REASONS = (N_("no evidence within %(seconds)s s; %(why)s"), *WHYS)
#: what the console and the pipeline write themselves into `handle_msg`
RESULTS = (
    N_("killed by %(user)s: %(said)s"),
    N_("killed by %(user)s"),
    N_("handle code %(code)s reported; %(said)s"),
    N_("handle code %(code)s reported"),
)
#: head of the lines about children at the end of `handle_msg`
CHILDREN_HEAD = N_(">>> child jobs <<<")
CHILDREN = (
    CHILDREN_HEAD,
    N_("%(n)s/%(all)s job %(id)s: triggered"),
    N_("%(n)s/%(all)s job %(id)s: not triggered: this is no id of another job"),
)

NUMBER, WORD = r"\d{1,19}", r"\S{1,300}"
#: what a parameter can be; any other is any text
SHAPES = {
    "ms": NUMBER,
    "n": NUMBER,
    "all": NUMBER,
    "more": NUMBER,
    "seconds": NUMBER,
    "code": r"-?\d{1,19}",
    "instant": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d{4}",
    "trigger": r"[A-Z_]+",
    "route": r"[A-Z_]+",
    "block": r"[^;]*",
    "shard": r"\d+/\d+",
    "action": r"[A-Za-z]+",
    "address": WORD,
    "addresses": r"[^\n]*?",
    "host": WORD,
    "user": WORD,
    "fate": r"[a-z]+",
    "outcome": r"[a-z ]+",
    "sign": r"[a-z ]+",
}


class Found(NamedTuple):
    """A sentence that was found: its template, and the texts in it."""

    msgid: str
    values: dict[str, str]


def find_sentence(text: str, templates: Sequence[Text]) -> Found | None:
    """Return which of the templates a text was written by; None where it is nobody's."""
    for template in templates:
        match = _pattern(template.msgid).fullmatch(text)
        if match is not None:
            return Found(template.msgid, match.groupdict())
    return None


@cache
def _pattern(msgid: str) -> re.Pattern[str]:
    parts = re.split(r"%\((\w+)\)s", msgid)
    texts = [
        re.escape(part) if number % 2 == 0 else f"(?P<{part}>{SHAPES.get(part, '.*')})"
        for number, part in enumerate(parts)
    ]
    return re.compile("".join(texts), re.DOTALL)
