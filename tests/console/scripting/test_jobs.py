"""JSON endpoints of jobs, called as scripts of the original call them.

Source: docs/reference/clients.md, sections B2 and B3; docs/reference/console.md, sections 7 to 9.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.enums import TriggerType
from app.models.audit import AuditEntry
from app.models.calendar import JobBlackout, RuleChange
from app.models.fire import Fire
from app.models.job import Job
from app.models.skip import Skip
from app.store.base import locks
from app.store.fires import queue as fires
from app.store.fires.queue import NewFire
from app.store.jobs import glue
from tests.console.pages import token_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_scripting import BEAN
from tests.support.factories import save

JOB_KEYS = """
    id jobGroup jobDesc addTime updateTime author alarmEmail scheduleType scheduleConf misfireStrategy
    executorRouteStrategy executorHandler executorParam executorBlockStrategy executorTimeout
    executorFailRetryCount glueType glueSource glueRemark glueUpdatetime childJobId
    triggerStatus triggerLastTime triggerNextTime
"""


def load(job_id: int) -> Job:
    with session_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        session.expunge(job)
        return job


def fire_keys(job_id: int) -> list[str]:
    with session_scope() as session:
        return sorted(session.scalars(select(Fire.fire_key).where(Fire.job_id == job_id)))


def plan_fires(job_id: int, *due: tuple[str, int, TriggerType]) -> None:
    with session_scope() as session:
        fires.insert_fires(session, [NewFire(key, job_id, at_ms, kind) for key, at_ms, kind in due])


def test_add_accepts_a_starters_whole_bean_and_returns_the_id_as_text(admin: Console) -> None:
    group_id = add_group()
    response = admin.post("/jobinfo/add", BEAN | {"jobGroup": str(group_id)})
    assert response.data == b'{"code":200,"msg":null,"content":"1"}'
    job = load(1)
    assert (job.trigger_status, job.trigger_next_time, job.executor_timeout) == (0, 0, 0)
    assert job.executor_handler == "starterHandler"


def test_add_with_trigger_status_1_starts_the_job(admin: Console) -> None:
    answer = admin.call("/jobinfo/add", **BEAN, jobGroup=add_group(), triggerStatus="1")
    job = load(int(answer["content"]))
    assert job.trigger_status == 1
    assert job.trigger_next_time > now_ms()


def test_the_new_row_is_listed_at_once_with_the_originals_members(admin: Console) -> None:
    group_id = add_group()
    admin.call("/jobinfo/add", **BEAN, jobGroup=group_id)
    text = admin.post("/jobinfo/pageList", {"jobGroup": group_id, "triggerStatus": "-1"}).text
    assert text.startswith('{"recordsTotal":1,"recordsFiltered":1,"data":[{"id":1,"jobGroup":')
    (row,) = json.loads(text)["data"]
    assert list(row) == JOB_KEYS.split()
    assert row["addTime"].endswith(".000+00:00")
    assert len(row["addTime"]) == len("2024-05-01T03:04:05.000+00:00")


def test_the_list_is_filtered_paged_and_newest_first(admin: Console) -> None:
    first, second = add_group("first-app"), add_group("second-app")
    ids = [add_job(first, job_desc=f"job {number}", author=f"ann{number}") for number in range(12)] + [
        add_job(second)
    ]

    def listed(**parameters: Any) -> list[int]:
        return [
            row["id"]
            for row in admin.call("/jobinfo/pageList", **({"jobGroup": 0, "triggerStatus": -1} | parameters))[
                "data"
            ]
        ]

    assert listed() == list(reversed(ids))[:10]
    assert listed(start=10, length=100000) == list(reversed(ids))[10:]
    assert listed(start=100) == []
    assert listed(length=0) == []
    assert listed(jobGroup=second) == ids[-1:]
    assert listed(jobDesc="job 1") == [ids[11], ids[10], ids[1]]
    assert listed(author="ann3") == [ids[3]]
    assert listed(executorHandler="nothing") == []
    assert listed(triggerStatus=1) == []
    assert admin.call("/jobinfo/pageList", jobGroup=0, triggerStatus=-1, length=-1)["code"] == 500
    assert admin.get("/jobinfo/pageList?jobGroup=0&triggerStatus=-1").get_json()["recordsTotal"] == 13


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"jobGroup": "99"}, "Choose an executor group"),
        ({"jobDesc": " "}, "Enter a job description"),
        ({"author": ""}, "Enter an owner"),
        ({"scheduleType": "HOURLY"}, "Schedule type is invalid"),
        ({"scheduleConf": ""}, ""),
        ({"scheduleConf": "0 0 3 * * * ? x"}, ""),
        ({"scheduleType": "FIX_RATE", "scheduleConf": "0"}, ""),
        ({"scheduleType": "FIX_RATE", "scheduleConf": "x"}, ""),
        ({"glueType": "GLUE_COBOL"}, "Run mode is invalid"),
        ({"executorHandler": " "}, "Enter the JobHandler"),
        ({"executorRouteStrategy": ""}, "Route strategy is invalid"),
        ({"misfireStrategy": "RETRY"}, "Misfire strategy is invalid"),
        ({"misfireStrategy": "RUN_ALL", "whenFull": "skip"}, ""),
        ({"misfireStrategy": "RUN_ALL", "misfireMax": "1001"}, "misfireMax must lie between 1 and 1000"),
        ({"executorBlockStrategy": "x"}, "Block strategy is invalid"),
        ({"childJobId": "1, 2"}, "Child job id ( 2) is invalid"),
        ({"childJobId": ",1"}, "Child job id () is invalid"),
        ({"childJobId": "x"}, "Child job id (x) is invalid"),
        ({"childJobId": "4711"}, "Child job id (4711) was not found"),
        ({"jobDesc": "x" * 256}, "jobDesc must have at most 255 characters"),
        ({"executorParam": "x" * 2_049}, "executorParam must have at most 2048 characters"),
        ({"executorFailRetryCount": "10000"}, "executorFailRetryCount must lie between 0 and 9999"),
        ({"timeZone": "Mars/Base"}, ""),
    ],
)
def test_an_invalid_job_is_refused_with_a_text_and_stores_nothing(
    admin: Console, changes: dict[str, str], text: str
) -> None:
    answer = admin.call("/jobinfo/add", **(BEAN | {"jobGroup": str(add_group())} | changes))
    assert answer["code"] == 500
    assert answer["content"] is None
    assert answer["msg"]
    assert not text or answer["msg"] == text
    assert admin.call("/jobinfo/pageList", jobGroup=0, triggerStatus=-1)["recordsTotal"] == 0


def test_messages_are_in_the_callers_language(admin: Console) -> None:
    response = admin.post("/jobinfo/start", {"id": "7"}, headers={"Accept-Language": "zh-CN,zh;q=0.9"})
    assert response.get_json()["code"] == 500
    assert response.get_json()["msg"]


def test_update_keeps_code_switch_and_fields_unknown_to_the_original(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(
        group_id,
        time_zone="Europe/Paris",
        delivery="at_most_once",
        retry_interval_s=30,
        retry_backoff_percent=200,
        fill_parameter=1,
    )
    changed = BEAN | {
        "id": str(job_id),
        "jobGroup": str(group_id),
        "jobDesc": "renamed",
        "glueType": "GLUE_SHELL",
        "triggerStatus": "1",
    }
    assert admin.call("/jobinfo/update", **changed) == {"code": 200, "msg": None, "content": None}
    job = load(job_id)
    assert (job.job_desc, job.glue_type, job.trigger_status) == ("renamed", "BEAN", 0)
    assert (job.time_zone, job.delivery, job.retry_interval_s, job.retry_backoff_percent) == (
        "Europe/Paris",
        "at_most_once",
        30,
        200,
    )
    assert job.fill_parameter == 1


@pytest.mark.databases("mariadb", "postgresql")
def test_update_keeps_what_is_changed_in_the_console_at_the_same_time(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one writer at a time."""
    group_id = add_group()
    job_id = add_job(group_id)
    lock = locks.lock_jobs

    def change_first(session: Session, job_ids: Iterable[int]) -> list[Job]:
        monkeypatch.undo()
        with session_scope() as other:
            other.get_one(Job, job_id).time_zone = "Europe/Paris"
        return lock(session, job_ids)

    monkeypatch.setattr(locks, "lock_jobs", change_first)
    changed = BEAN | {"id": str(job_id), "jobGroup": str(group_id), "jobDesc": "renamed"}
    assert admin.call("/jobinfo/update", **changed)["code"] == 200
    job = load(job_id)
    assert (job.job_desc, job.time_zone) == ("renamed", "Europe/Paris")


