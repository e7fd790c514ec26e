"""When a rate is held, and which rate is tried next."""

from typing import Any

import pytest

from bench.rates import STEPS, Step, is_held, next_rate, sustained

STEADY = [900, 400, 420, 380, 410, 400, 390, 405, 400]


def window(worst: list[int], **flaws: int) -> dict[str, Any]:
    none = {"lost": 0, "doubled": 0, "early": 0, "unfinished": 0, "triggers_per_s": 100.0}
    return none | {"worst_lag_ms_by_second": worst} | flaws


def test_a_steady_lag_is_held_after_a_slow_first_second() -> None:
    assert is_held(window(STEADY), 100)


@pytest.mark.parametrize("flaw", ["lost", "doubled", "early", "unfinished"])
def test_a_flaw_is_not_held(flaw: str) -> None:
    assert not is_held(window(STEADY, **{flaw: 1}), 100)


def test_results_that_fall_behind_are_not_held() -> None:
    assert is_held(window(STEADY), 110)
    assert not is_held(window(STEADY), 120)


def test_a_lag_that_grows_is_not_held() -> None:
    assert not is_held(window([400, 450, 500, 550, 600, 650, 700, 750]), 100)


def test_a_second_that_takes_longer_than_the_next_is_not_held() -> None:
    assert not is_held(window([1_600] * 8), 100)


def test_one_slow_second_is_no_growth() -> None:
    assert is_held(window([400, 400, 400, 400, 400, 400, 1_400, 400, 400]), 100)


@pytest.mark.parametrize(
    ("steps", "rate"),
    [
        ([], 1_000),
        ([Step(1_000, True, 1_000)], 1_400),
        ([Step(1_000, False, 500)], 450),
        ([Step(1_000, False, 950)], 750),
        ([Step(1_000, True, 1_000), Step(1_400, False, 1_100)], 1_183),
        ([Step(1_000, True, 1_000), Step(1_100, False, 1_050)], None),
        ([Step(rate, True, rate) for rate in (100, 140, 196, 274, 384)], None),
    ],
)
def test_the_next_rate(steps: list[Step], rate: int | None) -> None:
    assert next_rate(steps, 1_000) == rate


@pytest.mark.parametrize("limit", [300, 1_000, 2_600])
def test_the_search_ends_near_the_limit(limit: int) -> None:
    def offer(rate: int) -> dict[str, Any]:
        return window(STEADY, lost=int(rate > limit)) | {"triggers_per_s": float(min(rate, limit))}

    best, steps, figures = sustained(offer, 1_000)
    assert limit * 0.8 <= best <= limit
    assert figures["triggers_per_s"] == best
    assert len(steps) <= STEPS
