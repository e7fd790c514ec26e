"""Deletion of jobs: with all that is theirs, in as many statements for many as for one."""

from app.database.engine import transact
from app.models.alarm import Alarm
from app.models.base import Base
from app.models.channel import ChannelScope
from app.models.code import JobVersion
from app.models.favourite import Favourite
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.promise import JobPromise, PromiseCheck
from app.models.skip import Skip
from app.models.tag import JobTag
from app.store.jobs.removal import delete_jobs
from tests.support.factories import T0, all_rows, make_job, make_run, save
from tests.support.plan import every_database
from tests.support.statements import statements

THEIRS: tuple[type[Base], ...] = (
    *(Job, JobLog, Fire, Alarm, Mute, GlueVersion, JobVersion, Skip, JobTag, Favourite, ChannelScope),
    *(JobPromise, PromiseCheck),
)


def make_whole_job() -> int:
    """Store a job with a row in each table that has something of a job."""
    job = make_job()
    run = make_run(job)
    save(Alarm(log_id=run.id, job_id=job.id, reason="failed", state="PENDING", created_ms=T0))
    save(Mute(job_id=job.id, since_ms=T0, until_ms=T0))
    save(GlueVersion(job_id=job.id, glue_source="", glue_remark=""))
    save(JobVersion(job_id=job.id, number=1, at_ms=T0, username="ann", fields="{}"))
    save(Skip(job_id=job.id, from_ms=T0, to_ms=T0, skipped=1, reason="stopped", recorded_ms=T0))
    save(JobTag(job_id=job.id, tag="night", tag_key="night"))
    save(Favourite(user_id=1, job_id=job.id))
    save(
        JobPromise(
            job_id=job.id, number=1, kind="fails_at_most", definition="{}", since_ms=T0, planned_until_ms=T0
        )
    )
    save(PromiseCheck(job_id=job.id, number=1, logical_ms=T0, until_ms=T0, due_ms=T0))
    save(ChannelScope(channel_id=1, group_id=0, job_id=job.id))
    return job.id


@every_database
def test_many_jobs_are_deleted_in_as_many_statements_as_one(database: str) -> None:
    first, *others, kept = [make_whole_job() for _ in range(12)]
    counts = []
    for job_ids in ([first], others):
        with statements() as executed:
            transact(lambda session, ids=job_ids: delete_jobs(session, ids))
        counts.append(len(executed))
    assert counts[0] == counts[1]
    assert [row.id for row in all_rows(Job)] == [kept]
    for model in THEIRS:
        assert len(all_rows(model)) == 1, model
