"""Timeline: selection of jobs, runs per job, and lines of overlapping runs."""

from app.domain.enums import HandleCode, TriggerCode
from app.domain.runs.outcome import outcome_of
from app.domain.runs.timeline import Activity, fair_share, rank_jobs
from tests.support.truth_table import truth_table


def test_problems_come_before_many_runs() -> None:
    quiet, busy, failing, failing_more = (
        Activity(1, 1, 0),
        Activity(2, 900, 0),
        Activity(3, 2, 1),
        Activity(4, 2, 7),
    )
    assert rank_jobs([quiet, busy, failing, failing_more], limit=3) == [4, 3, 2]
    assert rank_jobs([Activity(9, 5, 0), Activity(8, 5, 0)], limit=9) == [8, 9]


@truth_table(
    "counts, total, expected",
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
def test_unused_shares_go_to_other_jobs(counts: list[int], total: int, expected: int) -> None:
    share = fair_share(counts, total=total)
    assert share == expected
    assert sum(min(count, share) for count in counts) <= total


@truth_table(
    "sent, handled, expected",
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
def test_two_codes_give_the_result_of_a_run(sent: int, handled: int, expected: str) -> None:
    assert outcome_of(sent, handled) == expected
