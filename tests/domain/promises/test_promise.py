"""Promises: which of them hold for a job, and by when an instant is due for a look."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.domain.enums import PromiseKind
from app.domain.promises.planning import AHEAD_MS, OLD_MS, PlannedCheck, checks_of
from app.domain.promises.promise import (
    Promise,
    assign_numbers,
    due_ms_of,
    effective_promises,
    read_escalation,
    read_promises,
)
from tests.support.truth_table import truth_table

BERLIN = "Europe/Berlin"
STARTS = '{"kind":"starts_within","s":60}'
EVERY = '{"kind":"succeeds_every","s":3600}'
FAILS = '{"kind":"fails_at_most","n":2,"then":"switch_off"}'


def at(text: str, zone: str = BERLIN) -> Millis:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


@truth_table(
    "own, of_group, schedule, kinds",
    [
        (None, None, "CRON", []),
        ("[]", f"[{STARTS}]", "CRON", ["starts_within 60"]),
        (f"[{STARTS}]", None, "CRON", ["starts_within 60"]),
        # the group's hold only for kinds that the job has none of
        (
            '[{"kind":"starts_within","s":5}]',
            f"[{STARTS},{EVERY}]",
            "CRON",
            ["starts_within 5", "succeeds_every 3600"],
        ),
        # a job without times that follow from its schedule does not get the group's either
        (None, f"[{STARTS},{EVERY}]", "NONE", ["succeeds_every 3600"]),
        (None, f"[{STARTS},{EVERY}]", "FIX_DELAY", ["succeeds_every 3600"]),
        (f"[{STARTS},{STARTS}]", None, "CRON", ["starts_within 60"]),
    ],
)
def test_own_promises_replace_those_of_the_group_by_kind(
    own: str | None, of_group: str | None, schedule: str, kinds: list[str]
) -> None:
    promises = effective_promises(own, of_group, schedule)
    assert [f"{promise.kind} {promise.s}" for promise in promises] == kinds


def test_a_promise_is_known_again_by_its_definition() -> None:
    (promise,) = read_promises(f"[{FAILS}]")
    assert promise == Promise(PromiseKind.FAILS_AT_MOST, n=2, then="switch_off")
    assert read_promises(f"[{promise.definition}]") == (promise,)


def test_numbers_stay_with_their_promises() -> None:
    starts, every, fails = read_promises(f"[{STARTS},{EVERY},{FAILS}]")
    assert assign_numbers([starts, every], {}, ()) == {1: starts, 2: every}
    known = {starts.definition: 1, every.definition: 2}
    assert assign_numbers([fails, every], known, {1, 2}) == {3: fails, 2: every}


@truth_table(
    "text, due",
    [
        ("06:00", "2024-05-03T06:00"),
        ("23:30", "2024-05-02T23:30"),
        ("22:00", "2024-05-03T22:00"),
        ("06:00+1d", "2024-05-04T06:00"),
        ("23:30+2d", "2024-05-04T23:30"),
    ],
)
def test_a_wall_clock_time_is_the_first_after_the_instant(text: str, due: str) -> None:
    promise = Promise(PromiseKind.FINISHES_BY, at=text)
    assert due_ms_of(promise, at("2024-05-02T22:00"), BERLIN) == at(due)


@truth_table(
    "instant, text, due",
    [
        # 02:30 is left out in the night to 2024-03-31: the first instant after the gap
        ("2024-03-30T22:00", "02:30", "2024-03-31T01:00+00:00"),
        # and comes twice in the night to 2024-10-27: the first of them
        ("2024-10-26T22:00", "02:30", "2024-10-27T00:30+00:00"),
    ],
)
def test_a_wall_clock_time_at_a_change_of_clocks(instant: str, text: str, due: str) -> None:
    expected = int(datetime.fromisoformat(due).timestamp()) * 1000
    assert due_ms_of(Promise(PromiseKind.FINISHES_BY, at=text), at(instant), BERLIN) == expected


def test_an_escalation_is_read() -> None:
    assert read_escalation(None) is None
    assert read_escalation("null") is None
    escalation = read_escalation('{"channel":"on call","after_minutes":5}')
    assert escalation is not None
    assert (escalation.channel, escalation.after_minutes) == ("on call", 5)


NOW: Millis = at("2024-05-02T12:00")
WITHIN = Promise(PromiseKind.STARTS_WITHIN, s=10)


def planned(instants: list[Millis]) -> list[PlannedCheck]:
    return [*checks_of(WITHIN, instants, time_zone=BERLIN, now_ms=NOW)]


def test_each_instant_has_a_check() -> None:
    assert planned([NOW + 1_000, NOW + 61_000]) == [
        (NOW + 1_000, NOW + 1_000, NOW + 11_000),
        (NOW + 61_000, NOW + 61_000, NOW + 71_000),
    ]


def test_the_instants_of_a_frequent_schedule_share_checks() -> None:
    instants = [*range(NOW, NOW + AHEAD_MS, 1_000)]
    checks = planned(instants)
    assert len(checks) == 120
    assert checks[0] == (NOW, NOW + 4_000, NOW + 14_000)


def test_instants_of_long_ago_have_one_check() -> None:
    """After a stop of all nodes for a weekend there is one incident, not thousands."""
    old = [NOW - 2 * OLD_MS - number * 60_000 for number in range(500, 0, -1)]
    checks = planned([*old, NOW - 5_000])
    assert checks == [(old[0], old[-1], old[-1] + 10_000), (NOW - 5_000, NOW - 5_000, NOW + 5_000)]


@truth_table(
    "stored",
    [
        '{"kind":"starts_within","s":60,"at":[]}',
        '{"kind":"starts_within","s":60,"at":"6"}',
        '{"kind":"starts_within","s":1e400}',
        '{"kind":"starts_within","s":NaN}',
        '{"kind":"starts_within","s":-1}',
        '{"kind":"starts_within","s":10000000000000000000000}',
        '{"kind":"finishes_by","at":"06:00\\n"}',
        '{"kind":"fails_at_most","n":1,"then":"%s"}' % ("x" * 300),
        '{"kind":"fails_at_most","n":1,"then":[]}',
        '{"kind":"takes_usual_times","times":1e308}',
        "[" * 100_000,
    ],
)
def test_what_another_program_has_stored_stops_nothing(stored: str) -> None:
    assert effective_promises(f"[{stored}]", None, "CRON") == ()


@truth_table(
    "stored",
    [
        '{"channel":[],"after_minutes":5}',
        '{"channel":"x","after_minutes":"5"}',
        '{"channel":"x","after_minutes":1e400}',
        '{"channel":"x","after_minutes":100000000000000000000}',
        "[" * 100_000,
    ],
)
def test_an_escalation_that_another_program_has_stored_stops_nothing(stored: str) -> None:
    assert read_escalation(stored) is None
