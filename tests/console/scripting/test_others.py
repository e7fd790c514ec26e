"""JSON endpoints of groups, users and runs (docs/reference/console.md, sections 10 to 13)."""

from typing import Any

import pytest
from sqlalchemy import select

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.session import LoginSession
from app.models.user import User
from app.store.accounts import rights
from tests.support.console import PASSWORD, Console, add_group, add_job, add_user
from tests.support.console_scripting import add_log

GROUP = {
    "appname": "some-app",
    "title": "Some executor",
    "addressType": "1",
    "addressList": "http://10.0.0.5:9999,http://10.0.0.6:9999",
}
GROUP_KEYS = ["id", "appname", "title", "addressType", "addressList", "updateTime", "registryList"]
LOG_KEYS = """
    id jobGroup jobId executorAddress executorHandler executorParam executorShardingParam
    executorFailRetryCount triggerTime triggerCode triggerMsg handleTime handleCode handleMsg alarmStatus
"""


def test_a_group_is_saved_listed_changed_and_removed(admin: Console) -> None:
    add_group("first-app")
    assert admin.call("/jobgroup/save", **GROUP) == {"code": 200, "msg": None, "content": None}
    (row,) = admin.call("/jobgroup/pageList", appname="some", title="exec", start=0, length=100000)["data"]
    assert list(row) == GROUP_KEYS
    assert row["registryList"] == ["http://10.0.0.5:9999", "http://10.0.0.6:9999"]
    assert admin.call("/jobgroup/update", **(GROUP | {"id": row["id"], "title": "Renamed"}))["code"] == 200
    assert admin.call("/jobgroup/loadById", id=row["id"])["content"]["title"] == "Renamed"
    add_job(row["id"])
    assert admin.call("/jobgroup/remove", id=row["id"])["msg"] == "The executor group still has jobs"
    admin.call("/jobinfo/remove", id=1)
    assert admin.call("/jobgroup/remove", id=row["id"])["code"] == 200
    assert admin.call("/jobgroup/remove", id=1)["msg"] == "At least one executor group must remain"
    assert admin.call("/jobgroup/remove", id=99)["code"] == 500
    assert admin.call("/jobgroup/update", **GROUP, id=99)["code"] == 500


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"appname": ""}, "Enter an AppName"),
        ({"appname": "abc"}, "The AppName must have 4 to 64 characters"),
        ({"appname": "x" * 65}, "appname must have at most 64 characters"),
        ({"appname": "two words"}, '"two words" contains a space; use lowercase letters, digits and - only'),
        ({"title": " "}, "Enter a title"),
        ({"title": "x" * 65}, "title must have at most 64 characters"),
        ({"addressList": " "}, "Enter the addresses of a manual executor group"),
        (
            {"addressList": "http://10.0.0.5:9999,,http://10.0.0.6:9999"},
            "The addresses must be separated by single commas",
        ),
    ],
)
def test_an_invalid_group_is_refused(admin: Console, changes: dict[str, str], text: str) -> None:
    assert admin.call("/jobgroup/save", **(GROUP | changes)) == {"code": 500, "msg": text, "content": None}


def test_an_automatic_group_takes_its_addresses_from_the_registry(admin: Console) -> None:
    with session_scope() as session:
        for address, age_ms in (
            ("http://10.0.0.9:9999", 0),
            ("http://10.0.0.8:9999", 0),
            ("http://10.0.0.7:9999", 120_000),
        ):
            row = Registration(
                registry_group="EXECUTOR",
                registry_key="some-app",
                registry_value=address,
                update_time=now_ms() - age_ms,
            )
            session.add(row)
    admin.call("/jobgroup/save", **(GROUP | {"addressType": "0", "addressList": "http://evil.example"}))
    (row,) = admin.call("/jobgroup/pageList")["data"]
    assert row["addressList"] == "http://10.0.0.8:9999,http://10.0.0.9:9999"


def test_removing_a_group_removes_rights_on_it(admin: Console) -> None:
    first, second = add_group("first-app"), add_group("second-app")
    add_user("norman", [first, second])
    admin.call("/jobgroup/remove", id=second)
    (row,) = admin.call("/user/pageList", username="norman", role=-1)["data"]
    assert row["permission"] == str(first)


