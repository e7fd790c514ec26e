"""By which index the console finds its lists of the log."""

import pytest

from app.db import read_scope
from app.domain.list_orders import UNSORTED, Order
from app.store.alarms import find_successes
from app.store.log_lists import OLDEST_FIRST, LogFilter, LogStatus, list_ids
from tests.factories import T0
from tests.store.test_recent_runs import plan

#: planners of servers choose by statistics: bench/pages.py shows what they do
pytestmark = pytest.mark.databases("sqlite")


@pytest.mark.parametrize("order", [UNSORTED, OLDEST_FIRST])
@pytest.mark.parametrize("group_ids", [None, [1, 2]])
@pytest.mark.parametrize("more", [{}, {"from_ms": T0}, {"from_ms": T0, "to_ms": T0}, {"group_id": 1}])
@pytest.mark.parametrize(
    ("status", "index"), [(LogStatus.FAILED, "ix_xxl_job_log_failures"), (LogStatus.RUNNING, "I_handle_code")]
)
def test_a_list_is_found_by_what_is_rare(
    database: str,
    status: LogStatus,
    index: str,
    more: dict[str, int],
    group_ids: list[int] | None,
    order: Order,
) -> None:
    """Looked for by their group or their time, the few runs under way of a long log took most of a second."""
    assert index in steps_to(LogFilter(status=status, order=order, **more), group_ids)


@pytest.mark.parametrize("order", [UNSORTED, OLDEST_FIRST])
def test_what_succeeded_is_found_by_its_time(database: str, order: Order) -> None:
    assert "I_trigger_time" in steps_to(LogFilter(status=LogStatus.SUCCESS, from_ms=T0, order=order), None)


def test_the_last_success_of_a_job_is_found_by_its_own_runs(database: str) -> None:
    """Found by their result, all successes of all jobs were read for each job: seconds, where a mute ended within a transaction."""
    with read_scope() as session:
        steps = "; ".join(plan(session, lambda session: find_successes(session, [1, 2])))
    assert "ix_xxl_job_log_job" in steps
    assert "I_handle_code" not in steps


def steps_to(wanted: LogFilter, group_ids: list[int] | None) -> str:
    """Return how SQLite finds a list."""
    with read_scope() as session:
        return "; ".join(
            plan(session, lambda session: list_ids(session, wanted, group_ids=group_ids, limit=10))
        )


def test_failed_runs_need_no_sorting(database: str) -> None:
    assert "TEMP B-TREE" not in steps_to(LogFilter(status=LogStatus.FAILED), None)
