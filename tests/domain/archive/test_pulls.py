"""Pulls: the pauses between them, how they end, and when none begins."""

import pytest

from app.domain.archive.kinds import ArchiveState, Missing
from app.domain.archive.pulls import Next, Progress, PullOutcome, after_pull, rest_ms
from tests.support.factories import T0

OPEN, ENDING = ArchiveState.OPEN, ArchiveState.ENDING
SOME, NOTHING, MORE = PullOutcome(True), PullOutcome(False), PullOutcome(True, has_more=True)
GONE, NO_LOG = PullOutcome(False, failure=Missing.INSTANCE_GONE), PullOutcome(False, failure=Missing.LOG_GONE)


@pytest.mark.parametrize(
    ("pause_ms", "pulled", "next_pause_ms"),
    [
        (0, NOTHING, 1_000),
        (1_000, NOTHING, 2_000),
        (16_000, NOTHING, 30_000),
        (30_000, SOME, 1_000),
        (30_000, MORE, 1_000),
        (4_000, GONE, 8_000),
    ],
)
def test_an_open_log_is_fetched_by_its_growth(pause_ms: int, pulled: PullOutcome, next_pause_ms: int) -> None:
    following = after_pull(Progress(OPEN, 0, pause_ms), pulled, at_ms=T0)
    assert following == Next(OPEN, T0 + next_pause_ms, next_pause_ms)


@pytest.mark.parametrize(
    ("behind_ms", "pulled", "state", "wait_ms", "reason"),
    [
        (0, SOME, ENDING, 10_000, ""),
        (9_500, NOTHING, ENDING, 1_000, ""),
        (10_000, SOME, ENDING, 1_000, ""),
        (10_000, NOTHING, ArchiveState.COMPLETE, None, ""),
        (9_999, NO_LOG, ENDING, 2_000, ""),
        (10_000, NO_LOG, ArchiveState.PARTIAL, None, "log_gone"),
        (599_999, GONE, ENDING, 2_000, ""),
        (600_000, GONE, ArchiveState.PARTIAL, None, "instance_gone"),
    ],
)
def test_the_log_of_an_ended_run_is_fetched_until_it_is_whole(
    behind_ms: int, pulled: PullOutcome, state: ArchiveState, wait_ms: int | None, reason: str
) -> None:
    following = after_pull(Progress(ENDING, T0 - behind_ms, 1_000), pulled, at_ms=T0)
    next_ms = 0 if wait_ms is None else T0 + wait_ms
    assert (following.state, following.next_ms, following.reason) == (state, next_ms, reason)


@pytest.mark.parametrize(
    ("behind_ms", "wait_ms"), [(0, 250), (249, 1), (250, 0), (899, 0), (900, 350), (999, 251)]
)
def test_no_pull_begins_while_a_second_does(behind_ms: int, wait_ms: int) -> None:
    assert rest_ms(T0 + behind_ms) == wait_ms
