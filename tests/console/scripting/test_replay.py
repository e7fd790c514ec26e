"""JSON endpoints, replayed as real scripts call them: unusual parameters, texts, ids and instants.

Source: docs/reference/console.md; docs/reference/clients.md, section B.
"""

import json
import re
from typing import Any

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.log import JobLog
from tests.support.console import CONTEXT, Console, add_group, add_job
from tests.support.console_scripting import BEAN, CHANGING, add_log
from tests.support.fake_executor import Answer, FakeExecutor

#: reading endpoints and their required parameters
READING = {
    "/jobgroup/pageList": {},
    "/jobgroup/loadById": {"id": 1},
    "/jobinfo/pageList": {"jobGroup": 0, "triggerStatus": -1},
    "/jobinfo/nextTriggerTime": {},
    "/joblog/pageList": {"jobGroup": 0, "jobId": 0, "logStatus": -1},
    "/joblog/getJobsByGroup": {"jobGroup": 1},
    "/joblog/logDetailCat": {"logId": 1, "fromLineNum": 1},
    "/chartInfo": {},
    "/user/pageList": {"role": -1},
}


@pytest.mark.parametrize(("path", "parameters"), READING.items(), ids=list(READING))
def test_reading_endpoints_accept_get_and_post_query_and_form(
    admin: Console, path: str, parameters: dict[str, Any]
) -> None:
    add_group()
    answers = [
        admin.client.get(CONTEXT + path, query_string=parameters),
        admin.client.post(CONTEXT + path, query_string=parameters),
        admin.post(path, parameters),
        admin.post(
            path, {name: str(value) for name, value in parameters.items()}, content_type="multipart/form-data"
        ),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.data for answer in answers}) == 1
    assert answers[0].content_type == "application/json"


@pytest.mark.parametrize("path", CHANGING)
def test_changing_endpoints_answer_get_with_405(admin: Console, path: str) -> None:
    refused = admin.get(f"{path}?id=1")
    assert (refused.status_code, refused.get_json()["path"]) == (405, CONTEXT + path)


@pytest.mark.parametrize(("path", "parameters"), READING.items(), ids=list(READING))
def test_a_missing_number_is_code_500_and_an_invalid_one_400(
    admin: Console, path: str, parameters: dict[str, Any]
) -> None:
    add_group()
    for name in parameters:
        missing = admin.call(path, **{key: value for key, value in parameters.items() if key != name})
        assert missing == {"code": 500, "msg": f"Parameter {name} is missing", "content": None}
        for text in ("", "x", "1.0", "9223372036854775808"):
            assert admin.post(path, parameters | {name: text}).status_code == 400, (name, text)


@pytest.mark.parametrize(
    "path", ["/jobgroup/pageList", "/jobinfo/pageList", "/joblog/pageList", "/user/pageList"]
)
def test_a_page_is_ten_rows_from_the_first_by_default(admin: Console, path: str) -> None:
    group_id = add_group()
    for number in range(12):
        add_group(f"app-{number:02d}")
        log_id = add_log(add_job(group_id), group_id)
        admin.call("/user/add", username=f"user{log_id:02d}", password="battery-staple-9") if path.startswith(
            "/user"
        ) else None
    found = admin.call(path, **READING[path])
    assert list(found) == ["recordsTotal", "recordsFiltered", "data"]
    assert found["recordsTotal"] == found["recordsFiltered"] >= 12
    assert len(found["data"]) == 10
    assert admin.call(path, **READING[path], start=5, length=2)["data"] == found["data"][5:7]
    assert admin.call(path, **READING[path], start=2**31 - 1)["data"] == []
    assert admin.call(path, **READING[path], length=-1)["code"] == 500


@pytest.mark.parametrize(
    "span",
    [
        "0001-01-01 00:00:00 - 9999-12-31 23:59:59",
        "1970-01-01 00:00:00 - 9999-12-31 00:00:00",
        "0001-01-01 00:00:00 - ",
        " - 9999-12-31 23:59:59",
        " - ",
        "2024-05-01 - 2024-05-02",
        "2024-05-01 00:00:00",
    ],
)
def test_any_time_filter_is_answered(admin: Console, span: str) -> None:
    group_id = add_group()
    log_id = add_log(add_job(group_id), group_id)
    found = admin.call("/joblog/pageList", jobGroup=0, jobId=0, logStatus=-1, filterTime=span)
    assert [row["id"] for row in found["data"]] == [log_id]


