"""Claim pace: group size, lease and send window, adapted to measured transactions."""

import pytest

from app.pipeline.claimed_run import CLAIM_AHEAD_MS
from workers.dispatch.claim_pace import (
    AHEAD_FIRST_MS,
    AHEAD_MARGIN_MS,
    BACKLOG_WAIT_S,
    GROUP_MAX,
    GROUP_MIN,
    LEASE_MARGIN_S,
    OUTCOMES_WAIT_S,
    SLOW_ANSWER_S,
    SLOW_MAX_S,
    START_WITHIN_S,
    ClaimPace,
    Timing,
)

TIMEOUT_S = 3.0


def timing(pace: ClaimPace, took_s: float) -> Timing:
    """Return the timing of a claim that started at 0."""
    return Timing(0.0, took_s, pace.lease_s)


def test_the_lease_outlives_the_latest_outcome() -> None:
    """A send that starts late, gets a slow answer and waits behind a claim must still hold its lease."""
    assert START_WITHIN_S + SLOW_ANSWER_S + OUTCOMES_WAIT_S + BACKLOG_WAIT_S < LEASE_MARGIN_S
    assert ClaimPace(TIMEOUT_S).lease_s == TIMEOUT_S + LEASE_MARGIN_S


def test_the_lease_follows_the_longest_recent_transaction() -> None:
    pace = ClaimPace(TIMEOUT_S)
    pace.observe(2.0)
    pace.observe(0.1)
    assert pace.lease_s == pytest.approx(TIMEOUT_S + LEASE_MARGIN_S + 3 * 1.8)
    for _ in range(100):
        pace.observe(0.01)
    assert pace.lease_s < TIMEOUT_S + LEASE_MARGIN_S + 0.1
    pace.observe(1_000.0)
    assert pace.lease_s == TIMEOUT_S + LEASE_MARGIN_S + SLOW_MAX_S


def test_claims_ahead_begin_so_early_that_they_have_just_ended() -> None:
    pace = ClaimPace(TIMEOUT_S)
    pace.observe_ahead(10.0)
    assert pace.ahead_ms == AHEAD_FIRST_MS + 10 + AHEAD_MARGIN_MS
    for _ in range(100):
        pace.observe_ahead(5 - pace.ahead_ms)  # each takes 5 ms
    assert pace.ahead_ms == pytest.approx(5 + AHEAD_MARGIN_MS)
    pace.observe_ahead(60_000.0)
    assert pace.ahead_ms == CLAIM_AHEAD_MS


@pytest.mark.parametrize("took_s", [0.01, 1.0, 2.0, 6.0])
def test_the_time_to_start_counts_from_the_commit(took_s: float) -> None:
    pace = ClaimPace(TIMEOUT_S)
    pace.observe(took_s)
    committed = took_s + 0.1
    assert pace.start_before(timing(pace, took_s), committed) == pytest.approx(took_s + START_WITHIN_S)


def test_a_slow_commit_leaves_time_to_start() -> None:
    pace = ClaimPace(TIMEOUT_S)
    pace.observe(2.0)
    assert pace.start_before(timing(pace, 0.1), 1.6) == pytest.approx(0.1 + 3 * 1.5)


@pytest.mark.parametrize(
    ("took_s", "commit_s"), [(0.0, 0.0), (0.5, 0.5), (2.0, 1.0), (9.0, 2.0), (0.1, 30.0)]
)
def test_a_send_that_starts_in_time_ends_within_its_lease(took_s: float, commit_s: float) -> None:
    pace = ClaimPace(TIMEOUT_S)
    claim = timing(pace, took_s)
    latest_outcome = (
        pace.start_before(claim, took_s + commit_s)
        + TIMEOUT_S
        + SLOW_ANSWER_S
        + OUTCOMES_WAIT_S
        + BACKLOG_WAIT_S
    )
    assert latest_outcome < claim.started_s + claim.lease_s


def test_a_claim_longer_than_its_lease_allows_is_too_late() -> None:
    pace = ClaimPace(TIMEOUT_S)
    assert pace.start_before(timing(pace, 5.0), 5.1) < 5.1


def test_groups_shrink_if_their_size_slows_claims_and_grow_again() -> None:
    pace = ClaimPace(TIMEOUT_S)
    pace.observe_claim(8, 0.02)
    pace.observe_claim(GROUP_MAX, 1.6)
    assert pace.group == GROUP_MAX // 2
    pace.observe_claim(100, 0.8)
    assert pace.group == 50
    for _ in range(20):
        pace.observe_claim(pace.group, 2.0)
    assert pace.group == GROUP_MIN
    for _ in range(20):
        pace.observe_claim(pace.group, 0.05)
    assert pace.group == GROUP_MAX


def test_a_distant_database_does_not_shrink_groups() -> None:
    """Each claim takes 2.4 s, whatever its size: smaller groups would only mean more claims."""
    pace = ClaimPace(TIMEOUT_S)
    pace.observe_claim(1, 2.4)
    for fires in (4, 40, 400):
        pace.observe_claim(fires, 2.4 + fires / 1000)
    assert pace.group == GROUP_MAX


def test_a_group_is_halved_once_however_many_of_its_runs_were_late() -> None:
    pace = ClaimPace(TIMEOUT_S)
    for _ in range(5):
        pace.shrink()
    assert pace.group == GROUP_MAX // 2
    pace.observe_claim(3, 0.01)
    pace.shrink()
    assert pace.group == GROUP_MAX // 4
