"""Long chains of child jobs need few statements, whether entered or imported."""

from dataclasses import replace

import pytest

from app.database.engine import read_scope, session_scope
from app.database.rows import bulk
from app.domain.access.permissions import system_actor
from app.errors import InvalidInput
from app.models.job import Job
from app.services.jobs import jobs
from app.services.jobs.jobs import JobDraft
from app.store.jobs import listing as job_lists
from tests.support.factories import T0, make_group
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

LENGTH = 2_000
ADMIN = system_actor("test")


@pytest.fixture
def chain() -> tuple[int, list[int]]:
    """Store a chain of jobs; return their group and their ids."""
    group_id = make_group().id
    row = {
        "job_group": group_id,
        "job_desc": "link",
        "author": "ann",
        "schedule_type": "NONE",
        "glue_type": "BEAN",
        "child_jobid": "",
    }
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, Job, [dict(row) for _ in range(LENGTH)])
        links = [
            {"id": parent, "child_jobid": str(child)} for parent, child in zip(ids, ids[1:], strict=False)
        ]
        bulk.update_many(session, Job, links)
    return group_id, ids


def draft(group_id: int, child_jobid: str) -> JobDraft:
    made = JobDraft(
        job_group=group_id,
        job_desc="link",
        author="ann",
        schedule_type="NONE",
        executor_handler="demo",
        glue_type="BEAN",
    )
    made = replace(
        made,
        misfire_strategy="DO_NOTHING",
        executor_route_strategy="FIRST",
        executor_block_strategy="SERIAL_EXECUTION",
    )
    return replace(made, child_jobid=child_jobid)


def save(job_id: int, group_id: int, *child_ids: int) -> None:
    with session_scope() as session:
        typed = draft(group_id, ",".join(map(str, child_ids)))
        jobs.update_job(session, job_id, typed, actor=ADMIN, clock=lambda: T0)


def test_a_chain_is_checked_with_few_statements(chain: tuple[int, list[int]]) -> None:
    group_id, ids = chain
    with session_scope() as session:
        outside = jobs.add_job(session, draft(group_id, ""), actor=ADMIN, clock=lambda: T0)
    with statements() as seen:
        save(outside, group_id, ids[0], ids[1], ids[5])
    assert len(seen) < 30
    with statements() as seen, pytest.raises(InvalidInput, match="leads back"):
        save(ids[-1], group_id, outside)
    assert len(seen) < 30
    with pytest.raises(InvalidInput, match="leads back"):
        save(ids[-1], group_id, ids[0])


def test_a_deleted_child_ends_only_its_branch(chain: tuple[int, list[int]]) -> None:
    group_id, ids = chain
    with session_scope() as session:
        links = [
            {"id": parent, "child_jobid": f"{child},{10**9 + child}"}
            for parent, child in zip(ids, ids[1:], strict=False)
        ]
        bulk.update_many(session, Job, links)
    with statements() as seen, pytest.raises(InvalidInput, match="leads back"):
        save(ids[-1], group_id, ids[0])
    assert len(seen) < 30


def test_descendants_are_found_from_any_number_of_jobs(chain: tuple[int, list[int]]) -> None:
    group_id, ids = chain
    with read_scope() as session:
        near = job_lists.find_descendants(session, ids[-3:])
        far = job_lists.find_descendants(session, [ids[10]])
        all_found = job_lists.find_descendants(session, [*ids[5:], 10**9])
    assert near == {ids[-3]: (group_id, [ids[-2]]), ids[-2]: (group_id, [ids[-1]]), ids[-1]: (group_id, [])}
    assert list(far) == ids[10:]
    assert sorted(all_found) == ids[5:]
