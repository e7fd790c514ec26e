"""Command palette: what a text finds, and which users may see it."""

import pytest

from app.database.engine import session_scope
from app.domain.access.permissions import Actor, Right
from app.models.log import JobLog
from app.services.jobs.palette import MATCHES_MAX, find_matches
from tests.support.factories import T0, make_group, make_job, save

pytestmark = pytest.mark.usefixtures("database")
ADMIN = Actor(1, "admin", is_admin=True)


def test_jobs_runs_and_groups_are_found_and_only_those_the_user_may_see() -> None:
    own, foreign = (
        save(make_group(app_name=name, title=f"{name} nightly", address_type=0)).id
        for name in ("own", "foreign")
    )
    jobs = [save(make_job(job_group=group, job_desc="nightly report")).id for group in (own, foreign)]
    run, hidden = (
        save(JobLog(job_group=group, job_id=job, trigger_time=T0)).id
        for group, job in zip((own, foreign), jobs, strict=True)
    )
    viewer = Actor(2, "viewer", is_admin=False, rights={own: frozenset({Right.VIEW})})
    with session_scope() as session:
        assert len(find_matches(session, "nightly", actor=ADMIN).jobs) == 2
        assert len(find_matches(session, "nightly", actor=ADMIN).groups) == 2
        seen = find_matches(session, "nightly", actor=viewer)
        assert [job.value for job in seen.jobs] == [str(jobs[0])]
        assert (seen.groups, seen.users) == ((), ())
        found = find_matches(session, f"#{run}", actor=viewer).run
        assert found is not None
        assert found.id == run
        assert find_matches(session, f"#{hidden}", actor=viewer).run is None
        assert find_matches(session, "", actor=ADMIN).jobs == ()


def test_matches_of_a_kind_are_few() -> None:
    group = save(make_group(app_name="many", title="many", address_type=0)).id
    for number in range(MATCHES_MAX + 2):
        save(make_job(job_group=group, job_desc=f"common {number}"))
    with session_scope() as session:
        assert len(find_matches(session, "common", actor=ADMIN).jobs) == MATCHES_MAX
