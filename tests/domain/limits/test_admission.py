"""Admission: slots of scopes, runs that overtake none, places in the order, keys and reasons.

Source: docs/reference/limits.md.
"""

import pytest

from app.domain.enums import WhenFull
from app.domain.limits.admission import STEP_MS, Action, Demand, Scope, Slots, place_of
from app.domain.limits.keys import KEY_MAX, key_for
from app.domain.limits.waits import WAITS_MAX, Wait, WaitReason, parse_wait

JOB, GROUP, DATABASE = Scope(1), Scope(2), Scope(3)
ACME, GLOBEX = Scope(4, "acme"), Scope(4, "globex")
SLOTS = {1: 1, 2: 3, 3: 4, 4: 1}


def decide(slots: Slots, *demands: Demand) -> list[Action]:
    """Decide the runs in order, and take those that are admitted."""
    actions = []
    for demand in demands:
        decision = slots.decide(demand)
        if decision.action is Action.ADMIT:
            slots.take(demand)
        actions.append(decision.action)
    return actions


def test_all_scopes_must_have_room() -> None:
    slots = Slots(SLOTS, {GROUP: 2, DATABASE: 4})
    assert decide(slots, Demand({JOB: 1, GROUP: 1})) == [Action.ADMIT]
    decision = Slots(SLOTS, {DATABASE: 4}, {DATABASE: [811, 812]}).decide(Demand({JOB: 1, DATABASE: 2}))
    assert decision.action is Action.WAIT
    assert decision.wait == Wait(3, WaitReason.FULL, 4, 4, (811, 812))


def test_a_run_that_is_taken_leaves_less_for_the_next() -> None:
    slots = Slots(SLOTS, {})
    run = Demand({GROUP: 1, DATABASE: 2})
    assert decide(slots, run, run, run) == [Action.ADMIT, Action.ADMIT, Action.WAIT]


@pytest.mark.parametrize(
    ("when_full", "action", "reason"),
    [
        (WhenFull.WAIT, Action.WAIT, WaitReason.FULL),
        (WhenFull.SKIP, Action.SKIP, WaitReason.FULL),
        (WhenFull.NEWEST, Action.NEWEST, WaitReason.FULL),
        (WhenFull.REPLACE, Action.REPLACE, WaitReason.REPLACING),
    ],
)
def test_the_job_says_what_becomes_of_a_run_without_room(
    when_full: WhenFull, action: Action, reason: WaitReason
) -> None:
    decision = Slots(SLOTS, {JOB: 1}).decide(Demand({JOB: 1}, when_full))
    assert decision.action is action
    assert decision.wait is not None
    assert decision.wait.reason is reason


@pytest.mark.parametrize("when_full", list(WhenFull))
def test_a_run_that_waits_already_goes_on_waiting(when_full: WhenFull) -> None:
    assert decide(Slots(SLOTS, {JOB: 1}), Demand({JOB: 1}, when_full, waits=True)) == [Action.KEEP]


def test_a_run_overtakes_none_that_wait_for_the_same_limit() -> None:
    heavy, light = Demand({DATABASE: 3}, waits=True), Demand({DATABASE: 1})
    slots = Slots(SLOTS, {DATABASE: 2})
    assert decide(slots, heavy, light) == [Action.KEEP, Action.WAIT]
    decision = slots.decide(light)
    assert decision.wait is not None
    assert decision.wait.reason is WaitReason.BEHIND


def test_a_run_passes_those_that_wait_for_another_limit() -> None:
    blocked, other = Demand({JOB: 1, DATABASE: 1}, waits=True), Demand({DATABASE: 1})
    assert decide(Slots(SLOTS, {JOB: 1}), blocked, other) == [Action.KEEP, Action.ADMIT]


def test_a_run_that_is_skipped_holds_up_no_other() -> None:
    skipped, other = Demand({DATABASE: 3}, WhenFull.SKIP), Demand({DATABASE: 1})
    assert decide(Slots(SLOTS, {DATABASE: 2}), skipped, other) == [Action.SKIP, Action.ADMIT]


