"""Rows of the original's tables, listed explicitly so that no new column leaks.

Source: docs/reference/clients.md, section B3.
"""

from typing import Any

from app.console.web.envelope import date_text
from app.domain.access.permissions import Actor, Right
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User


def group_row(group: Group) -> dict[str, Any]:
    """Return a group; never its token."""
    return {
        "id": group.id,
        "appname": group.app_name,
        "title": group.title,
        "addressType": group.address_type,
        "addressList": group.address_list,
        "updateTime": date_text(group.update_time),
        "registryList": group.addresses or None,
    }


def job_row(job: Job, actor: Actor) -> dict[str, Any]:
    """Return a job; its source is empty for an actor without the GLUE right on its group."""
    source = job.glue_source if actor.may(job.job_group, Right.GLUE) else ""
    return {
        "id": job.id,
        "jobGroup": job.job_group,
        "jobDesc": job.job_desc,
        "addTime": date_text(job.add_time),
        "updateTime": date_text(job.update_time),
        "author": job.author,
        "alarmEmail": job.alarm_email,
        "scheduleType": job.schedule_type,
        "scheduleConf": job.schedule_conf,
        "misfireStrategy": job.misfire_strategy,
        "executorRouteStrategy": job.executor_route_strategy,
        "executorHandler": job.executor_handler,
        "executorParam": job.executor_param,
        "executorBlockStrategy": job.executor_block_strategy,
        "executorTimeout": job.executor_timeout,
        "executorFailRetryCount": job.executor_fail_retry_count,
        "glueType": job.glue_type,
        "glueSource": source,
        "glueRemark": job.glue_remark,
        "glueUpdatetime": date_text(job.glue_updatetime),
        "childJobId": job.child_jobid,
        "triggerStatus": job.trigger_status,
        "triggerLastTime": job.trigger_last_time,
        "triggerNextTime": job.trigger_next_time,
    }


def log_row(log: JobLog) -> dict[str, Any]:
    """Return a run."""
    return {
        "id": log.id,
        "jobGroup": log.job_group,
        "jobId": log.job_id,
        "executorAddress": log.executor_address,
        "executorHandler": log.executor_handler,
        "executorParam": log.executor_param,
        "executorShardingParam": log.executor_sharding_param,
        "executorFailRetryCount": log.executor_fail_retry_count,
        "triggerTime": date_text(log.trigger_time),
        "triggerCode": log.trigger_code,
        "triggerMsg": log.trigger_msg,
        "handleTime": date_text(log.handle_time),
        "handleCode": log.handle_code,
        "handleMsg": log.handle_msg,
        "alarmStatus": log.alarm_status,
    }


def user_row(user: User) -> dict[str, Any]:
    """Return a user; the password is always null."""
    return {
        "id": user.id,
        "username": user.username,
        "password": None,
        "role": user.role,
        "permission": user.permission,
    }