def test_a_listed_permission_is_accepted_without_removed_groups(admin: Console) -> None:
    """A Java admin leaves the id of a removed group in the list."""
    group_id = add_group()
    user_id = add_user("norman", [group_id])
    with session_scope() as session:
        session.get_one(User, user_id).permission = f"{group_id},77777"
    (row,) = admin.call("/user/pageList", username="norman", role=0)["data"]
    change = {"id": user_id, "username": "norman", "role": 0}
    assert row["permission"] == f"{group_id},77777"
    refused = admin.call("/user/update", **change, permission=f"{row['permission']},88888")
    assert refused == {"code": 500, "msg": "There is no executor group with id 88888", "content": None}
    assert admin.call("/user/update", **change, permission=row["permission"])["code"] == 200
    (row,) = admin.call("/user/pageList", username="norman", role=0)["data"]
    assert row["permission"] == str(group_id)
    assert rights_named(user_id) == {}
    assert admin.call("/user/update", **change, permission=f"{group_id},77777")["code"] == 500


def test_a_user_is_added_listed_changed_and_removed(admin: Console) -> None:
    group_id = add_group()
    added = admin.call("/user/add", username="norman", password=PASSWORD, role=0, permission=str(group_id))
    assert added["code"] == 200
    listed = admin.call("/user/pageList", role=0)
    assert listed["data"] == [
        {"id": 2, "username": "norman", "password": None, "role": 0, "permission": str(group_id)}
    ]
    norman = admin.another().log_in("norman", PASSWORD)
    assert (
        admin.call("/user/update", id=2, username="norman", password="", role=0, permission="")["code"] == 200
    )
    assert norman.call("/jobinfo/nextTriggerTime")["code"] == 200  # still logged in, with fewer rights
    assert norman.call("/jobinfo/pageList", jobGroup=0, triggerStatus=-1)["code"] == 500
    assert (
        admin.call("/user/update", id=2, username="norman", password="another-pass-1", role=0)["code"] == 200
    )
    assert norman.post("/jobinfo/nextTriggerTime").status_code == 302
    norman.log_in("norman", "another-pass-1")
    assert admin.call("/user/update", id=2, username="norman", role=1)["code"] == 200
    assert norman.post("/jobinfo/nextTriggerTime").status_code == 302
    norman.log_in("norman", "another-pass-1")
    assert admin.call("/user/remove", id=2)["code"] == 200
    assert norman.post("/jobinfo/nextTriggerTime").status_code == 302
    with session_scope() as session:
        assert list(session.scalars(select(LoginSession.user_id).where(LoginSession.user_id == 2))) == []
    assert admin.call("/user/remove", id=2)["code"] == 200
    assert admin.call("/user/update", id=2, username="norman")["code"] == 200


def rights_named(user_id: int) -> dict[int, str]:
    with read_scope() as session:
        return rights.rights_of(session, user_id)


def test_a_new_user_may_not_change_code_until_granted(admin: Console) -> None:
    first, second = add_group(), add_group("other-app", "Other")
    assert (
        admin.call("/user/add", username="norman", password=PASSWORD, role=0, permission=str(first))["code"]
        == 200
    )
    job_id = add_job(first, glue_type="GLUE_SHELL", executor_handler="")
    norman = admin.another().log_in("norman")
    assert norman.call("/jobinfo/start", id=job_id)["code"] == 200
    refused = norman.call("/jobcode/save", id=job_id, glueSource="echo", glueRemark="by norman")
    assert refused == {"code": 500, "msg": "permission denied", "content": None}
    assert (
        admin.call("/user/update", id=2, username="norman", role=0, permission=f"{first},{second}")["code"]
        == 200
    )
    assert rights_named(2) == {first: "view,operate,edit", second: "view,operate,edit"}


def test_an_adopted_user_keeps_all_rights_on_its_groups_and_no_others(admin: Console) -> None:
    first, second = add_group(), add_group("other-app", "Other")
    user_id = add_user("norman", [first])
    assert rights_named(user_id) == {}
    assert (
        admin.call("/user/update", id=user_id, username="norman", role=0, permission=f"{first},{second}")[
            "code"
        ]
        == 200
    )
    assert rights_named(user_id) == {second: "view,operate,edit"}


