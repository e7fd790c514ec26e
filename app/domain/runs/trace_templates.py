"""Trace templates: our own sentences in the dispatch trace and result of a run.

The pipeline writes them in English (``fill``), and scripts read them in English. The console finds the
template of a stored sentence (``find_template``) to show it in the user's language. A text without a
template, such as one from an executor, is shown unchanged.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from app.domain.text.texts import N_, Text

#: lines of `trigger_msg`; the first that matches applies
LINES: list[Text] = []
#: reasons within a line and within NO_EVIDENCE: of the resolver, and of a request without an answer
WHYS: list[Text] = []
#: texts that the console and the pipeline write into `handle_msg`
RESULTS: list[Text] = []
#: lines about child jobs at the end of `handle_msg`
CHILDREN: list[Text] = []


def _in(table: list[Text], template: Text) -> Text:
    table.append(template)
    return template


TRIGGER_SEEN = _in(LINES, N_("Trigger: %(trigger)s, due %(instant)s, seen by node %(node)s"))
TRIGGER = _in(LINES, N_("Trigger: %(trigger)s, due %(instant)s"))
REQUEST = _in(LINES, N_("Request: %(request)s"))
CLAIMED_AFTER = _in(LINES, N_("Claimed: %(instant)s (%(ms)s ms after due), node %(node)s"))
CLAIMED_BEFORE = _in(LINES, N_("Claimed: %(instant)s (%(ms)s ms before due), node %(node)s"))
CLAIMED_AGAIN = _in(LINES, N_("Claimed: %(instant)s, node %(node)s"))
#: ``limit``: a name, ``job`` or ``executor group``; the runs that had the slots when it began to wait
WAITED_BEHIND = _in(LINES, N_("Waited: %(seconds)s s for limit %(limit)s (behind other runs)"))
WAITED_REPLACING = _in(LINES, N_("Waited: %(seconds)s s until the runs before it were ended (%(runs)s)"))
WAITED_FOR = _in(
    LINES, N_("Waited: %(seconds)s s for limit %(limit)s (%(used)s of %(slots)s: runs %(runs)s)")
)
WAITED = _in(LINES, N_("Waited: %(seconds)s s for limit %(limit)s (%(used)s of %(slots)s)"))
FORCED = _in(LINES, N_("Limits: not asked, forced by a user"))
KEY_UNFILLED = _in(
    LINES, N_("Limits: the key %(key)s cannot be filled in from the parameter; counted as empty")
)
REGISTERED_MORE = _in(LINES, N_("Addresses: registered [%(addresses)s and %(n)s more]"))
REGISTERED = _in(LINES, N_("Addresses: registered [%(addresses)s]"))
ENTERED_MORE = _in(LINES, N_("Addresses: entered [%(addresses)s and %(n)s more]"))
ENTERED = _in(LINES, N_("Addresses: entered [%(addresses)s]"))
DRAINED_ONE = _in(LINES, N_("Drained: 1 address left out [%(addresses)s]"))
DRAINED_MORE = _in(LINES, N_("Drained: %(n)s addresses left out [%(addresses)s and %(more)s more]"))
DRAINED = _in(LINES, N_("Drained: %(n)s addresses left out [%(addresses)s]"))
DRAINED_ENTERED_ONE = _in(LINES, N_("Drained: 1 address used anyway, entered for this run [%(addresses)s]"))
DRAINED_ENTERED_MORE = _in(
    LINES, N_("Drained: %(n)s addresses used anyway, entered for this run [%(addresses)s and %(more)s more]")
)
DRAINED_ENTERED = _in(LINES, N_("Drained: %(n)s addresses used anyway, entered for this run [%(addresses)s]"))
ROUTE = _in(
    LINES,
    N_("Route: %(route)s; block strategy: %(block)s; timeout: %(seconds)s s; retries left: %(n)s"),
)
ROUTE_SHARD = _in(
    LINES,
    N_(
        "Route: %(route)s (%(shard)s); block strategy: %(block)s; timeout: %(seconds)s s; retries left: %(n)s"
    ),
)
TRIGGERING = _in(LINES, N_(">>> trigger <<<"))
SENT_AGAIN = _in(LINES, N_(">>> sent again, attempt %(n)s <<<"))
PROBE_YES = _in(LINES, N_("Probe %(action)s %(address)s: yes, %(reason)s (%(ms)s ms)"))
PROBE_NO = _in(LINES, N_("Probe %(action)s %(address)s: no, %(reason)s (%(ms)s ms)"))
SENT_TO = _in(LINES, N_("Sent to: %(address)s"))
ANSWERED = _in(LINES, N_("Result: %(fate)s, answered after %(ms)s ms, code %(code)s"))
ANSWERED_WITH = _in(LINES, N_("Result: %(fate)s, answered after %(ms)s ms, code %(code)s: %(reason)s"))
UNANSWERED = _in(LINES, N_("Result: %(fate)s, no answer after %(ms)s ms, code %(code)s"))
UNANSWERED_WITH = _in(LINES, N_("Result: %(fate)s, no answer after %(ms)s ms, code %(code)s: %(reason)s"))
GROUP_GONE = _in(LINES, N_("Result: not sent, the executor group of this job no longer exists"))
NONE_REGISTERED_SINCE = _in(
    LINES,
    N_("Result: not sent, no executor of %(app)s is registered; the last one was seen %(instant)s"),
)
NONE_REGISTERED = _in(LINES, N_("Result: not sent, no executor of %(app)s is registered"))
ONLY_ONE_DRAINED = _in(
    LINES, N_("Result: not sent, no executor of %(app)s takes new runs: its only address is drained")
)
ALL_DRAINED = _in(
    LINES, N_("Result: not sent, no executor of %(app)s takes new runs: all %(n)s addresses are drained")
)
NONE_ENTERED = _in(
    LINES, N_("Result: not sent, none of the addresses entered for this run is one of %(app)s now")
)
NO_CANDIDATE = _in(LINES, N_("Result: not sent, no executor is available"))
UNWRITABLE = _in(LINES, N_("Result: not sent, the database refuses the data of this run: %(reason)s"))
LEASE_EXPIRED = _in(LINES, N_("Result: not sent, the lease expired"))
NOT_FILLED = _in(LINES, N_("Result: not sent, %(reason)s"))
UNREPORTED = _in(LINES, N_("Result: unknown, node %(node)s never reported"))
RESOLVED = _in(LINES, N_("Resolver: %(outcome)s, %(reason)s"))
CUT = _in(LINES, N_("… (cut) …"))

NO_EVIDENCE = N_("no evidence within %(seconds)s s; %(why)s")
EXECUTOR_HAS_IT = _in(WHYS, N_("the executor has the run: %(sign)s"))
EXECUTOR_IS = _in(WHYS, N_("the executor is %(sign)s"))
STARTS_ONCE = _in(WHYS, N_("the executor starts a log id at most once"))
NOT_STARTED = _in(WHYS, N_("idle and without a log in %(n)s checks, %(ms)s ms apart: not started"))
AT_MOST_ONCE = _in(WHYS, N_("delivery is at_most_once"))
AT_LEAST_ONCE = _in(WHYS, N_("delivery is at_least_once"))
EXECUTOR_SILENT = _in(
    WHYS, N_("delivery is at_least_once, and the executor has not answered for %(seconds)s s")
)
EXECUTOR_GONE = _in(WHYS, N_("delivery is at_least_once, and the executor is gone"))
REPEAT_LOST = _in(WHYS, N_("delivery is at_least_once, and its result is lost"))
LOST_AT_MOST_ONCE = _in(WHYS, N_("accepted, then lost before it started; delivery is at_most_once"))
LOST_BEFORE_START = _in(
    WHYS, N_("accepted, then lost before it started: idle and without a log in two checks")
)
RESULT_LOST = _in(WHYS, N_("result lost: the run has ended, and no result arrived within 90 s"))
RUN_LOST = _in(
    WHYS,
    N_("result lost: no sign of the run, the executor is %(sign)s, and no result arrived within 90 s"),
)
LOST = _in(WHYS, N_("the database has lost its last commits, perhaps the result too"))
RESTORED = _in(WHYS, N_("the database was restored from a backup made while the run was open"))
REPEATED = _in(WHYS, N_("%(said)s (the executor already has this run)"))
PERHAPS_OURS = _in(WHYS, N_("%(said)s (perhaps busy with the first send of this run)"))
NO_CONNECTION = _in(WHYS, N_("no connection in time"))
NO_ANSWER = _in(WHYS, N_("no answer in time"))
OTHER_CHOSEN = _in(WHYS, N_("no answer before another was chosen"))
CLOSED = _in(WHYS, N_("the connection was closed before an answer arrived"))
CONNECTION_REFUSED = _in(WHYS, N_("connection refused: nothing listens on this port"))
NAME_OUTSIDE = _in(
    WHYS, N_("the host name resolves to %(peer)s, outside the networks of XXL_JOB_EXECUTOR_NETWORKS")
)
NAME_UNKNOWN = _in(WHYS, N_("the host name %(host)s does not resolve"))
ADDRESS_REFUSED = _in(WHYS, N_("address '%(address)s' refused: %(reason)s"))
ADDRESS_TOO_LONG = _in(WHYS, N_("it is longer than %(limit)s characters"))
ADDRESS_NOT_HTTP = _in(WHYS, N_("it must start with http:// or https://"))
ADDRESS_MORE_PARTS = _in(WHYS, N_("it must not contain a user, a query or a fragment"))
ADDRESS_OTHER_CHARACTERS = _in(WHYS, N_("it contains characters that are not allowed in an address"))
ADDRESS_LOW_PORT = _in(WHYS, N_("port %(port)s is not allowed; 80, 443 and %(first)s to 65535 are"))
ADDRESS_NO_HOST = _in(WHYS, N_("its host is neither a name nor an IP address"))
ADDRESS_INVALID = _in(WHYS, N_("its host or port is invalid"))
ADDRESS_OUTSIDE = _in(WHYS, N_("it is outside the networks of XXL_JOB_EXECUTOR_NETWORKS"))
#: why a parameter could not be filled in; raised by app.domain.parameters
NO_PARENT = _in(WHYS, N_("parameter not filled: %(at)s: the run has no parent"))
NO_RESULT = _in(WHYS, N_("parameter not filled: %(at)s: run %(id)s has no result"))
RESULT_NO_JSON = _in(WHYS, N_("parameter not filled: %(at)s: the result of run %(id)s is not JSON"))
RESULT_WAS_CUT = _in(WHYS, N_("parameter not filled: %(at)s: the result of run %(id)s was cut"))
RESULT_HAS_NO = _in(WHYS, N_("parameter not filled: %(at)s: the result of run %(id)s has no %(path)s"))
SHARDS_HAVE_NO = _in(WHYS, N_("parameter not filled: %(at)s: the list of the shards has no %(path)s"))
PARAMETER_NO_JSON = _in(WHYS, N_("parameter not filled: %(at)s: the parameter is not JSON"))
PARAMETER_HAS_NO = _in(WHYS, N_("parameter not filled: %(at)s: the parameter has no %(path)s"))
NO_VARIABLE = _in(WHYS, N_("parameter not filled: %(at)s: variable %(name)s does not exist"))
NO_SECRET = _in(WHYS, N_("parameter not filled: %(at)s: secret %(name)s does not exist"))
SECRET_SEALED = _in(WHYS, N_("parameter not filled: %(at)s: secret %(name)s cannot be opened"))
YEAR_OUT_OF_RANGE = _in(WHYS, N_("parameter not filled: %(at)s: year out of range"))
ZONE_UNKNOWN = _in(WHYS, N_("parameter not filled: %(at)s: this host has no time zone %(name)s"))
FILLED_TOO_LONG = _in(WHYS, N_("parameter not filled: longer than 60,000 bytes"))
TEMPLATE_INVALID = _in(WHYS, N_("parameter not filled: %(reason)s"))
#: written by executor_client.wire.protocol.Reply.parse, in place of an executor's own text
REPLIES = [
    N_("the answer is empty"),
    N_("no usable answer: %(said)s"),
    N_("HTTP status %(code)s: %(said)s"),
    N_("HTTP status %(code)s"),
]
WHYS += REPLIES

#: reasons within a line
REASONS = [NO_EVIDENCE, *WHYS]

KILLED_SAYING = _in(RESULTS, N_("killed by %(user)s: %(said)s"))
KILLED = _in(RESULTS, N_("killed by %(user)s"))
BAD_CODE_SAYING = _in(RESULTS, N_("handle code %(code)s reported; %(said)s"))
BAD_CODE = _in(RESULTS, N_("handle code %(code)s reported"))
LOST_WITH_EXECUTOR = _in(RESULTS, N_("result lost: the executor is not registered any more"))

#: head of the lines about child jobs
CHILDREN_HEAD = _in(CHILDREN, N_(">>> child jobs <<<"))
CHILD_TRIGGERED = _in(CHILDREN, N_("%(n)s/%(all)s job %(id)s: triggered"))
CHILD_GONE = _in(CHILDREN, N_("%(n)s/%(all)s job %(id)s: not triggered: there is no such job"))
CHILD_INVALID = _in(CHILDREN, N_("%(n)s/%(all)s job %(id)s: not triggered: not the id of another job"))

NUMBER, WORD = r"\d{1,19}", r"\S{1,300}"
#: pattern of each parameter; a parameter that is not listed can be any text
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
    "request": WORD,
    "user": WORD,
    "fate": r"[a-z]+",
    "outcome": r"[a-z ]+",
    "sign": r"[a-z ]+",
}


class TemplateMatch(NamedTuple):
    """Template of a stored sentence, with the values of its parameters."""

    msgid: str
    values: dict[str, str]


def fill(template: Text, **values: object) -> Text:
    """Return the English sentence, which remains translatable."""
    return Text(template.msgid, values)


def write(template: Text, **values: object) -> str:
    """Return the same as plain text, which takes less time: for lines that are only stored."""
    return template.msgid % values


def find_template(text: str, templates: Iterable[Text]) -> TemplateMatch | None:
    """Return the template a text was written from; None if there is none."""
    for template in templates:
        match = _pattern(template.msgid).fullmatch(text)
        if match is not None:
            return TemplateMatch(template.msgid, match.groupdict())
    return None


@cache
def _pattern(msgid: str) -> re.Pattern[str]:
    parts = re.split(r"%\((\w+)\)s", msgid)
    texts = [
        re.escape(part) if number % 2 == 0 else f"(?P<{part}>{SHAPES.get(part, '.*')})"
        for number, part in enumerate(parts)
    ]
    return re.compile("".join(texts), re.DOTALL)
