"""Sample data of a console after weeks of use, in the reader's language."""

import json
import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import Actor, Right, system_actor
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.enums import FireState, NodeKind, RegistryGroup, ScheduleType, TriggerStatus, TriggerType
from app.domain.runs.trigger_report import format_instant
from app.domain.schedules.schedule import Schedule, next_after_ms
from app.domain.text.texts import fold
from app.models.api_token import ApiToken
from app.models.base import local_datetime, zone_name
from app.models.code import CodeObject
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.models.node import Node
from app.models.registry import Registration
from app.models.report import DayReport
from app.models.saved_view import SavedView
from app.models.session import LoginSession
from app.models.skip import Skip
from app.models.tag import JobTag
from app.models.user import User
from app.services.accounts import api_tokens, users
from app.services.accounts.actors import actor_of
from app.services.accounts.api_tokens import TokenDraft
from app.services.accounts.users import UserDraft
from app.services.alarms import channel_setup
from app.services.alarms.channel_setup import ChannelDraft
from app.services.auditing import audit
from app.services.jobs import versions
from app.services.variables import variables
from app.services.variables.variables import VariableDraft
from app.store.jobs.managed_objects import JOB
from tests.browser.seed_alarms import add_alarms
from tests.browser.seed_backfills import add_backfills
from tests.browser.seed_calendars import add_blackouts, add_calendars
from tests.browser.seed_completeness import add_days
from tests.browser.seed_graph import add_following
from tests.browser.seed_limits import add_limits
from tests.browser.seed_promises import add_promises
from tests.browser.seed_rounds import add_rounds

ADMIN = ("admin", "correct-horse-7")
NORMAL = ("wangwei", "battery-staple-8")