@pytest.mark.databases("sqlite")  # whose columns take any length
def test_a_parameter_of_3_4_may_stay_as_long_as_it_is(admin: Console) -> None:
    group_id, long = add_group(), "x" * 3_000
    job_id = add_job(group_id)
    with session_scope() as session:
        session.get_one(Job, job_id).executor_param = long
    bean = BEAN | {"id": str(job_id), "jobGroup": str(group_id), "jobDesc": "renamed"}
    assert admin.call("/jobinfo/update", **bean | {"executorParam": long})["code"] == 200
    assert (load(job_id).job_desc, load(job_id).executor_param) == ("renamed", long)
    assert admin.call("/jobinfo/trigger", id=job_id, executorParam=long)["code"] == 200
    for path, changes in (
        ("/jobinfo/update", bean | {"executorParam": long + "x"}),
        ("/jobinfo/trigger", {"id": job_id, "executorParam": long + "x"}),
    ):
        assert admin.call(path, **changes)["msg"] == "executorParam must have at most 2048 characters"


def test_an_edit_of_the_schedule_withdraws_planned_fires(admin: Console) -> None:
    group_id = add_group()
    job_id, at_ms = add_job(group_id, start=True), now_ms()
    plan_fires(
        job_id,
        (f"cron:{job_id}:1", at_ms - 2_000, TriggerType.CRON),
        (f"cron:{job_id}:2", at_ms + 4_000, TriggerType.CRON),
        ("manual:x", at_ms, TriggerType.MANUAL),
    )
    same = BEAN | {"id": str(job_id), "jobGroup": str(group_id)}
    admin.call("/jobinfo/update", **same)
    assert len(fire_keys(job_id)) == 3
    admin.call("/jobinfo/update", **(same | {"scheduleConf": "0 0 4 * * ?"}))
    assert fire_keys(job_id) == ["manual:x"]
    with session_scope() as session:
        (skip,) = session.scalars(select(Skip).where(Skip.job_id == job_id))
        assert (skip.from_ms, skip.to_ms, skip.skipped, skip.reason) == (
            at_ms - 2_000,
            at_ms - 2_000,
            1,
            "edited",
        )
    assert load(job_id).trigger_next_time % 86_400_000 == (4 - 8) % 24 * 3_600_000  # 04:00 in Shanghai


