"""Which jobs a timeline shows, how many runs of each, and on which line."""

import pytest

from app.domain.enums import HandleCode, TriggerCode
from app.domain.run_outcome import outcome_of
from app.domain.run_timeline import Activity, fair_share, rank_jobs, stacked


def test_trouble_comes_before_many_runs() -> None:
    quiet, busy, bad, worse = Activity(1, 1, 0), Activity(2, 900, 0), Activity(3, 2, 1), Activity(4, 2, 7)
    assert rank_jobs([quiet, busy, bad, worse], limit=3) == [4, 3, 2]
    assert rank_jobs([Activity(9, 5, 0), Activity(8, 5, 0)], limit=9) == [8, 9]


@pytest.mark.parametrize(
    ("counts", "total", "wanted"),
    [
        ([], 10, 0),
        ([3, 4], 10, 4),
        ([1, 1, 100], 12, 10),
        ([50, 50], 10, 5),
        ([2, 8, 90, 90], 40, 15),
        ([7], 7, 7),
        ([5, 5, 5], 2, 0),
    ],
)
def test_what_some_jobs_leave_the_others_get(counts: list[int], total: int, wanted: int) -> None:
    share = fair_share(counts, total=total)
    assert share == wanted
    assert sum(min(count, share) for count in counts) <= total


def test_runs_that_overlap_get_lines_of_their_own() -> None:
    assert stacked([], lines=3) == []
    assert stacked([(0, 5), (5, 9), (10, 12)], lines=3) == [0, 0, 0]
    assert stacked([(0, 9), (1, 3), (2, 4), (5, 6)], lines=3) == [0, 1, 2, 1]


def test_more_runs_at_once_than_lines_share_the_line_that_ends_first() -> None:
    assert stacked([(0, 90), (1, 50), (2, 80), (60, 70)], lines=2) == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("sent", "handled", "wanted"),
    [
        (TriggerCode.ACCEPTED, HandleCode.SUCCESS, "success"),
        (TriggerCode.UNRESOLVED, HandleCode.SUCCESS, "success"),
        (TriggerCode.ACCEPTED, HandleCode.TIMEOUT, "timeout"),
        (TriggerCode.ACCEPTED, HandleCode.FAIL, "failed"),
        (TriggerCode.ACCEPTED, 777, "failed"),
        (TriggerCode.NONE, HandleCode.NONE, "sending"),
        (TriggerCode.ACCEPTED, HandleCode.NONE, "running"),
        (TriggerCode.UNRESOLVED, HandleCode.NONE, "unresolved"),
        (TriggerCode.REFUSED, HandleCode.NONE, "refused"),
        (777, HandleCode.NONE, "refused"),
    ],
)
def test_two_codes_tell_what_became_of_a_run(sent: int, handled: int, wanted: str) -> None:
    assert outcome_of(sent, handled) == wanted
