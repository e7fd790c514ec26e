"""Helpers of the tests of console scripting, for all that need them."""

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.log import JobLog


def add_log(
    job_id: int,
    group_id: int,
    *,
    trigger_code: int = 200,
    handle_code: int = 0,
    at_ms: int | None = None,
    address: str = "",
    result: str | None = None,
) -> int:
    with session_scope() as session:
        log = JobLog(job_group=group_id, job_id=job_id, trigger_code=trigger_code, handle_code=handle_code)
        log.handle_msg = result
        log.trigger_time, log.executor_address = at_ms or now_ms(), address or None
        session.add(log)
        session.flush()
        return log.id


#: the bean an auto-registration starter posts, including fields it does not need
BEAN = {
    "id": "0",
    "jobDesc": "from a starter",
    "author": "starter",
    "alarmEmail": "",
    "scheduleType": "CRON",
    "scheduleConf": "0 0 3 * * ?",
    "cronGen_display": "0 0 3 * * ?",
    "schedule_conf_CRON": "0 0 3 * * ?",
    "schedule_conf_FIX_RATE": "",
    "jobCron": "",
    "misfireStrategy": "DO_NOTHING",
    "executorRouteStrategy": "ROUND",
    "executorHandler": "starterHandler",
    "executorParam": "",
    "executorBlockStrategy": "SERIAL_EXECUTION",
    "executorTimout": "3",
    "glueType": "BEAN",
    "glueSource": "",
    "glueRemark": "initial code",
    "childJobId": "",
    "triggerLastTime": "0",
    "triggerNextTime": "77",
    "addTime": "2024-05-01 03:04:05",
    "glueUpdatetime": "",
}


#: endpoints that change something: never by GET
CHANGING = [
    "/jobinfo/add",
    "/jobinfo/update",
    "/jobinfo/remove",
    "/jobinfo/start",
    "/jobinfo/stop",
    "/jobinfo/trigger",
    "/jobcode/save",
    "/joblog/logKill",
    "/joblog/clearLog",
    "/jobgroup/save",
    "/jobgroup/update",
    "/jobgroup/remove",
    "/user/add",
    "/user/update",
    "/user/remove",
    "/user/updatePwd",
]