#: zone of the schedules
ZONE = "Asia/Shanghai"
#: node of the workers, which are not running
NODE = "node-1"
TITLES = {
    "en": ("Orders", "Reports", "Mail gateway"),
    "zh_CN": ("订单服务", "报表服务", "邮件网关"),
}
#: description, owner, schedule type, conf, handler, kind of code, on
JOBS = {
    "en": (
        ("Close unpaid orders", "lina", "CRON", "0 0/5 * * * ?", "closeUnpaidOrders", "BEAN", 1),
        ("Settle the orders of the day", "lina", "CRON", "0 30 2 * * ?", "settleOrders", "BEAN", 1),
        ("Send reminders", "marco", "FIX_RATE", "900", "sendReminders", "BEAN", 1),
        ("Rebuild the sales report", "yusuf", "CRON", "0 0 6 ? * MON-FRI", "rebuildSalesReport", "BEAN", 1),
        ("Pull exchange rates", "yusuf", "FIX_DELAY", "600", "", "GLUE_PYTHON", 1),
        ("Clean the temporary files", "marco", "CRON", "0 15 3 ? * SUN", "", "GLUE_SHELL", 0),
        ("Import the partner catalogue", "lina", "NONE", "", "importCatalogue", "BEAN", 0),
        ("Mail queue", "marco", "CRON", "0/30 * * * * ?", "flushMailQueue", "BEAN", 1),
        ("Year-end closing", "yusuf", "AT", "2031-01-01 00:10:00", "closeYear", "BEAN", 1),
        ("Check the stock of all branches", "lina", "CRON", "0 0 8-20/2 * * ?", "checkStock", "BEAN", 1),
    ),
    "zh_CN": (
        ("关闭未支付订单", "李娜", "CRON", "0 0/5 * * * ?", "closeUnpaidOrders", "BEAN", 1),
        ("每日订单结算", "李娜", "CRON", "0 30 2 * * ?", "settleOrders", "BEAN", 1),
        ("发送付款提醒", "王伟", "FIX_RATE", "900", "sendReminders", "BEAN", 1),
        ("重建销售报表", "张敏", "CRON", "0 0 6 ? * MON-FRI", "rebuildSalesReport", "BEAN", 1),
        ("拉取汇率", "张敏", "FIX_DELAY", "600", "", "GLUE_PYTHON", 1),
        ("清理临时文件", "王伟", "CRON", "0 15 3 ? * SUN", "", "GLUE_SHELL", 0),
        ("导入合作方商品目录", "李娜", "NONE", "", "importCatalogue", "BEAN", 0),
        ("邮件队列", "王伟", "CRON", "0/30 * * * * ?", "flushMailQueue", "BEAN", 1),
        ("年终结账", "张敏", "AT", "2031-01-01 00:10:00", "closeYear", "BEAN", 1),
        ("检查各门店库存", "李娜", "CRON", "0 0 8-20/2 * * ?", "checkStock", "BEAN", 1),
    ),
}
#: logins of the normal user: address, browser
LOGINS = (
    ("10.0.3.70", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("10.0.3.8", "python-requests/2.32.3"),
)
#: index of a job -> its tags
TAGS = {
    "en": {
        0: ("orders", "every hour"),
        1: ("orders", "nightly"),
        3: ("money", "nightly"),
        7: ("mail",),
        8: ("money",),
    },
    "zh_CN": {0: ("订单", "每小时"), 1: ("订单", "夜间"), 3: ("财务", "夜间"), 7: ("邮件",), 8: ("财务",)},
}
#: indexes of the jobs the administrator has starred; name and filters of the view
STARRED, VIEW = (
    (0, 3),
    {"en": ("Nightly money", "tag=money&triggerStatus=1"), "zh_CN": ("夜间财务", "tag=财务&triggerStatus=1")},
)
#: days with runs
YEAR_DAYS = 340
#: index of the group each job belongs to
GROUP_OF = (0, 0, 2, 1, 1, 0, 0, 2, 1, 0)


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a test needs to know about the data."""

    groups: list[int]
    jobs: list[int]
    #: a run with a log, the newest
    log_id: int
    #: the normal user
    user_id: int
    #: a view of the administrator
    view_id: int
    #: run whose parameter was filled in; the next one could not be
    filled_id: int
    #: an open incident
    incident_id: int
    #: a named limit with runs that wait for it
    limit_id: int
    #: an open round
    round_id: int
    #: the calendar of a country
    calendar_id: int
    #: a blackout that is on
    blackout_id: int
    #: a backfill that runs; the one before has stopped at a failure
    backfill_id: int


def seed(
    session: Session, *, now_ms: Millis, language: str = "en", executor: str = "http://127.0.0.1:9999"
) -> Seeded:
    """Fill an empty migrated database."""
    chance = random.Random(7)
    for model in (Group, Job, User):
        session.query(model).delete()
    groups = _groups(session, language, executor, now_ms)
    jobs = [_job(session, groups, index, row, now_ms) for index, row in enumerate(JOBS[language])]
    session.flush()
    log_id = 0
    for hours in range(30, 0, -1):
        for job in chance.sample(jobs[:5] + jobs[7:8] + jobs[9:], 3):
            _run(
                session,
                job,
                groups,
                now_ms - hours * 20 * MINUTE_MS - chance.randrange(60) * SECOND_MS,
                chance,
            )
    _last_hour(session, jobs, groups, now_ms)
    log_id = _last_runs(session, jobs, executor, now_ms)
    _days(session, now_ms, chance)
    session.add(
        Node(
            name=NODE,
            kind=NodeKind.WORKERS,
            started_ms=now_ms,
            heartbeat_ms=now_ms + DAY_MS,
            version="1.0.0",
        )
    )
    user_id = _users(session, groups, now_ms)
    view_id = _kept(session, jobs, language)
    _history(session, groups, jobs, log_id, now_ms)
    session.flush()
    add_alarms(session, jobs, now_ms)
    _tokens(session, groups, now_ms)
    _versions(session, jobs[0], now_ms)
    _managed(session, jobs[6], now_ms)
    _variables(session, jobs[8], now_ms)
    add_days(session, jobs, zone_name(), now_ms)
    filled_id = _filled_runs(session, jobs[8], log_id, now_ms)
    job_ids = [job.id for job in jobs]
    incident_id = add_promises(session, groups, jobs, now_ms)
    limit_id = add_limits(session, groups, jobs, language, now_ms)
    add_following(session, jobs, now_ms)
    group_ids = [group.id for group in groups]
    round_id = add_rounds(session, jobs, now_ms)
    calendar_id = add_calendars(session, jobs, language, now_ms)
    blackout_id = add_blackouts(session, jobs, language, now_ms)
    backfill_id = add_backfills(session, jobs[2], now_ms)
    ids = (log_id, user_id, view_id, filled_id, incident_id, limit_id, round_id, calendar_id, blackout_id)
    return Seeded(group_ids, job_ids, *ids, backfill_id)


def beat(session: Session, now_ms: Millis) -> None:
    """Renew heartbeats and next times, for pictures taken long after the data was created."""
    for job in session.scalars(select(Job).where(Job.trigger_status == TriggerStatus.RUNNING)):
        schedule = Schedule(ScheduleType(job.schedule_type), job.schedule_conf or "", ZONE)
        job.trigger_next_time = next_after_ms(schedule, now_ms) or 0
    session.execute(update(Registration).values(update_time=now_ms - 12 * SECOND_MS))
    session.execute(update(Node).values(heartbeat_ms=now_ms - 2 * SECOND_MS))


def _groups(session: Session, language: str, executor: str, now_ms: Millis) -> list[Group]:
    names = ("shop-orders", "shop-reports", "mail-gateway")
    lists = (f"{executor},http://10.0.3.12:9999,http://10.0.3.13:9999", "http://10.0.3.21:9999", None)
    groups = []
    for name, title, addresses in zip(names, TITLES[language], lists, strict=True):
        groups.append(
            Group(app_name=name, title=title, address_type=0, address_list=addresses, update_time=now_ms)
        )
    groups[0].alarm_urls = "ntfy://ntfy.example.com/orders\njson://ops.example.com/alarms"
    session.add_all(groups)
    beating = [
        (name, address)
        for name, addresses in zip(names, lists, strict=True)
        for address in (addresses or "").split(",")
        if address
    ]
    for name, address in [*beating, ("warehouse-sync", "http://10.0.3.40:9999")]:
        session.add(
            Registration(
                registry_group=RegistryGroup.EXECUTOR,
                registry_key=name,
                registry_value=address,
                update_time=now_ms - 12 * SECOND_MS,
            )
        )
    session.flush()
    former = (
        (names[0], "http://10.0.3.11:9999", 24 * 60),
        (names[2], "http://10.0.3.31:9999", 190),
        (names[2], "http://10.0.3.32:9999", 185),
    )
    session.add_all(
        LastSeen(app_name=name, address=address, last_seen_ms=now_ms - minutes * MINUTE_MS)
        for name, address, minutes in former
    )
    session.add(
        Drain(
            group_id=groups[0].id,
            address="http://10.0.3.13:9999",
            since_ms=now_ms - 42 * MINUTE_MS,
            username="lina",
        )
    )
    return groups


#: GLUE code: the current one is the version without a number
PYTHON = '''"""Exchange rates of the day, for the shop."""

import json
import sys
import urllib.request

URL = "https://rates.example.com/latest?base=EUR"


def fetch(timeout_s: int = %s) -> dict[str, float]:
    with urllib.request.urlopen(URL, timeout=timeout_s) as answer:
        return json.load(answer)["rates"]


for currency, rate in sorted(fetch().items()):
    print(f"{currency} {rate:.4f}")
sys.exit(0)
'''


def _glue_source(glue: str, version: int = 0) -> str:
    if glue == "GLUE_PYTHON":
        return PYTHON % (10, 60, 30)[version]
    return f"echo version {version}\n" if version else "echo hello\n"


def _job(
    session: Session,
    groups: list[Group],
    index: int,
    row: tuple[str, str, str, str, str, str, int],
    now_ms: Millis,
) -> Job:
    desc, author, kind, conf, handler, glue, running = row
    job = Job(
        job_group=groups[GROUP_OF[index]].id,
        job_desc=desc,
        author=author,
        schedule_type=kind,
        schedule_conf=conf,
        executor_handler=handler,
        executor_param="region=eu" if index == 1 else "",
        glue_type=glue,
        glue_source=_glue_source(glue) if glue != "BEAN" else "",
        glue_remark="first" if glue != "BEAN" else "",
        executor_route_strategy="ROUND",
        executor_block_strategy="SERIAL_EXECUTION",
        trigger_status=int(TriggerStatus.RUNNING) if running else int(TriggerStatus.STOPPED),
        trigger_next_time=now_ms + (index + 1) * 7 * MINUTE_MS if running else 0,
        child_jobid="",
        add_time=now_ms - 40 * DAY_MS,
        update_time=now_ms - 3 * DAY_MS,
    )
    session.add(job)
    session.flush()
    if glue != "BEAN":
        for number, remark in enumerate(("first version", "timeout added"), 1):
            session.add(
                GlueVersion(
                    job_id=job.id, glue_type=glue, glue_source=_glue_source(glue, number), glue_remark=remark,
                    add_time=now_ms - (9 - number) * DAY_MS, update_time=now_ms - (9 - number) * DAY_MS,
                    author=author,
                )
            )  # fmt: skip
    return job


def _run(session: Session, job: Job, groups: list[Group], at_ms: Millis, chance: random.Random) -> JobLog:
    group = next(group for group in groups if group.id == job.job_group)
    address = chance.choice(group.addresses) if group.addresses else None
    log = JobLog(
        job_group=job.job_group,
        job_id=job.id,
        executor_address=address,
        executor_handler=job.executor_handler,
        executor_param=job.executor_param,
        trigger_time=at_ms,
        fire_time=at_ms,
        trigger_type=TriggerType.CRON,
    )
    if address is None:
        log.trigger_code, log.trigger_msg = (
            500,
            _trace_start(at_ms, "") + "\nResult: not sent, no executor of mail-gateway is registered",
        )
    else:
        failed = chance.random() < 0.08
        log.trigger_code, log.trigger_msg = 200, _trace(address, at_ms)
        log.handle_code, log.handle_time = (
            (500 if failed else 200),
            at_ms + chance.randrange(1, 90) * SECOND_MS,
        )
        log.handle_msg = (
            "ConnectionError: the ledger does not answer" if failed else "412 orders <b>closed</b>"
        )
    session.add(log)
    return log


def _last_hour(session: Session, jobs: list[Job], groups: list[Group], now_ms: Millis) -> None:
    """Add runs for a timeline of one hour: a job every five minutes, one with overlapping runs."""
    chance = random.Random(11)
    for minutes in range(55, 5, -5):
        _run(session, jobs[0], groups, now_ms - minutes * MINUTE_MS, chance)
    for minutes in (48, 45, 27, 12):
        long = _run(session, jobs[4], groups, now_ms - minutes * MINUTE_MS, chance)
        long.handle_time = (long.trigger_time or 0) + chance.randrange(5, 9) * MINUTE_MS
    first_ms = now_ms - 38 * MINUTE_MS
    skip = Skip(
        job_id=jobs[7].id, from_ms=first_ms, to_ms=first_ms + 9 * MINUTE_MS, skipped=19, reason="misfire"
    )
    skip.recorded_ms = skip.to_ms + 6 * SECOND_MS
    session.add(skip)


def _trace_start(at_ms: Millis, addresses: str, trigger: str = TriggerType.CRON) -> str:
    """Return the first lines of a run's trace."""
    at = format_instant(at_ms, "UTC")
    return (
        f"Trigger: {trigger}, due {at}, seen by node node-1\n"
        f"Claimed: {at} (0 ms after due), node node-1\nAddresses: registered [{addresses}]\n"
        "Route: FIRST; block strategy: SERIAL_EXECUTION; timeout: 0 s; retries left: 0\n>>> trigger <<<"
    )


def _trace(address: str, at_ms: Millis, trigger: str = TriggerType.CRON) -> str:
    """Return the trace of an accepted run."""
    return (
        _trace_start(at_ms, address, trigger)
        + f"\nSent to: {address}\nResult: accepted, answered after 4 ms, code 200"
    )


def _last_runs(session: Session, jobs: list[Job], executor: str, now_ms: Millis) -> int:
    """Add a newest run of each state; return the id of the finished one whose executor answers."""
    states = ((9, 200, 200), (3, 200, 0), (4, 504, 0), (0, 200, 502), (1, 200, 0))
    for minutes, (index, trigger_code, handle_code) in enumerate(states, 1):
        job = jobs[index]
        log = JobLog(
            job_group=job.job_group, job_id=job.id, executor_address=executor,
            executor_handler=job.executor_handler, executor_param="region=eu",
            trigger_time=now_ms - minutes * MINUTE_MS, trigger_code=trigger_code,
            trigger_msg=_trace(executor, now_ms - minutes * MINUTE_MS), handle_code=handle_code,
        )  # fmt: skip
        if handle_code:
            log.handle_time, log.handle_msg = (
                now_ms - minutes * MINUTE_MS + 9 * SECOND_MS,
                "done" if handle_code == 200 else "timeout",
            )
        session.add(log)
        session.flush()
        if trigger_code == 200 and not handle_code:
            session.add(
                Fire(
                    job_id=job.id, fire_key=f"cron:{job.id}:0", due_time=log.trigger_time,
                    trigger_type=TriggerType.CRON,
                    state=FireState.ACCEPTED, log_id=log.id, address=executor, deadline_ms=now_ms + DAY_MS,
                )
            )  # fmt: skip
        if minutes == 1:
            finished = log.id
            _neighbours(session, log, jobs[3])
    session.add(
        Skip(
            job_id=jobs[0].id,
            from_ms=now_ms - DAY_MS,
            to_ms=now_ms - DAY_MS + 900_000,
            skipped=3,
            reason="misfire",
            recorded_ms=now_ms,
        )
    )
    session.add(
        Fire(
            job_id=jobs[2].id,
            fire_key=f"cron:{jobs[2].id}:1",
            due_time=now_ms - 40 * SECOND_MS,
            trigger_type=TriggerType.CRON,
            state=FireState.PENDING,
        )
    )
    return finished


def _neighbours(session: Session, log: JobLog, child: Job) -> None:
    """Make a run the retry of a failed one and the parent of another."""
    at_ms, address = log.trigger_time or 0, log.executor_address
    common = {"trigger_code": 200, "trigger_msg": _trace(address or "", at_ms), "executor_address": address}
    failed = JobLog(
        job_group=log.job_group, job_id=log.job_id, handle_code=500, trigger_type=TriggerType.CRON, **common
    )
    failed.trigger_time, failed.handle_time, failed.handle_msg = (
        at_ms - 20 * SECOND_MS,
        at_ms - SECOND_MS,
        "ConnectionError",
    )
    session.add(failed)
    session.flush()
    log.trigger_type, log.source_log_id = TriggerType.RETRY, failed.id
    log.trigger_msg = _trace(address or "", at_ms, TriggerType.RETRY)
    follower = JobLog(
        job_group=child.job_group, job_id=child.id, handle_code=200, trigger_type=TriggerType.PARENT, **common
    )
    follower.trigger_msg = _trace(address or "", at_ms + 9 * SECOND_MS, TriggerType.PARENT)
    follower.source_log_id, follower.trigger_time, follower.handle_time = (
        log.id,
        at_ms + 9 * SECOND_MS,
        at_ms + 11 * SECOND_MS,
    )
    session.add(follower)


def _days(session: Session, now_ms: Millis, chance: random.Random) -> None:
    today = local_datetime(now_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    since_midnight_ms = int((local_datetime(now_ms) - today).total_seconds()) * 1000
    for back in range(YEAR_DAYS):
        midnight = (now_ms // 1000) * 1000 - since_midnight_ms - back * DAY_MS
        succeeded, failed = chance.randrange(2_600, 3_400), chance.randrange(3, 160)
        if (
            back >= 30
        ):  # a year of growth, quieter at weekends, mostly without failures, and an occasional bad day
            is_weekend = (today - timedelta(days=back)).weekday() >= 5
            succeeded = succeeded * (YEAR_DAYS - back) // YEAR_DAYS // (3 if is_weekend else 1)
            failed = succeeded // 4 if back % 41 == 0 else failed if back % 3 == 0 else 0
        session.add(
            DayReport(
                trigger_day=midnight, running_count=2 if back == 0 else 0,
                suc_count=succeeded, fail_count=failed, update_time=now_ms,
            )
        )  # fmt: skip


def _kept(session: Session, jobs: list[Job], language: str) -> int:
    """Tag jobs, and give the administrator stars and a view; return its id."""
    for index, tags in TAGS[language].items():
        session.add_all(JobTag(job_id=jobs[index].id, tag=tag, tag_key=fold(tag)) for tag in tags)
    admin = session.query(User).filter_by(username=ADMIN[0]).one()
    session.add_all(Favourite(user_id=admin.id, job_id=jobs[index].id) for index in STARRED)
    name, filters = VIEW[language]
    view = SavedView(user_id=admin.id, list_name="jobs", name=name, name_key=fold(name), filters=filters)
    session.add(view)
    session.flush()
    return view.id


def _history(session: Session, groups: list[Group], jobs: list[Job], log_id: int, now_ms: Millis) -> None:
    """Add two alarm channels, and entries of the change history about a job, a run and a group."""
    slack = {"url": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX"}
    webhook = {"url": "https://alarms.example.com/xxl-job"}
    drafts = [
        ChannelDraft("Slack", ChannelKind.SLACK, slack),
        ChannelDraft("Webhook", ChannelKind.WEBHOOK, webhook, for_all=False, group_ids=[groups[0].id]),
    ]
    lina = Actor(2, "lina", is_admin=True, address="10.0.3.70")
    for draft in drafts:
        channel_setup.add_channel(session, draft, actor=lina, now_ms=now_ms - DAY_MS)
    job, at_ms = ("job", jobs[0].id), now_ms - 50 * MINUTE_MS
    schedule = {"schedule_conf": ["0 0/10 * * * ?", "0 0/5 * * * ?"]}
    routes = {"executor_route_strategy": ["FIRST", "ROUND"], "executor_timeout": [0, 30]}
    for number, entry in enumerate(
        (
            audit.Entry("job.stop", job, {"withdrawn": 0}),
            audit.Entry("job.update", job, schedule),
            audit.Entry("job.start", job, {"trigger_next_time": now_ms}),
            audit.Entry("job.update", job, routes),
            audit.Entry("job.trigger", job, {"executor_param": "--all", "address_list": None}),
            audit.Entry("log.kill", ("log", log_id), {"job_id": jobs[0].id}),
            audit.Entry("group.update", ("group", groups[1].id), {"access_token": ["old", "new"]}),
        )
    ):
        audit.record_many(session, [entry], actor=lina, now_ms=at_ms + number * MINUTE_MS)


#: parameter with placeholders, and what was sent for it
FILLED = (
    '{"region": "${var.REGION}", "day": "${time-1d:yyyy-MM-dd}",'
    ' "file": "${parent.result.file:-none}", "key": "${secret.STORAGE_KEY}"}',
    '{"region": "eu-west-3", "day": "2026-11-20",'
    ' "file": "s3://exports/orders.csv", "key": "${secret.STORAGE_KEY}"}',
)


def _filled_runs(session: Session, job: Job, parent_id: int, now_ms: Millis) -> int:
    """Add a run whose parameter was filled in, and one whose parameter could not be; return the first id."""
    at_ms = now_ms - 3 * MINUTE_MS
    common = {"job_group": job.job_group, "job_id": job.id, "executor_handler": job.executor_handler}
    filled = JobLog(
        **common,
        trigger_time=at_ms,
        trigger_code=200,
        trigger_type=TriggerType.PARENT,
        source_log_id=parent_id,
    )
    filled.trigger_msg, filled.executor_address = (
        _trace("http://10.0.3.12:9999", at_ms, TriggerType.PARENT),
        "http://10.0.3.12:9999",
    )
    filled.handle_code, filled.handle_time, filled.param_form = 200, at_ms + 3 * SECOND_MS, 1
    filled.executor_param, filled.filled_param = FILLED
    session.add(filled)
    session.flush()
    unfilled = JobLog(
        **common, trigger_time=at_ms + MINUTE_MS, trigger_code=500, trigger_type=TriggerType.MANUAL
    )
    unfilled.executor_param, unfilled.param_form = "${parent.result.file}", 1
    reason = "parameter not filled: ${parent.result.file}: the run has no parent"
    due = format_instant(at_ms + MINUTE_MS, "UTC")
    unfilled.trigger_msg = f"Trigger: MANUAL, due {due}\nResult: not sent, {reason}"
    session.add(unfilled)
    session.flush()
    return filled.id


def _variables(session: Session, job: Job, now_ms: Millis) -> None:
    """Add variables with former values, and secrets; the job uses the first variable."""
    lina = Actor(2, "lina", is_admin=True, address="10.0.3.70")
    job.fill_parameter, job.executor_param = 1, FILLED[0]
    drafts = [
        (job.job_group, VariableDraft("REGION", "eu-central-1")),
        (job.job_group, VariableDraft("STORAGE_KEY", secret="not a real key 1", is_confirmed=True)),
        (0, VariableDraft("BUCKET", "s3://warehouse/exports/daily/of-the-shop-with-a-long-name")),
        (
            0,
            VariableDraft(
                "SMTP_PASSWORD", secret="not a real key 2", allowed=[job.job_group], is_confirmed=True
            ),
        ),
    ]
    ids = [
        variables.add_variable(session, draft, group_id=group_id, actor=lina, now_ms=now_ms - 5 * DAY_MS)
        for group_id, draft in drafts
    ]
    for days, value in ((3, "eu-west-1"), (1, "eu-west-3")):
        at_ms = now_ms - days * DAY_MS
        variables.change_variable(session, ids[0], VariableDraft(value=value), actor=lina, now_ms=at_ms)
    secret = VariableDraft(secret="not a real key 3", is_confirmed=True)
    variables.change_variable(session, ids[1], secret, actor=lina, now_ms=now_ms - DAY_MS)


def _tokens(session: Session, groups: list[Group], now_ms: Millis) -> None:
    """Add API tokens: of the administrator, expired and unused, and a service token in use."""
    admin = session.query(User).filter_by(username=ADMIN[0]).one()
    owner = actor_of(session, admin, address="10.0.3.70")
    rights = Grant(frozenset({Right.VIEW, Right.OPERATE}), group_ids=frozenset({groups[0].id, groups[1].id}))
    drafts = [
        TokenDraft("laptop of the administrator", Grant(frozenset(), admin=True)),
        TokenDraft("nightly export", rights, now_ms - 20 * DAY_MS),
        TokenDraft("ci", rights, now_ms + 60 * DAY_MS, service=True),
    ]
    for draft in drafts:
        made = api_tokens.create_token(session, draft, actor=owner, now_ms=now_ms - 30 * DAY_MS)
        if draft.service:
            row = session.get_one(ApiToken, made.id)
            row.last_used_ms, row.last_address = now_ms - 4 * MINUTE_MS, "10.0.7.15"
            through = Actor(0, draft.name, False, address=row.last_address, via=f"token {draft.name}")
            audit.record(session, "job.trigger", actor=through, now_ms=now_ms - 4 * MINUTE_MS)


def _versions(session: Session, job: Job, now_ms: Millis) -> None:
    """Store versions of a job that end with its present fields, and the entries that made them."""
    present = {"schedule_conf": job.schedule_conf, "executor_route_strategy": job.executor_route_strategy}
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", {"schedule_conf": "0 0/15 * * * ?", "executor_timeout": 30}),
        ("token ci", {"schedule_conf": "0 0/10 * * * ?", "executor_route_strategy": "FIRST"}),
        ("import jobs.json", {"executor_param": "region=eu\nlimit=500", "retry_interval_s": 20}),
        ("apply infra@1a2b3c", {"executor_param": "", "executor_timeout": 0, "retry_interval_s": 0}),
        ("", present),
    )
    before: versions.Present | None = None
    for number, (source, changes) in enumerate(steps):
        changed = {name: [getattr(job, name), value] for name, value in changes.items()}
        for name, value in changes.items():
            setattr(job, name, value)
        session.flush()
        actor, at_ms = system_actor("lina"), now_ms - (9 - number) * DAY_MS
        with versions.changes_from(source):
            versions.keep(session, {job.id: before}, actor=actor, now_ms=at_ms)
        if not source.startswith("apply"):
            audit.record(
                session,
                "job.update" if before else "job.add",
                actor=replace(actor, via=source if source.startswith("token") else ""),
                now_ms=at_ms,
                target=("job", job.id),
                changes=changed if before else None,
            )
        before = versions.read_present(session, [job.id])[job.id]


def _managed(session: Session, job: Job, now_ms: Millis) -> None:
    """Let code own fields of a job, of which two were changed since."""
    owned = {"description": job.job_desc, "owner": job.author, "param": "--full --since=7d", "timeout_s": 600}
    session.add(
        CodeObject(
            kind=JOB,
            managed_key="shop-orders/import-catalogue",
            object_id=job.id,
            fields=json.dumps(owned | {"schedule_type": "NONE", "tags": [], "enabled": False}),
            source="infra@1a2b3c",
            applied_ms=now_ms - 2 * DAY_MS,
        )
    )


def _users(session: Session, groups: list[Group], now_ms: Millis) -> int:
    """Add an administrator and a normal user with two logins; return the id of the latter."""
    system = system_actor("seed")
    users.add_user(
        session, UserDraft(username=ADMIN[0], password=ADMIN[1], role=1), actor=system, now_ms=now_ms
    )
    rights = {groups[0].id: frozenset({Right.VIEW, Right.OPERATE})}
    normal = UserDraft(username=NORMAL[0], password=NORMAL[1], group_ids=(groups[0].id,), rights=rights)
    user_id = users.add_user(session, normal, actor=system, now_ms=now_ms)
    for number, (address, agent) in enumerate(LOGINS):
        row = LoginSession(
            token_hash=f"{number:064x}", user_id=user_id, remember=1 - number, address=address, agent=agent
        )
        row.created_ms, row.last_seen_ms, row.expires_ms = (
            now_ms - (3 - number) * DAY_MS,
            now_ms - number * 7 * MINUTE_MS,
            now_ms + 30 * DAY_MS,
        )
        session.add(row)
    return user_id
