"""Judgement: whether runs keep a promise."""

from datetime import UTC

from app.clock import Millis
from app.domain.enums import PromiseKind
from app.domain.promises.judgement import (
    ChainRun,
    UsualRun,
    failures_in_a_row,
    has_succeeded,
    is_kept,
    keeps_duration,
    usual_at,
    usual_of,
)
from app.domain.promises.promise import Promise
from tests.support.truth_table import truth_table

DUE: Millis = 1_714_600_000_000
STARTS = Promise(PromiseKind.STARTS_WITHIN, s=60)
FINISHES = Promise(PromiseKind.FINISHES_WITHIN, s=60)
HOUR: Millis = 3_600_000


def run(
    trigger_ms: Millis = DUE - 60_000,
    handle_ms: Millis | None = None,
    codes: tuple[int, int] = (200, 0),
    shard: str | None = None,
    log_id: int = 1,
) -> ChainRun:
    return ChainRun(log_id, trigger_ms, handle_ms, *codes, shard)


@truth_table(
    "promise, chain, kept",
    [
        (STARTS, [], False),
        (STARTS, [run()], True),
        (STARTS, [run(DUE)], True),
        (STARTS, [run(DUE + 1)], False),
        # refused, but the retry was taken in time
        (STARTS, [run(codes=(500, 0)), run(DUE - 1)], True),
        (STARTS, [run(codes=(500, 0))], False),
        # still on its way
        (STARTS, [run(codes=(0, 0))], False),
        # a result proves that it was taken, whatever became of the sending
        (STARTS, [run(codes=(504, 500))], True),
        (FINISHES, [], False),
        (FINISHES, [run()], False),
        (FINISHES, [run(handle_ms=DUE, codes=(200, 200))], True),
        (FINISHES, [run(handle_ms=DUE + 1, codes=(200, 200))], False),
        (FINISHES, [run(handle_ms=DUE - 9, codes=(200, 500))], False),
        (FINISHES, [run(handle_ms=DUE - 9, codes=(200, 500)), run(handle_ms=DUE, codes=(200, 200))], True),
        # of a broadcast every shard
        (FINISHES, [run(handle_ms=DUE, codes=(200, 200), shard="0/2")], False),
        (
            FINISHES,
            [
                run(handle_ms=DUE, codes=(200, 200), shard="0/2"),
                run(handle_ms=DUE, codes=(200, 200), shard="1/2"),
            ],
            True,
        ),
        (
            FINISHES,
            [
                run(handle_ms=DUE, codes=(200, 200), shard="0/2"),
                run(handle_ms=DUE, codes=(200, 200), shard="0/2"),
            ],
            False,
        ),
    ],
)
def test_a_promise_about_an_instant(promise: Promise, chain: list[ChainRun], kept: bool) -> None:
    assert is_kept(promise, DUE, chain) is kept


def test_a_broadcast_has_succeeded_with_its_last_shard() -> None:
    shards = [run(codes=(200, 200), shard=f"{index}/3") for index in range(3)]
    assert has_succeeded(shards)
    assert not has_succeeded(shards[:2])


@truth_table(
    "promise, duration_s, is_success, usual_s, kept",
    [
        (Promise(PromiseKind.TAKES_AT_MOST, s=60), 60, True, None, True),
        (Promise(PromiseKind.TAKES_AT_MOST, s=60), 61, True, None, False),
        (Promise(PromiseKind.TAKES_AT_MOST, s=60), 61, False, None, False),
        (Promise(PromiseKind.TAKES_AT_LEAST, s=60), 59, True, None, False),
        (Promise(PromiseKind.TAKES_AT_LEAST, s=60), 60, True, None, True),
        # that a failure was fast is no news
        (Promise(PromiseKind.TAKES_AT_LEAST, s=60), 1, False, None, True),
        (Promise(PromiseKind.TAKES_USUAL_TIMES, times=3), 31, True, 10, False),
        (Promise(PromiseKind.TAKES_USUAL_TIMES, times=3), 30, True, 10, True),
        (Promise(PromiseKind.TAKES_USUAL_TIMES, times=3), 999, True, None, True),
    ],
)
def test_a_promise_about_a_duration(
    promise: Promise, duration_s: int, is_success: bool, usual_s: int | None, kept: bool
) -> None:
    usual_ms = None if usual_s is None else usual_s * 1000
    assert keeps_duration(promise, duration_s * 1000, is_success=is_success, usual_ms=usual_ms) is kept


def test_what_is_usual_depends_on_the_hour() -> None:
    by_night = [UsualRun(DUE // (24 * HOUR) * 24 * HOUR + number, 600_000) for number in range(20)]
    by_day = [UsualRun(DUE // (24 * HOUR) * 24 * HOUR + 12 * HOUR + number, 1_000) for number in range(40)]
    few = [UsualRun(DUE // (24 * HOUR) * 24 * HOUR + 15 * HOUR, 5_000)] * 19
    usual = usual_of([*by_day, *by_night, *few], UTC)
    assert usual == {"0": 600_000, "12": 1_000, "all": 1_000}
    text = '{"0": 600000, "all": 1000}'
    assert usual_at(text, DUE // (24 * HOUR) * 24 * HOUR, UTC) == 600_000
    assert usual_at(text, DUE // (24 * HOUR) * 24 * HOUR + 15 * HOUR, UTC) == 1_000
    assert usual_at(None, DUE, UTC) is None


def test_only_the_latest_runs_are_usual() -> None:
    newest_first = [UsualRun(DUE, 1_000)] * 200 + [UsualRun(DUE, 9_000)] * 500
    assert usual_of(newest_first, UTC)["all"] == 1_000


FAILED, SUCCEEDED = (200, 500), (200, 200)


@truth_table(
    "codes, length, first",
    [
        ([], 0, 0),
        ([[SUCCEEDED], [FAILED]], 0, 0),
        ([[FAILED]], 1, 1),
        ([[FAILED], [FAILED], [SUCCEEDED], [FAILED]], 2, 2),
        # a retry that succeeds makes its instant a success
        ([[FAILED], [FAILED, SUCCEEDED], [FAILED]], 1, 1),
    ],
)
def test_failures_in_a_row(codes: list[list[tuple[int, int]]], length: int, first: int) -> None:
    newest_first = [
        (DUE - number * HOUR, [run(codes=pair, log_id=number + 1) for pair in chain])
        for number, chain in enumerate(codes)
    ]
    series = failures_in_a_row(newest_first)
    assert (series.length, series.first_log_id) == (length, first)
