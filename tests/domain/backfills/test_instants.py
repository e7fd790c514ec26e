"""List of a backfill: what is known of each instant, and which are run in which order."""

from app.domain.backfills.instants import (
    Exclusion,
    ListedInstant,
    Standing,
    list_instants,
    run_order,
    summary_of,
)
from app.domain.backfills.kinds import Order, Which
from tests.support.truth_table import truth_table

SUCCEEDED, RUNNING, FAILED = Standing.SUCCEEDED, Standing.RUNNING, Standing.FAILED
MISSING, CALENDAR, BLACKOUT = Standing.MISSING, Standing.CALENDAR, Standing.BLACKOUT


@truth_table(
    "runs, standing, run_by",
    [
        ([], MISSING, "all missing"),
        ([FAILED], FAILED, "all failed"),
        ([FAILED, FAILED], FAILED, "all failed"),
        ([SUCCEEDED], SUCCEEDED, "all"),
        ([FAILED, SUCCEEDED], SUCCEEDED, "all"),
        ([SUCCEEDED, FAILED], SUCCEEDED, "all"),
        ([RUNNING], RUNNING, ""),
        ([FAILED, RUNNING], RUNNING, ""),
        # One that runs now would run beside itself.
        ([SUCCEEDED, RUNNING], RUNNING, ""),
        ([RUNNING, SUCCEEDED, FAILED], RUNNING, ""),
    ],
)
def test_the_runs_of_an_instant(runs: list[Standing], standing: Standing, run_by: str) -> None:
    for which in Which:
        # Of another instant, and of one that is not listed.
        others = [(7, SUCCEEDED), (99, RUNNING)]
        found = list_instants([7, 5], {}, [*((5, each) for each in runs), *others], which)
        assert found[0] == ListedInstant(5, standing, which.value in run_by.split())
        assert [(each.logical_ms, each.standing) for each in found[1:]] == [(7, SUCCEEDED)]


@truth_table("which", Which)
def test_what_the_schedule_leaves_out_is_listed_and_never_run(which: Which) -> None:
    excluded = {2: Exclusion(CALENDAR, "国庆节"), 4: Exclusion(BLACKOUT, "release")}
    runs = [(2, FAILED), (4, SUCCEEDED)]
    found = list_instants([1, 3, 4, 3], excluded, runs, which)
    is_run = which is not Which.FAILED
    assert found == [
        ListedInstant(1, MISSING, is_run),
        ListedInstant(2, CALENDAR, False, "国庆节"),
        ListedInstant(3, MISSING, is_run),
        ListedInstant(4, BLACKOUT, False, "release"),
    ]
    assert run_order(found, Order.OLDEST_FIRST) == ([1, 3] if is_run else [])
    assert run_order(reversed(found), Order.NEWEST_FIRST) == ([3, 1] if is_run else [])
    assert summary_of(found) == {
        "missing": 2,
        "calendar": 1,
        "blackout": 1,
        "instants": 4,
        "to_run": 2 * is_run,
    }


def test_nothing_to_list() -> None:
    assert summary_of(list_instants([], {}, [(1, FAILED)], Which.ALL)) == {"instants": 0, "to_run": 0}