def test_a_trigger_in_a_blackout_is_refused_with_its_reason(admin: Console) -> None:
    job_id = add_job(add_group())
    save(JobBlackout(from_ms=now_ms() - 1, created_ms=now_ms(), job_id=job_id, reason="moving"))
    save(RuleChange(number=now_ms() * 1_000))
    plain = {"Content-Type": "application/x-www-form-urlencoded"}
    for answer in (
        admin.call("/jobinfo/trigger", id=job_id, executorParam="x"),
        admin.client.post("/xxl-job-admin/jobinfo/trigger", data=f"id={job_id}", headers=plain).get_json(),
    ):
        assert (answer["code"], answer["msg"]) == (500, "a blackout is on, without an end: moving")
    assert fire_keys(job_id) == []


def test_start_stop_trigger_remove(admin: Console) -> None:
    job_id = add_job(add_group())
    assert admin.call("/jobinfo/start", id=job_id)["code"] == 200
    started = load(job_id)
    assert (started.trigger_status, started.trigger_next_time > now_ms()) == (1, True)
    plan_fires(job_id, (f"cron:{job_id}:1", now_ms() + 3_000, TriggerType.CRON))
    assert admin.call("/jobinfo/stop", id=job_id)["code"] == 200
    assert (load(job_id).trigger_status, load(job_id).trigger_next_time, fire_keys(job_id)) == (0, 0, [])
    assert admin.client.post(f"/xxl-job-admin/jobinfo/trigger?id={job_id}").get_json()["code"] == 200
    with session_scope() as session:
        (fire,) = session.scalars(select(Fire).where(Fire.job_id == job_id))
        assert (fire.trigger_type, fire.executor_param, fire.address_list, fire.state) == (
            "MANUAL",
            "",
            None,
            "PENDING",
        )
    assert admin.call("/jobinfo/remove", id=job_id)["code"] == 200
    assert fire_keys(job_id) == []
    assert admin.call("/jobinfo/remove", id=job_id)["code"] == 200
    for path in ("/jobinfo/start", "/jobinfo/stop", "/jobinfo/trigger"):
        assert admin.call(path, id=job_id) == {"code": 500, "msg": "Job id is invalid", "content": None}


def test_every_change_is_audited(admin: Console) -> None:
    job_id = add_job(add_group())
    for path in ("start", "trigger", "stop", "remove"):
        admin.call(f"/jobinfo/{path}", id=job_id)
    with session_scope() as session:
        trail = session.execute(
            select(AuditEntry.action, AuditEntry.username).where(
                AuditEntry.object_type == "job", AuditEntry.object_id == job_id
            )
        ).all()
    actions = ["job.add", "job.start", "job.trigger", "job.stop", "job.remove"]
    assert [tuple(row) for row in trail] == list(zip(actions, ["test"] + ["admin"] * 4, strict=True))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_next_trigger_time_is_five_local_times(admin: Console, method: str) -> None:
    parameters = {"scheduleType": "CRON", "scheduleConf": "0 0 3 * * ?"}
    response = admin.client.open(
        "/xxl-job-admin/jobinfo/nextTriggerTime", method=method, query_string=parameters
    )
    times = response.get_json()["content"]
    assert len(times) == 5
    assert all(text.endswith(" 03:00:00") for text in times)


