"""Suggested promises: from the durations and the intervals of successes."""

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from app.domain.enums import PromiseKind
from app.domain.promises.judgement import UsualRun
from app.domain.promises.suggestions import round_up, suggest


def runs(count: int, *, every_ms: int = HOUR_MS, duration_ms: int = 40 * SECOND_MS) -> list[UsualRun]:
    return [UsualRun(number * every_ms, duration_ms) for number in range(count, 0, -1)]


def test_twice_of_what_nearly_all_runs_took_and_half_an_interval_to_spare() -> None:
    suggestions = suggest(runs(200), has_instants=True)
    assert {each.promise.kind: each.promise.s for each in suggestions} == {
        PromiseKind.TAKES_AT_MOST: 90,
        PromiseKind.FINISHES_WITHIN: 90,
        PromiseKind.SUCCEEDS_EVERY: 5_400,
    }
    assert [each.basis_ms for each in suggestions] == [40 * SECOND_MS, 40 * SECOND_MS, HOUR_MS]


def test_a_single_slow_run_of_many_does_not_count() -> None:
    slow = [UsualRun(0, HOUR_MS), *runs(199)]
    assert suggest(slow, has_instants=False)[0].promise.s == 90
    assert suggest([UsualRun(0, HOUR_MS), *runs(20)], has_instants=False)[0].promise.s == 7_200


def test_a_job_without_instants_does_not_promise_when_it_finishes() -> None:
    kinds = [each.promise.kind for each in suggest(runs(20), has_instants=False)]
    assert kinds == [PromiseKind.TAKES_AT_MOST, PromiseKind.SUCCEEDS_EVERY]


def test_too_few_successes_suggest_nothing() -> None:
    assert suggest(runs(19), has_instants=True) == []


def test_lengths_are_rounded_up_to_what_people_say() -> None:
    rows = {
        1: 1,
        3_500: 5,
        61 * SECOND_MS: 90,
        16 * MINUTE_MS: 1_200,
        25 * HOUR_MS: 129_600,
        36 * HOUR_MS: 129_600,
    }
    assert {ms: round_up(ms) for ms in rows} == rows
    assert round_up(2 * DAY_MS + 1) == 3 * DAY_MS // SECOND_MS
