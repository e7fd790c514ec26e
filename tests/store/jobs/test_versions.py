"""Versions of jobs: the newest of each, and which are deleted."""

import pytest
from sqlalchemy.orm import Session

from app.store.jobs import versions as store
from tests.support.factories import T0, make_job


def insert(session: Session, job_id: int, *numbers: int) -> None:
    rows = [
        {
            "job_id": job_id,
            "number": number,
            "at_ms": T0 + number,
            "username": "ann",
            "source": "",
            "fields": f'{{"param": "{number} 夜 \\u0000"}}',
        }
        for number in numbers
    ]
    store.insert_versions(session, rows)


def numbers(session: Session, job_id: int) -> list[int]:
    return [version.number for version in store.list_newest(session, job_id, limit=1_000)]


def test_the_newest_version_of_each_job_is_found(session: Session) -> None:
    insert(session, 7, 1, 2, 3)
    insert(session, 8, 5)
    found = store.find_newest(session, [7, 8, 9])
    assert {job_id: (each.number, each.at_ms) for job_id, each in found.items()} == {
        7: (3, T0 + 3),
        8: (5, T0 + 5),
    }
    assert found[8].fields == '{"param": "5 夜 \\u0000"}'
    assert store.find_newest(session, []) == {}


@pytest.mark.parametrize("others", [0, 1_200], ids=["a small table", "a large one"])
def test_only_versions_beyond_the_limit_of_these_jobs_are_deleted(session: Session, others: int) -> None:
    insert(session, 7, *range(1, 8))
    insert(session, 8, 4, 5, 6)
    insert(session, 9, *range(1, 8))
    insert(session, 10, *range(1, others + 1))
    assert store.delete_older(session, [7, 8], keep=3) == 4
    assert (numbers(session, 7), numbers(session, 8)) == ([7, 6, 5], [6, 5, 4])
    assert numbers(session, 9) == [7, 6, 5, 4, 3, 2, 1]
    assert store.delete_older(session, [], keep=3) == 0


def test_versions_are_listed_newest_first_by_pages(session: Session) -> None:
    insert(session, 7, 1, 2, 3, 4)
    insert(session, 8, 1)
    assert [each.number for each in store.list_newest(session, 7, limit=2)] == [4, 3]
    assert [each.number for each in store.list_newest(session, 7, limit=9, before=3)] == [2, 1]


def test_jobs_are_read_without_their_code(session: Session) -> None:
    job = make_job(executor_param="x", glue_source="print()")
    (row,) = store.read_jobs(session, [job.id, job.id + 1])
    assert (row.id, row.executor_param, row.update_time) == (job.id, "x", T0)
    assert "glue_source" not in row._fields
