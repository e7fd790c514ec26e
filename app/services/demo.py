"""What a first look finds: a group for the demo executor, a job that fires every ten seconds, two to try by hand."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import AddressType, BlockStrategy, GlueType, MisfireStrategy, RouteStrategy, ScheduleType
from app.domain.permissions import Actor
from app.services import jobs
from app.services.groups import GroupDraft, add_group
from app.services.jobs import JobDraft
from app.store import group_lists, job_lists

APP_NAME = "xxl-job-executor-sample"
TITLE = "Sample executor"
#: handler -> (description, cron, is it started)
JOBS = {
    "demoJobHandler": ("Demo: writes a few lines every ten seconds", "0/10 * * * * ?", True),
    "sleepJobHandler": ("Demo: sleeps for as many seconds as its parameter says", "0 0/5 * * * ?", False),
    "failJobHandler": ("Demo: always fails", "0 0/5 * * * ?", False),
}
#: parameters of those that need one
PARAMS = {"sleepJobHandler": "5"}


def seed(session: Session, *, actor: Actor, now_ms: Millis) -> int:
    """Make group and jobs where there is no job yet; return how many jobs were made."""
    if job_lists.count_jobs(session):
        return 0
    group_id = _demo_group(session, actor, now_ms)
    for handler, (description, cron, started) in JOBS.items():
        draft = JobDraft(
            job_group=group_id,
            job_desc=description,
            author=actor.username,
            schedule_type=ScheduleType.CRON,
            schedule_conf=cron,
            misfire_strategy=MisfireStrategy.DO_NOTHING,
            executor_route_strategy=RouteStrategy.FIRST,
            executor_handler=handler,
            executor_param=PARAMS.get(handler, ""),
            executor_block_strategy=BlockStrategy.SERIAL_EXECUTION,
            glue_type=GlueType.BEAN,
        )
        jobs.add_job(session, draft, actor=actor, now_ms=now_ms, start=started)
    return len(JOBS)


def _demo_group(session: Session, actor: Actor, now_ms: Millis) -> int:
    for group in group_lists.find_visible(session, None):
        if group.app_name == APP_NAME:
            return group.id
    draft = GroupDraft(app_name=APP_NAME, title=TITLE, address_type=int(AddressType.AUTOMATIC))
    return add_group(session, draft, actor=actor, networks=(), now_ms=now_ms)