def test_a_user_added_by_script_without_role_is_a_normal_user_without_groups(admin: Console) -> None:
    assert admin.call("/user/add", username="norman", password=PASSWORD)["code"] == 200
    assert rights_named(2) == {}
    assert (
        admin.another().log_in("norman").call("/jobinfo/pageList", jobGroup=0, triggerStatus=-1)["code"]
        == 500
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"username": ""}, "Enter a user name"),
        ({"username": "abc"}, "The user name must have 4 to 20 characters"),
        ({"username": "x" * 21}, "username must have at most 20 characters"),
        ({"username": "<b>norman"}, "The user name is invalid"),
        ({"username": "Admin"}, "The user name is taken"),
        ({"password": ""}, "Enter a password"),
        ({"password": "short77"}, "The password must have 8 to 128 characters"),
        ({"password": "x" * 129}, "The password must have 8 to 128 characters"),
        (
            {"password": "password123"},
            "This is a common password; choose another",
        ),
        (
            {"password": "normannorman"},
            "This is a common password; choose another",
        ),
        ({"role": "2"}, "The role is invalid"),
        ({"permission": "99"}, "There is no executor group with id 99"),
        ({"permission": "1;2"}, "Executor groups must be ids separated by commas"),
    ],
)
def test_an_invalid_user_is_refused(admin: Console, changes: dict[str, str], text: str) -> None:
    parameters = {"username": "norman", "password": PASSWORD, "role": "0", "permission": ""} | changes
    assert admin.call("/user/add", **parameters) == {"code": 500, "msg": text, "content": None}
    with session_scope() as session:
        assert len(list(session.scalars(select(User.id)))) == 1


def test_runs_are_listed_by_group_job_state_and_time(admin: Console) -> None:
    group_id = add_group()
    job_id, at_ms = add_job(group_id), now_ms() // 1000 * 1000
    succeeded = add_log(job_id, group_id, handle_code=200, at_ms=at_ms - 4 * DAY_MS)
    failed = add_log(job_id, group_id, handle_code=500, at_ms=at_ms - 3_000)
    refused = add_log(job_id, group_id, trigger_code=500, at_ms=at_ms - 2_000)
    running = add_log(job_id, group_id, at_ms=at_ms - 1_000)

    def listed(**parameters: Any) -> list[int]:
        found = admin.call(
            "/joblog/pageList",
            **({"jobGroup": 0, "jobId": 0, "logStatus": -1, "filterTime": ""} | parameters),
        )
        return [row["id"] for row in found["data"]]

    assert listed() == [running, refused, failed, succeeded]
    assert listed(logStatus=1) == [succeeded]
    assert listed(logStatus=2) == [refused, failed]
    assert listed(logStatus=3) == [running]
    assert listed(logStatus=9) == [running, refused, failed, succeeded]
    assert listed(jobId=job_id, jobGroup=77) == [running, refused, failed, succeeded]
    assert listed(jobGroup=77) == []
    assert listed(filterTime="nonsense") == [running, refused, failed, succeeded]
    assert listed(filterTime="2000-01-01 00:00:00 - 2001-01-01 00:00:00") == []
    assert listed(filterTime="2000-01-01 00:00:00 - x") == [running, refused, failed, succeeded]
    assert (
        list(admin.call("/joblog/pageList", jobGroup=0, jobId=0, logStatus=-1)["data"][0]) == LOG_KEYS.split()
    )
    assert admin.call("/joblog/pageList", jobGroup=0)["code"] == 500


def test_runs_of_invisible_groups_are_hidden_whatever_is_requested(
    console: Console, normal_user: Any
) -> None:
    own_group, foreign = add_group("own-app"), add_group("foreign-app")
    job_id = add_job(foreign)
    log_id = add_log(job_id, foreign, address="http://127.0.0.1:9")
    norman = normal_user(own_group)
    for parameters in (
        {"jobGroup": foreign, "jobId": 0},
        {"jobGroup": own_group, "jobId": job_id},
        {"jobGroup": 0, "jobId": 0},
    ):
        assert norman.call("/joblog/pageList", **parameters, logStatus=-1)["data"] == []
    assert norman.call("/joblog/logDetailCat", logId=log_id, fromLineNum=1)["msg"] == "Log id is invalid"
    assert norman.call("/joblog/logKill", id=log_id)["msg"] == "Log id is invalid"
    assert (
        norman.call("/joblog/clearLog", jobGroup=foreign, jobId=0, type=9)["msg"] == "Executor id is invalid"
    )
    assert (
        norman.call("/joblog/clearLog", jobGroup=own_group, jobId=job_id, type=9)["msg"]
        == "Job id is invalid"
    )
    assert norman.call("/joblog/clearLog", jobGroup=0, jobId=0, type=9)["msg"] == "permission denied"
    with session_scope() as session:
        assert session.get(JobLog, log_id) is not None