def test_no_run_is_found_beyond_the_storable_instants(admin: Console) -> None:
    group_id = add_group()
    add_log(add_job(group_id), group_id)
    for span in ("9999-12-31 23:59:59 - 0001-01-01 00:00:00", "9998-01-01 00:00:00 - 9999-12-31 23:59:59"):
        assert (
            admin.call("/joblog/pageList", jobGroup=0, jobId=0, logStatus=-1, filterTime=span)["recordsTotal"]
            == 0
        )
    for query in ("from=0001-01-01&to=9999-12-31", "to=0001-01-01T00:00", "from=9999-12-31T23:59:59"):
        assert admin.get(f"/joblog?{query}").status_code == 200


@pytest.mark.parametrize(
    "span",
    [
        "2020-01-01 00:00:00 - 2020-01-02 00:00:00.000",
        "2020-01-01 00:00:00.123456 - 2020-01-01 24:00:00",
        "2024-02-30 00:00:00 - 2024-02-31 00:00:00",
    ],
)
def test_a_time_filter_is_parsed_as_leniently_as_in_the_original(admin: Console, span: str) -> None:
    group_id = add_group()
    add_log(add_job(group_id), group_id)
    assert admin.call("/joblog/pageList", jobGroup=0, jobId=0, logStatus=-1, filterTime=span)["data"] == []


def test_a_chart_of_all_time_is_answered(admin: Console) -> None:
    content = admin.call("/chartInfo", startDate="0001-01-01 00:00:00", endDate="9999-12-31 23:59:59")[
        "content"
    ]
    assert list(content) == [
        "triggerDayList",
        "triggerDayCountRunningList",
        "triggerDayCountSucList",
        "triggerDayCountFailList",
        "triggerCountRunningTotal",
        "triggerCountSucTotal",
        "triggerCountFailTotal",
    ]
    for day in (
        "2024-05-01",
        "2024-05-01T00:00:00",
        "2024-13-01 00:00:00",
        "2024-05-01 24:00:00",
        "Wed May 01",
    ):
        assert admin.post("/chartInfo", {"startDate": day}).status_code == 400
    assert (
        admin.call("/chartInfo", startDate="2024-05-01 00:00:00.000", endDate="2024-05-02 23:59:59.999")[
            "code"
        ]
        == 200
    )


def test_an_exporter_gets_the_count_of_all_runs(admin: Console) -> None:
    group_id = add_group()
    job_id, at_ms = add_job(group_id), now_ms()
    with session_scope() as session:
        rows = [
            {
                "job_group": group_id,
                "job_id": job_id,
                "trigger_code": 200,
                "handle_code": 200,
                "trigger_time": at_ms,
            }
        ] * 10_020
        session.execute(JobLog.__table__.insert(), rows)  # type: ignore[attr-defined]
    found = admin.call("/joblog/pageList", jobGroup=0, jobId=0, logStatus=1, start=10_015, length=10)
    assert (found["recordsTotal"], found["recordsFiltered"], len(found["data"])) == (10_020, 10_020, 5)


def test_chinese_texts_are_stored_and_returned_unchanged(admin: Console) -> None:
    admin.call("/jobgroup/save", appname="shop-orders", title="订单服务")
    texts = {"jobDesc": "夜间对账 “x”", "author": "李娜", "executorParam": '区域=华东 & <b> "引号" \\ 𠮷'}
    response = admin.post("/jobinfo/add", BEAN | texts | {"jobGroup": "1"})
    assert response.data == b'{"code":200,"msg":null,"content":"1"}'
    raw = admin.client.post(
        f"{CONTEXT}/jobinfo/pageList?jobGroup=1&triggerStatus=-1&jobDesc=对账&author=娜"
    ).data.decode()
    (row,) = json.loads(raw)["data"]
    assert {name: row[name] for name in texts} == texts
    assert "夜间对账" in raw
    assert admin.call("/jobgroup/pageList", title="订单")["data"][0]["title"] == "订单服务"
    refused = admin.post(
        "/jobinfo/add", BEAN | {"jobGroup": "1", "jobDesc": " "}, headers={"Accept-Language": "zh-CN"}
    ).text
    assert re.fullmatch(r'\{"code":500,"msg":"[一-鿿]+","content":null\}', refused)


