"""Statements of rounds: none for runs that nothing follows, and a few for a batch of whatever size."""

from collections.abc import Sequence

from app.database.sql.compilation import compile_statement
from app.models.job import Job
from app.pipeline.complete import callback_result
from tests.pipeline.round_steps import claim_due, follow, following, look
from tests.pipeline.steps import end
from tests.support.factories import make_fire, make_job
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

#: what a batch costs more if jobs run after its own, with the look at the rule book that is due each second
MORE = 9
TABLES = ("xxl_job_round", "xxl_job_after", "xxl_job_arrival")


def ended(jobs: Sequence[Job]) -> list[str]:
    """End a run of each job; return the statements of the batch."""
    for job in jobs:
        make_fire(job)
    log_ids = [run.log_id for run in claim_due()]
    with statements() as executed:
        end(*(callback_result(log_id, 200, None) for log_id in log_ids))
    return executed


def test_ends_of_runs_that_nothing_follows_need_no_statement_more(database: str) -> None:
    executed = ended([make_job() for _ in range(3)])
    assert not [sql for sql in executed if any(table in sql for table in TABLES)]


def test_a_batch_of_any_size_needs_a_few_statements_more_for_its_rounds(database: str) -> None:
    alone = len(ended([make_job() for _ in range(3)]))
    counts = []
    for size in (3, 30):
        first, second = [make_job() for _ in range(size)], [make_job() for _ in range(size)]
        followers = [follow(*pair) for pair in zip(first, second, strict=True)]
        opening, deciding = len(ended(first)) - alone, len(ended(second)) - alone
        assert all(following(job) for job in followers)
        counts.append((opening, deciding))
    assert counts[0] == counts[1]
    assert max(counts[0]) <= MORE


def test_statements_of_rounds_are_made_once(database: str) -> None:
    """The compiled ones are kept for the life of the process."""
    sizes = []
    for _ in range(3):
        first = [make_job() for _ in range(2)]
        for each in first:
            follow(each)
        ended(first)
        look()
        sizes.append(compile_statement.cache_info().currsize)
    assert sizes[1] == sizes[2]