def test_an_unreadable_log_gives_the_reason(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    assert admin.call("/joblog/logDetailCat", logId=99, fromLineNum=1)["msg"] == "Log id is invalid"
    assert (
        admin.call("/joblog/logDetailCat", logId=add_log(job_id, group_id), fromLineNum=1)["msg"]
        == "The run has no executor address"
    )
    unreachable = add_log(job_id, group_id, address="http://127.0.0.1:1024")
    assert admin.call("/joblog/logDetailCat", logId=unreachable, fromLineNum=1)["msg"].startswith(
        "http://127.0.0.1:1024: "
    )
    foreign = add_log(job_id, group_id, address="http://169.254.169.254:80")
    assert "refused" in admin.call("/joblog/logDetailCat", logId=foreign, fromLineNum=1)["msg"]


@pytest.mark.parametrize(("trigger_code", "handle_code"), [(500, 0), (0, 0), (200, 200), (200, 500)])
def test_a_finished_run_cannot_be_killed(admin: Console, trigger_code: int, handle_code: int) -> None:
    group_id = add_group()
    log_id = add_log(
        add_job(group_id),
        group_id,
        trigger_code=trigger_code,
        handle_code=handle_code,
        address="http://127.0.0.1:1024",
    )
    assert admin.call("/joblog/logKill", id=log_id)["code"] == 500
    with session_scope() as session:
        log = session.get(JobLog, log_id)
        assert log is not None
        assert log.handle_code == handle_code


@pytest.mark.parametrize(("kind", "left"), [(1, 3), (2, 4), (3, 5), (4, 6), (5, 7), (9, 0)])
def test_runs_are_cleared_by_age_or_completely(admin: Console, kind: int, left: int) -> None:
    group_id = add_group()
    job_id, at_ms = add_job(group_id), now_ms()
    for age_days in (0, 1, 27, 60, 120, 300, 500):
        log_id = add_log(job_id, group_id, handle_code=200, at_ms=at_ms - age_days * DAY_MS)
        with session_scope() as session:
            session.add(
                Fire(
                    job_id=job_id,
                    fire_key=f"x:{log_id}",
                    due_time=1,
                    trigger_type="CRON",
                    state="ACCEPTED",
                    log_id=log_id,
                )
            )
    assert admin.call("/joblog/clearLog", jobGroup=group_id, jobId=job_id, type=kind)["code"] == 200
    with session_scope() as session:
        logs, fires = set(session.scalars(select(JobLog.id))), set(session.scalars(select(Fire.log_id)))
    assert (len(logs), fires) == (left, logs)


def test_clearing_keeps_the_newest(admin: Console) -> None:
    group_id = add_group()
    job_id, at_ms = add_job(group_id), now_ms() // 1000 * 1000
    with session_scope() as session:
        rows = [
            JobLog(
                job_group=group_id,
                job_id=job_id,
                trigger_code=0,
                handle_code=0,
                trigger_time=at_ms - n // 3 * 1000,
            )
            for n in range(2205)
        ]
        session.add_all(rows)
    assert admin.call("/joblog/clearLog", jobGroup=0, jobId=0, type=5)["code"] == 200
    with session_scope() as session:
        kept = list(session.scalars(select(JobLog.trigger_time)))
    assert len(kept) == 1_000
    assert min(kept) == at_ms - 333_000
    assert (
        admin.call("/joblog/clearLog", jobGroup=0, jobId=0, type=10)["msg"]
        == "The log rows to clear are invalid; use a type from 1 to 9"
    )


def test_the_chart_is_seven_empty_days_without_runs(admin: Console) -> None:
    content = admin.call("/chartInfo", startDate="2000-01-01 00:00:00", endDate="2000-01-08 00:00:00")[
        "content"
    ]
    assert len(content["triggerDayList"]) == 7
    assert content["triggerDayCountSucList"] == [0] * 7
    assert (
        content["triggerCountRunningTotal"],
        content["triggerCountSucTotal"],
        content["triggerCountFailTotal"],
    ) == (0, 0, 0)
    assert admin.post("/chartInfo", {"startDate": "yesterday"}).status_code == 400
