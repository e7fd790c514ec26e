"""Kept answers: for a while, and for the same groups only."""

import pytest

from app.services import answer_cache
from app.services.answer_cache import KEPT_MAX, AnswerCache


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    time = [1_000]
    monkeypatch.setattr(AnswerCache, "is_on", True)
    monkeypatch.setattr(answer_cache, "monotonic_ms", lambda: time[0])
    return time


def test_an_answer_is_kept_for_a_while(clock: list[int]) -> None:
    numbers, answers = iter(range(9)), AnswerCache[int](3_000)
    assert [answers.get([1, 2], lambda: next(numbers)), answers.get({2, 1}, lambda: next(numbers))] == [0, 0]
    clock[0] += 2_999
    assert answers.get([1, 2], lambda: next(numbers)) == 0
    clock[0] += 1
    assert answers.get([1, 2], lambda: next(numbers)) == 1


def test_readers_of_other_groups_get_their_own(clock: list[int]) -> None:
    answers = AnswerCache[str](3_000)
    assert answers.get(None, lambda: "all") == "all"
    assert answers.get([], lambda: "none") == "none"
    assert answers.get([1], lambda: "first") == "first"
    assert answers.get(None, lambda: "") == "all"


def test_a_bounded_number_is_kept(clock: list[int]) -> None:
    answers = AnswerCache[int](3_000)
    for number in range(3 * KEPT_MAX):
        answers.get([number], lambda: 0)
    assert len(answers._answers) <= KEPT_MAX
