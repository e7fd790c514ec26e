"""Sample group and job of a new database, and demo jobs: one runs every ten seconds, two are run manually."""

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor
from app.domain.enums import (
    AddressType,
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
)
from app.services.executors.groups import GroupDraft, add_group
from app.services.jobs import jobs
from app.services.jobs.rules import JobDraft
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists

#: AppName of the demo executor, the default of client libraries. Source: docs/reference/schema.md, section 9
APP_NAME = "xxl-job-executor-sample"
TITLE = "Sample executor"
SAMPLE_JOB = "Sample job"
SAMPLE_OWNER = "XXL"
SAMPLE_CRON = "0 0 0 * * ? *"
#: handler -> (description, cron, whether its schedule is on)
JOBS = {
    "demoJobHandler": ("Demo: writes a few lines every ten seconds", "0/10 * * * * ?", True),
    "sleepJobHandler": ("Demo: sleeps for the seconds given as parameter", "0 0/5 * * * ?", False),
    "failJobHandler": ("Demo: always fails", "0 0/5 * * * ?", False),
}
#: handler -> parameter
PARAMS = {"sleepJobHandler": "5"}


def add_sample(session: Session, *, actor: Actor, clock: Clock) -> bool:
    """Create the sample group and job, switched off, in an empty database; return whether it did."""
    if job_lists.count_jobs(session) or group_lists.find_visible(session, None):
        return False
    draft = _draft(
        _sample_group(session, actor, clock()),
        SAMPLE_JOB,
        handler="demoJobHandler",
        cron=SAMPLE_CRON,
        author=SAMPLE_OWNER,
    )
    jobs.add_job(session, draft, actor=actor, clock=clock)
    return True


def seed(session: Session, *, actor: Actor, clock: Clock) -> int:
    """Create group and jobs of the demo if there is no job except the sample; return how many jobs."""
    if job_lists.count_jobs(session) > _count_sample_jobs(session):
        return 0
    group_id = _sample_group(session, actor, clock())
    for handler, (description, cron, is_on) in JOBS.items():
        draft = _draft(group_id, description, handler=handler, cron=cron, author=actor.username)
        jobs.add_job(session, draft, actor=actor, clock=clock, start=is_on)
    return len(JOBS)


def _draft(group_id: int, description: str, *, handler: str, cron: str, author: str) -> JobDraft:
    return JobDraft(
        job_group=group_id,
        job_desc=description,
        author=author,
        schedule_type=ScheduleType.CRON,
        schedule_conf=cron,
        misfire_strategy=MisfireStrategy.DO_NOTHING,
        executor_route_strategy=RouteStrategy.FIRST,
        executor_handler=handler,
        executor_param=PARAMS.get(handler, ""),
        executor_block_strategy=BlockStrategy.SERIAL_EXECUTION,
        glue_type=GlueType.BEAN,
    )


def _count_sample_jobs(session: Session) -> int:
    groups = [group for group in group_lists.find_visible(session, None) if group.app_name == APP_NAME]
    return sum(
        job.job_desc == SAMPLE_JOB for group in groups for job in job_lists.list_of_group(session, group.id)
    )


def _sample_group(session: Session, actor: Actor, now_ms: Millis) -> int:
    for group in group_lists.find_visible(session, None):
        if group.app_name == APP_NAME:
            return group.id
    draft = GroupDraft(app_name=APP_NAME, title=TITLE, address_type=int(AddressType.AUTOMATIC))
    return add_group(session, draft, actor=actor, now_ms=now_ms)