def test_a_run_that_needs_more_than_there_is_gets_all_when_none_is_taken() -> None:
    broadcast = Demand({GROUP: 7})
    assert decide(Slots(SLOTS, {GROUP: 1}), broadcast) == [Action.WAIT]
    slots = Slots(SLOTS, {})
    assert decide(slots, broadcast, Demand({GROUP: 1})) == [Action.ADMIT, Action.WAIT]


def test_a_limit_without_slots_admits_none() -> None:
    assert decide(Slots({3: 0}, {}), Demand({DATABASE: 1})) == [Action.WAIT]


def test_a_limit_that_is_not_locked_gives_no_slot() -> None:
    assert decide(Slots(SLOTS, {}, closed_scopes=[JOB]), Demand({JOB: 1})) == [Action.WAIT]


def test_a_full_limit_is_named_before_one_that_is_not_locked() -> None:
    decision = Slots(SLOTS, {DATABASE: 4}, closed_scopes=[JOB]).decide(Demand({JOB: 1, DATABASE: 1}))
    assert decision.wait is not None
    assert (decision.wait.limit_id, decision.wait.reason) == (3, WaitReason.FULL)


def test_keys_have_slots_of_their_own() -> None:
    slots = Slots(SLOTS, {ACME: 1})
    assert decide(slots, Demand({ACME: 1}), Demand({GLOBEX: 1}), Demand({GLOBEX: 1})) == [
        Action.WAIT,
        Action.ADMIT,
        Action.WAIT,
    ]


def test_a_run_without_limits_is_admitted() -> None:
    assert decide(Slots({}, {}), Demand({})) == [Action.ADMIT]


def test_ten_minutes_of_waiting_are_a_step_of_priority() -> None:
    assert place_of(1_000, 5) == 1_000
    assert place_of(STEP_MS, 6) == place_of(0, 5)
    assert place_of(0, 9) < place_of(0, 5) < place_of(0, 1)
    assert place_of(0, 5, turn=2) == place_of(2 * STEP_MS, 5)


@pytest.mark.parametrize(
    ("template", "param", "key"),
    [
        ("${param.customer}", '{"customer": "acme"}', "acme"),
        ("${param.customer}-${param.region}", '{"customer": "acme", "region": 7}', "acme-7"),
        ("${param}", "acme", "acme"),
        ("${param.customer}", "{}", None),
        ("${param.customer}", "no JSON", None),
        ("${param.", "{}", None),
    ],
)
def test_a_key_comes_from_the_parameter(template: str, param: str, key: str | None) -> None:
    assert key_for(template, param) == key


def test_a_long_key_is_a_digest() -> None:
    long, longer = key_for("${param}", "x" * (KEY_MAX + 1)), key_for("${param}", "x" * (KEY_MAX + 2))
    assert long != longer
    assert len(long or "") == KEY_MAX
    assert key_for("${param}", "x" * KEY_MAX) == "x" * KEY_MAX


@pytest.mark.parametrize(
    "wait",
    [
        Wait(12, WaitReason.FULL, 2, 2, (811, 812)),
        Wait(1, WaitReason.BEHIND, 0, 3),
        Wait(7, WaitReason.REPLACING, 1, 1, (5,)),
    ],
)
def test_a_reason_is_read_as_it_was_written(wait: Wait) -> None:
    assert parse_wait(wait.text) == wait


def test_a_reason_names_as_many_runs_as_there_is_room_for() -> None:
    wait = Wait(2**31 - 1, WaitReason.REPLACING, 10_000, 10_000, tuple(range(10**17, 10**17 + 5)))
    assert len(wait.text) <= WAITS_MAX
    read = parse_wait(wait.text)
    assert read is not None
    assert read.log_ids == wait.log_ids[: len(read.log_ids)]
    assert read.log_ids


@pytest.mark.parametrize("text", ["", "12", "12 full", "12 asleep 1/1", "x full 1/1", "12 full 1/1 a"])
def test_other_texts_are_no_reason(text: str) -> None:
    assert parse_wait(text) is None