def test_next_trigger_time_of_an_empty_schedule_is_empty_and_of_an_invalid_one_an_error(
    admin: Console,
) -> None:
    assert admin.call("/jobinfo/nextTriggerTime", scheduleType="NONE")["content"] == []
    assert admin.call("/jobinfo/nextTriggerTime")["content"] == []
    refused = admin.call("/jobinfo/nextTriggerTime", scheduleType="CRON", scheduleConf="x")
    assert refused["code"] == 500
    assert refused["msg"].startswith("Schedule type is invalid: ")


@pytest.mark.parametrize(
    ("schedule", "conf", "expected"),
    [
        ("CRON", "x", "6 or 7 fields"),
        ("CRON", "0 61 0 * * ?", "minute"),
        ("CRON", "0" * 200, "characters"),
        ("FIX_RATE", "soon", "seconds"),
        ("AT", "tomorrow", "time"),
    ],
)
def test_a_refused_schedule_is_explained_in_one_language(
    admin: Console, schedule: str, conf: str, expected: str
) -> None:
    actions = admin.call("/jobinfo/nextTriggerTime", scheduleType=schedule, scheduleConf=conf)["msg"]
    assert expected in actions
    admin.post("/preferences", {"language": "zh_CN", "csrf_token": token_of(admin)})
    translated = admin.call("/jobinfo/nextTriggerTime", scheduleType=schedule, scheduleConf=conf)["msg"]
    assert set(re.findall("[A-Za-z]{2,}", translated.replace(conf, ""))) <= {
        "MM",
        "dd",
        "HH",
        "mm",
        "ss",
        "yyyy",
    }


def test_a_normal_user_sees_and_changes_only_visible_groups(console: Console, normal_user: Any) -> None:
    own_group, foreign = add_group("own-app"), add_group("foreign-app")
    own_job, foreign_job = add_job(own_group), add_job(foreign)
    norman = normal_user(own_group)
    assert [row["id"] for row in norman.call("/jobinfo/pageList", jobGroup=0, triggerStatus=-1)["data"]] == [
        own_job
    ]
    assert norman.call("/jobinfo/pageList", jobGroup=foreign, triggerStatus=-1)["data"] == []
    assert norman.call("/joblog/getJobsByGroup", jobGroup=foreign)["content"] == []
    assert [row["id"] for row in norman.call("/joblog/getJobsByGroup", jobGroup=own_group)["content"]] == [
        own_job
    ]
    for path in ("/jobinfo/start", "/jobinfo/stop", "/jobinfo/trigger"):
        assert norman.call(path, id=foreign_job)["msg"] == "Job id is invalid"
        assert norman.call(path, id=own_job)["code"] == 200
    assert norman.call("/jobinfo/remove", id=foreign_job)["code"] == 200  # as for an id that does not exist
    assert load(foreign_job).id == foreign_job
    assert norman.call("/jobgroup/loadById", id=foreign)["code"] == 500
    assert norman.call("/jobgroup/loadById", id=own_group)["content"]["appname"] == "own-app"


def test_code_is_saved_as_versions_and_thirty_are_kept(admin: Console) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", glue_source="echo 0\r\n", executor_handler="")
    assert load(job_id).glue_source == "echo 0\n"
    stamps = set()
    for number in range(32):
        assert (
            admin.call(
                "/jobcode/save", id=job_id, glueSource=f"echo {number}\r\n", glueRemark=f"version {number}"
            )["code"]
            == 200
        )
        stamps.add(load(job_id).glue_updatetime)
    assert load(job_id).glue_source == "echo 31\n"
    assert len(stamps) == 32  # executors distinguish versions by this time
    with session_scope() as session:
        assert [version.glue_remark for version in glue.list_versions(session, job_id)] == [
            f"version {n}" for n in range(31, 1, -1)
        ]


@pytest.mark.parametrize("remark", [None, "abc", "x" * 101])
def test_code_needs_a_remark(admin: Console, remark: str | None) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", executor_handler="")
    parameters = {"id": job_id, "glueSource": "id"} | ({} if remark is None else {"glueRemark": remark})
    assert admin.call("/jobcode/save", **parameters)["code"] == 500
    assert (
        admin.call("/jobcode/save", id=add_job(add_group("app-two")), glueSource="id", glueRemark="four")[
            "code"
        ]
        == 500
    )


def test_a_repeated_text_is_joined_and_of_a_repeated_number_the_first_counts(admin: Console) -> None:
    job_id = add_job(add_group())
    body = "id=77&executorParam=p2&executorParam=&addressList="
    form = {"content_type": "application/x-www-form-urlencoded"}
    answer = admin.post(f"/jobinfo/trigger?id={job_id}&executorParam=p1", body, **form)
    assert answer.get_json()["code"] == 200
    with session_scope() as session:
        assert session.scalar(select(Fire.executor_param)) == "p1,p2,"
