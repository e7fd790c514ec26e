"""Templates of the trace: matching, and one for every reason of the resolver."""

import re
from itertools import product

from app.domain.enums import Delivery, FireState
from app.domain.runs.evidence import Evidence, ResolveAction, Sign, decide
from app.domain.runs.trace_templates import CHILDREN, LINES, REASONS, RESULTS, WHYS, fill, find_template
from app.domain.text.texts import Text
from executor_client.wire.protocol import Reply
from tests.support.truth_table import truth_table

AT = "2026-11-20 08:00:00.250 +0800"


@truth_table(
    "line, values",
    [
        (f"Trigger: CRON, due {AT}, seen by node a, b", {"trigger": "CRON", "instant": AT, "node": "a, b"}),
        (f"Trigger: MANUAL, due {AT}", {"trigger": "MANUAL", "instant": AT}),
        (f"Claimed: {AT} (12 ms after due), node one", {"instant": AT, "ms": "12", "node": "one"}),
        (f"Claimed: {AT}, node one", {"instant": AT, "node": "one"}),
        ("Addresses: registered []", {"addresses": ""}),
        ("Addresses: registered [http://[::1]:9999, http://a]", {"addresses": "http://[::1]:9999, http://a"}),
        ("Addresses: entered [http://a, http://b and 3 more]", {"addresses": "http://a, http://b", "n": "3"}),
        (
            "Route: SHARDING_BROADCAST (1/3); block strategy: COVER_EARLY; timeout: 5 s; retries left: 2",
            {"route": "SHARDING_BROADCAST", "shard": "1/3", "block": "COVER_EARLY", "seconds": "5", "n": "2"},
        ),
        (
            "Route: ROUND; block strategy: None; timeout: 0 s; retries left: 0",
            {"route": "ROUND", "block": "None", "seconds": "0", "n": "0"},
        ),
        (">>> trigger <<<", {}),
        (
            "Probe beat http://a: no, no answer in time (301 ms)",
            {"action": "beat", "address": "http://a", "reason": "no answer in time", "ms": "301"},
        ),
        ("Result: accepted, answered after 3 ms, code 200", {"fate": "accepted", "ms": "3", "code": "200"}),
        (
            "Result: refused, answered after 3 ms, code -1: a: b",
            {"fate": "refused", "ms": "3", "code": "-1", "reason": "a: b"},
        ),
        (
            f"Result: not sent, no executor of a; b is registered; the last one was seen {AT}",
            {"app": "a; b", "instant": AT},
        ),
        ("Result: not sent, no executor of a; b is registered", {"app": "a; b"}),
        (
            "Resolver: send again, delivery is at_least_once",
            {"outcome": "send again", "reason": "delivery is at_least_once"},
        ),
    ],
)
def test_a_line_is_found_with_its_parts(line: str, values: dict[str, str]) -> None:
    found = find_template(line, LINES)
    assert found is not None
    assert found.values == values
    assert found.msgid % found.values == line


@truth_table(
    "line",
    [
        "",
        "Trigger type: CRON",
        "Sent to: ",
        "任务触发类型：Cron触发",
        "Claimed: yesterday, node one",
        ">>> other <<<",
        "x" * 20_000,
    ],
)
def test_other_lines_have_no_template(line: str) -> None:
    assert find_template(line, LINES) is None


TABLES = ("lines", "reasons", "whys", "results", "children")
#: a text for each parameter of a template
VALUES = {
    "instant": AT,
    "trigger": "CRON",
    "route": "ROUND",
    "block": "COVER_EARLY",
    "shard": "1/3",
    "action": "idleBeat",
    "address": "http://a",
    "addresses": "http://a, http://b",
    "fate": "accepted",
    "outcome": "send again",
    "sign": "no trace",
} | dict.fromkeys(("ms", "n", "all", "more", "seconds", "code"), "12")


@truth_table("table", [LINES, REASONS, WHYS, RESULTS, CHILDREN])
def test_a_filled_template_is_found_with_its_values(table: list[Text]) -> None:
    """Written and read with one table: no template hides another."""
    for template in table:
        values = {name: VALUES.get(name, "x") for name in re.findall(r"%\((\w+)\)s", template)}
        assert find_template(fill(template, **values), table) == (template, values)


def test_every_reason_the_resolver_writes_has_a_template() -> None:
    reasons = set()
    booleans = (True, False)
    for state, delivery, sign, durable, registered in product(
        (FireState.UNKNOWN, FireState.ACCEPTED), Delivery, Sign, booleans, booleans
    ):
        for probes, attempt, age_ms, reachable in product(
            (0, 1, 9), (1, 3, 10), (0, 6_000, 30_000), booleans
        ):
            evidence = Evidence(
                state, delivery, sign, durable, registered, probes, attempt, age_ms, reachable
            )
            if (decision := decide(evidence)).action is not ResolveAction.WAIT:
                reasons.add(decision.reason)
    assert len(reasons) > 15
    assert sorted(reason for reason in reasons if find_template(reason, REASONS) is None) == []


@truth_table("content", [b"", b"<html>", b'{"a":1}'])
@truth_table("status", [200, 404, 502])
def test_what_the_client_makes_of_an_invalid_answer_has_a_template(status: int, content: bytes) -> None:
    assert find_template(Reply.parse(status, content).msg or "", WHYS) is not None


@truth_table(
    "text, templates",
    [
        ("killed by alice: ok", RESULTS),
        ("killed by alice", RESULTS),
        ("handle code 503 reported; busy\nand more", RESULTS),
        (">>> child jobs <<<", CHILDREN),
        ("1/2 job 7: triggered", CHILDREN),
        ("2/2 job x y: not triggered: not the id of another job", CHILDREN),
    ],
)
def test_our_part_of_a_result_has_a_template(text: str, templates: tuple[str, ...]) -> None:
    found = find_template(text, templates)  # type: ignore[arg-type]
    assert found is not None
    assert found.msgid % found.values == text