@pytest.mark.parametrize(
    "path",
    [
        "/jobinfo/start",
        "/jobinfo/stop",
        "/jobinfo/trigger",
        "/jobinfo/update",
        "/jobcode/save",
        "/joblog/logKill",
    ],
)
@pytest.mark.parametrize("number", ["0", "-1", "77", "2147483647"])
def test_an_unknown_id_is_code_500(admin: Console, path: str, number: str) -> None:
    answer = admin.call(path, id=number, glueSource="echo", glueRemark="four")
    assert answer == {
        "code": 500,
        "msg": "Log id is invalid" if "Kill" in path else "Job id is invalid",
        "content": None,
    }


@pytest.mark.parametrize("path", ["/jobinfo/remove", "/user/remove", "/user/update"])
@pytest.mark.parametrize("number", ["0", "-1", "77", "2147483647"])
def test_an_unknown_id_is_accepted_by_removals(admin: Console, path: str, number: str) -> None:
    assert admin.call(path, id=number, username="somebody") == {"code": 200, "msg": None, "content": None}


def test_the_endpoint_names_of_3x_are_not_served(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    for path in ("/auth/doLogin", "/jobinfo/insert", "/jobinfo/delete", "/jobgroup/insert", "/user/delete"):
        assert admin.post(path, BEAN | {"jobGroup": str(group_id)}).status_code == 404
    assert admin.call("/jobinfo/stop", **{"ids[]": job_id})["msg"] == "Parameter id is missing"


def test_reading_and_killing_return_the_executors_message(admin: Console) -> None:
    with FakeExecutor() as executor:
        group_id = add_group(addresses=executor.address)
        log_id = add_log(add_job(group_id), group_id, address=executor.address)
        piece = {"fromLineNum": 1, "toLineNum": 2, "logContent": "<a>\n&", "isEnd": False}
        executor.respond("log", Answer.json(data=piece), Answer.json(code=404, msg="no such log"))
        read = admin.call("/joblog/logDetailCat", logId=log_id, fromLineNum=1)
        assert read["content"] == {
            "fromLineNum": 1,
            "toLineNum": 2,
            "logContent": "&lt;a&gt;\n&amp;",
            "end": False,
        }
        refused = admin.call("/joblog/logDetailCat", logId=log_id, fromLineNum=1)
        assert (refused["code"], refused["msg"].endswith("no such log")) == (500, True)
        executor.respond("kill", Answer.json(code=500, msg="not supported"), Answer.json(msg=None))
        refused = admin.call("/joblog/logKill", id=log_id)
        assert (refused["code"], refused["msg"].endswith("not supported")) == (500, True)
        assert admin.call("/joblog/logKill", id=log_id) == {"code": 200, "msg": None, "content": None}
        assert admin.call("/joblog/logKill", id=log_id)["msg"] == "The run has ended already"


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1024", "http://169.254.169.254:80", "http://127.0.0.1:22"]
)
def test_an_unreachable_executor_is_explained_in_one_language(admin: Console, address: str) -> None:
    group_id = add_group()
    log_id = add_log(add_job(group_id), group_id, address=address)
    chinese = {"Accept-Language": "zh-CN"}
    for path, form in (
        ("/joblog/logDetailCat", {"logId": log_id, "fromLineNum": 1}),
        ("/joblog/logKill", {"id": log_id}),
    ):
        message = admin.post(path, form, headers=chinese).get_json()["msg"]
        assert (
            re.findall("[A-Za-z]{3,}", message.replace(address, "").replace("XXL_JOB_EXECUTOR_NETWORKS", ""))
            == []
        ), message
    assert "error" in admin.get(f"/joblog/{log_id}/lines", headers=chinese).get_json()
