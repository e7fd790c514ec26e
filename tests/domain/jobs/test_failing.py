"""When a job is failing, since when and how often: a table of runs, newest first."""

from typing import NamedTuple

import pytest

from app.domain.enums import TriggerCode
from app.domain.jobs.failing import failing_of

OK, FAILED, TIMEOUT, KILLED = (200, 200, 0), (200, 500, 0), (200, 502, 0), (200, 500, 1)
REFUSED, UNRESOLVED = (500, 0, 0), (int(TriggerCode.UNRESOLVED), 0, 0)
RUNNING, SENDING = (200, 0, 0), (0, 0, 0)


class Result(NamedTuple):
    """A run of the table."""

    trigger_time: int
    trigger_code: int
    handle_code: int
    killed: int


def history(*codes: tuple[int, int, int]) -> list[Result]:
    """Return runs, newest first: the oldest was triggered at 1, the next one at 2."""
    return [Result(len(codes) - number, *code) for number, code in enumerate(codes)]


@pytest.mark.parametrize(
    "codes", [(), (OK,), (OK, FAILED), (RUNNING, OK, FAILED), (RUNNING,), (SENDING, RUNNING)]
)
def test_a_job_without_a_failure_at_its_end_is_not_failing(codes: tuple[tuple[int, int, int], ...]) -> None:
    assert failing_of(history(*codes), is_all=True) is None


@pytest.mark.parametrize(
    ("codes", "failures", "since", "last", "success"),
    [
        ((FAILED,), 1, 1, 1, None),
        ((FAILED, OK), 1, 2, 2, 1),
        ((FAILED, FAILED, OK, FAILED), 2, 3, 4, 2),
        ((TIMEOUT, OK), 1, 2, 2, 1),
        ((KILLED, OK), 1, 2, 2, 1),
        ((REFUSED, TIMEOUT, FAILED, OK, OK), 3, 3, 5, 2),
        # A run that has not ended decides nothing, neither as the newest nor between failures.
        ((RUNNING, FAILED, OK), 1, 2, 2, 1),
        ((SENDING, RUNNING, FAILED, RUNNING, FAILED, OK), 2, 2, 4, 1),
        ((UNRESOLVED, FAILED, OK), 2, 2, 3, 1),
    ],
)
def test_failures_since_the_last_success(
    codes: tuple[tuple[int, int, int], ...], failures: int, since: int, last: int, success: int | None
) -> None:
    failing = failing_of(history(*codes), is_all=True)
    assert failing is not None
    assert (failing.failures, failing.since_ms, failing.last.trigger_time) == (failures, since, last)
    assert (failing.success and failing.success.trigger_time) == success
    assert not failing.is_cut


@pytest.mark.parametrize(("codes", "is_cut"), [((FAILED, FAILED), True), ((FAILED, OK), False)])
def test_failures_are_cut_if_there_may_be_more(codes: tuple[tuple[int, int, int], ...], is_cut: bool) -> None:
    failing = failing_of(history(*codes), is_all=False)
    assert failing is not None
    assert failing.is_cut == is_cut


@pytest.mark.parametrize(
    ("codes", "is_unresolved"),
    [((UNRESOLVED, FAILED), True), ((RUNNING, UNRESOLVED), True), ((FAILED, UNRESOLVED), False)],
)
def test_an_unresolved_last_run_is_a_kind_of_its_own(
    codes: tuple[tuple[int, int, int], ...], is_unresolved: bool
) -> None:
    failing = failing_of(history(*codes), is_all=True)
    assert failing is not None
    assert failing.is_unresolved == is_unresolved
