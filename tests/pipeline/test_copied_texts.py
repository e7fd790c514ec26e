"""Texts of a job that are longer than the columns with copies of them: sent whole, cut in the log."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.database.engine import session_scope, transact
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.children import CHILDREN_MAX
from app.pipeline.prepare import prepare
from tests.pipeline.steps import as_due, call_back, claim_fires, claim_one, claimer, give_back_all
from tests.support.factories import FIRST, T0, all_rows, make_fire, make_job, make_run, only_row
from tests.support.narrowed import changed_column
from tests.support.plan import every_database

LONG_PARAM, LONG_HANDLER = "p" * 2_999 + "!", "h" * 399 + "!"
CUT_PARAM, CUT_HANDLER = "p" * 2_047 + "…", "h" * 254 + "…"
LONG_ADDRESS = f"{FIRST}{'a' * 300}/"

servers = pytest.mark.databases("mariadb", "postgresql")


@pytest.fixture
def wide_job(database: str) -> Iterator[None]:
    """A job table as users have widened it, beside a log that was forgotten."""
    with (
        changed_column("xxl_job_info", "executor_param", "text", back="varchar(2048)"),
        changed_column("xxl_job_info", "executor_handler", "varchar(500)", back="varchar(255)"),
    ):
        yield


def make_long_job(**changes: Any) -> Job:
    return make_job(**{"executor_param": LONG_PARAM, "executor_handler": LONG_HANDLER, **changes})


def copies() -> list[tuple[str | None, str | None]]:
    return [(log.executor_param, log.executor_handler) for log in all_rows(JobLog)]


@servers
@pytest.mark.usefixtures("wide_job")
def test_a_run_gets_the_whole_texts_and_its_log_row_their_beginnings() -> None:
    make_fire(make_long_job())
    request = claim_one().request
    assert (request.executor_params, request.executor_handler) == (LONG_PARAM, LONG_HANDLER)
    assert copies() == [(CUT_PARAM, CUT_HANDLER)]


@servers
@pytest.mark.usefixtures("wide_job")
def test_a_prepared_run_gets_the_whole_texts() -> None:
    fire = make_fire(make_long_job(update_time=T0 - 60_000), due_time=T0 + 1_000)
    prepared = transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0))
    assert prepared[fire.id].claim.request.executor_params == LONG_PARAM
    assert copies() == [(CUT_PARAM, CUT_HANDLER)]


@servers
@pytest.mark.usefixtures("wide_job")
@pytest.mark.parametrize("attempt", [0, 1])
def test_a_run_that_is_claimed_again_gets_the_whole_texts(attempt: int) -> None:
    """Never sent, or perhaps sent before."""
    make_fire(make_long_job())
    claimed = claim_one()
    give_back_all(claimed)
    with session_scope() as session:
        session.get_one(Fire, claimed.fire_id).attempt = attempt
    request = claim_one(now_ms=T0 + 1_000).request
    assert (request.executor_params, request.executor_handler) == (LONG_PARAM, LONG_HANDLER)
    assert copies() == [(CUT_PARAM, CUT_HANDLER)]


@servers
@pytest.mark.usefixtures("wide_job")
@pytest.mark.parametrize("own", [None, LONG_PARAM])
def test_a_retry_gets_the_whole_parameter(own: str | None) -> None:
    make_fire(make_long_job(executor_fail_retry_count=1), executor_param=own)
    call_back(claim_one().log_id, 500)
    assert only_row(Fire).executor_param == own
    (claimed,) = claim_fires(now_ms=T0 + 60_000).claims
    assert claimed.request.executor_params == LONG_PARAM


@every_database
@pytest.mark.parametrize("route", ["FIRST", "SHARDING_BROADCAST"])
def test_an_address_longer_than_its_columns_is_handed_to_the_sender_which_refuses_it(
    database: str, route: str
) -> None:
    fire = make_fire(make_job(addresses=LONG_ADDRESS, executor_route_strategy=route))
    batch = claim_fires([fire])
    (claimed,) = batch.claims or claim_fires().claims
    assert claimed.address == LONG_ADDRESS
    row = only_row(Fire)
    assert (row.state, row.address, only_row(JobLog).executor_address) == ("ROUTING", None, None)


def test_such_an_address_is_not_prepared(database: str) -> None:
    fire = make_fire(make_job(addresses=LONG_ADDRESS, update_time=T0 - 60_000), due_time=T0 + 1_000)
    assert transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0)) == {}


@servers
def test_any_number_of_child_jobs_leaves_a_result_that_can_be_stored(database: str) -> None:
    with changed_column("xxl_job_info", "child_jobid", "text", back="varchar(255)"):
        run = make_run(make_job(child_jobid=",".join(f"\U0001f600{number}" for number in range(3_000))))
        assert call_back(run.id, 200, "done")
        message = only_row(JobLog).handle_msg or ""
        assert message.startswith("done\n>>> child jobs <<<\n1/3000 job")
        assert CHILDREN_MAX < len(message) < CHILDREN_MAX + 100
