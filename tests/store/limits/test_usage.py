"""Use of limits: counts of open and waiting runs, the jobs that share a named limit."""

from app.database.engine import read_scope
from app.domain.enums import FireState, LimitKind
from app.domain.limits.waits import WaitReason
from app.models.limit import LimitUse
from app.store.limits import usage
from tests.support.factories import make_job, save
from tests.support.limits import add_holder, add_limit, add_waiting


def test_open_runs_are_counted_by_job_and_group(database: str) -> None:
    first, second = make_job(), make_job(job_group=2)
    add_holder(first.id, 1)
    add_holder(first.id, 2, state=FireState.HELD)
    add_holder(first.id, None, state=FireState.PENDING, fire_key="again")
    add_holder(first.id, None, state=FireState.PENDING, fire_key="fresh", admitted_ms=0)
    for shard in range(3):
        add_holder(second.id, 10 + shard, fire_key=f"cron:{second.id}:9:{shard}", sharding_param=f"{shard}/3")
    with read_scope() as session:
        assert usage.count_used_of_jobs(session, [first.id, second.id]) == {first.id: 3, second.id: 1}
        assert usage.count_used_of_groups(session, [first.job_group, 2]) == {first.job_group: 3, 2: 3}
        assert usage.count_used_of_groups(session, []) == {}


def test_waiting_runs_are_counted_by_limit_whatever_they_wait_for(database: str) -> None:
    job, other = make_job(), make_job()
    named, own = add_limit("database", slots=2), add_limit(str(job.id), slots=0, kind=LimitKind.JOB)
    for number, used in enumerate((2, 1, 2)):
        add_waiting(job.id, named, due_ms=number, place=number, used=used, slots=2, log_ids=(number + 1,))
    add_waiting(other.id, own, due_ms=9, place=9, reason=WaitReason.BEHIND)
    with read_scope() as session:
        assert usage.count_waiting(session) == {named: 3, own: 1}
        row = usage.find_own(session, LimitKind.JOB, job.id)
        assert row is not None
        assert row.id == own
        assert usage.find_own(session, LimitKind.GROUP, job.id) is None
        assert {limit.name for limit in usage.find_limits(session, [named, own]).values()} == {
            "database",
            str(job.id),
        }


def test_the_jobs_of_a_limit_have_their_weights(database: str) -> None:
    first, second = make_job(), make_job()
    limit_id = add_limit("database", slots=3)
    save(LimitUse(job_id=second.id, limit_id=limit_id, weight=2))
    save(LimitUse(job_id=first.id, limit_id=limit_id, weight=1))
    with read_scope() as session:
        rows = usage.find_jobs(session, limit_id, limit=10)
        assert [(job.id, weight) for job, weight in rows] == [(first.id, 1), (second.id, 2)]
        assert len(usage.find_jobs(session, limit_id, limit=1)) == 1
