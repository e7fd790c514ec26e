"""Indexes used by the log list."""

import pytest

from app.database.engine import read_scope
from app.database.rows import bulk
from app.domain.lists.orders import UNSORTED, Order
from app.store.alarms.recoveries import find_successes
from app.store.pickers.overview import find_groups_with_schedules
from app.store.runs import failing
from app.store.runs.listing import OLDEST_FIRST, LogFilter, LogStatus, list_ids
from tests.support.factories import T0
from tests.support.store_runs import plan

#: planners of servers depend on statistics: see bench/pages.py
pytestmark = pytest.mark.databases("sqlite")


@pytest.mark.parametrize("order", [UNSORTED, OLDEST_FIRST])
@pytest.mark.parametrize("group_ids", [None, [1, 2]])
@pytest.mark.parametrize("more", [{}, {"from_ms": T0}, {"from_ms": T0, "to_ms": T0}, {"group_id": 1}])
@pytest.mark.parametrize(
    ("status", "index"),
    [
        (LogStatus.FAILED, "ix_xxl_job_log_failures"),
        (LogStatus.TIMED_OUT, "ix_xxl_job_log_failures"),
        (LogStatus.NOT_STARTED, "ix_xxl_job_log_failures"),
        (LogStatus.RUNNING, "I_handle_code"),
        (LogStatus.WAITING, "I_handle_code"),
    ],
)
def test_a_list_uses_the_most_selective_index(
    database: str,
    status: LogStatus,
    index: str,
    more: dict[str, int],
    group_ids: list[int] | None,
    order: Order,
) -> None:
    """Searched by group or time, the few runs in progress in a long log took most of a second."""
    steps = steps_to(LogFilter(status=status, order=order, **more), group_ids)
    assert index in steps
    assert steps.count(" INDEX ") == 1


@pytest.mark.parametrize("order", [UNSORTED, OLDEST_FIRST])
def test_successes_are_found_by_time(database: str, order: Order) -> None:
    assert "I_trigger_time" in steps_to(LogFilter(status=LogStatus.SUCCESS, from_ms=T0, order=order), None)


def test_the_last_success_of_a_job_is_found_among_its_own_runs(database: str) -> None:
    """Searched by result, every job read all successes: seconds within the transaction that ends a mute."""
    with read_scope() as session:
        steps = "; ".join(plan(session, lambda session: find_successes(session, [1, 2])))
    assert "ix_xxl_job_log_job" in steps
    assert "I_handle_code" not in steps


def test_last_failures_are_read_by_their_ids(database: str) -> None:
    """Searched by result, 200 of them took as long as all failed runs of the log."""
    with read_scope() as session:
        steps = plan(session, lambda session: bulk.read_among(session, failing._FAILED_RUNS, [1, 2]))
    assert "USING INTEGER PRIMARY KEY" in steps[0]


def test_groups_with_schedules_are_found_by_group(database: str) -> None:
    """Searched by state, a group without instances took as long as all schedules that are on."""
    with read_scope() as session:
        steps = "; ".join(plan(session, lambda session: find_groups_with_schedules(session, [1])))
    assert "ix_xxl_job_info_group" in steps


def steps_to(log_filter: LogFilter, group_ids: list[int] | None) -> str:
    """Return SQLite's query plan of a list."""
    with read_scope() as session:
        return "; ".join(
            plan(session, lambda session: list_ids(session, log_filter, group_ids=group_ids, limit=10))
        )


def test_failed_runs_need_no_sorting(database: str) -> None:
    assert "TEMP B-TREE" not in steps_to(LogFilter(status=LogStatus.FAILED), None)
