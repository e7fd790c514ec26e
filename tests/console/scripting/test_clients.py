"""Public clients of the console, each in its own way: cookies, formats and orders they rely on.

Source: docs/reference/clients.md, section B.
"""

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.console import ADMIN_PASSWORD, CONTEXT, Console, add_group, add_job
from tests.support.console_scripting import BEAN, add_log

LOGIN = {"userName": "admin", "password": ADMIN_PASSWORD}
#: how photowey detects an error in the raw text
PHOTOWEY = re.compile(r'^\{"code":(\d+),"msg":(?:"([^"]*)"|null),"content":(.*)\}$')


class Script:
    """A client without a cookie jar that sends any ``Cookie`` header."""

    def __init__(self, console: Console) -> None:
        self.client: FlaskClient = console.app.test_client(use_cookies=False)
        self.cookie = ""

    def post(self, path: str, form: dict[str, Any] | str = "", **query: Any) -> TestResponse:
        """Post a form as most Java HTTP libraries do."""
        body = form if isinstance(form, str) else urlencode(form)
        content_type = "application/x-www-form-urlencoded;charset=UTF-8" if body else None
        address = f"{CONTEXT}{path}?{urlencode(query)}" if query else CONTEXT + path
        return self.client.post(address, data=body, content_type=content_type, headers=self._headers())

    def get(self, path: str) -> TestResponse:
        return self.client.get(CONTEXT + path, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Cookie": self.cookie} if self.cookie else {}


@pytest.fixture
def script(console: Console) -> Script:
    return Script(console)


def whole(header: str) -> str:
    """zongkx and hutool: the header as received."""
    return header


def between(header: str) -> str:
    """Lao-Feng: from the first equals sign to the first semicolon."""
    return f"XXL_JOB_LOGIN_IDENTITY={header[header.index('=') + 1 : header.index(';')]}"


def second_piece(header: str) -> str:
    """lianweimao: the second part between equals signs, whatever it ends in."""
    return f"XXL_JOB_LOGIN_IDENTITY={header.split('=')[1]}"


def beside_others(header: str) -> str:
    """Together with the cookies of a proxy."""
    return f"route=1f; {between(header)}; xxljob_adminlte_settings=on; JSESSIONID=0A"


@pytest.mark.parametrize("take", [whole, between, second_piece, beside_others])
@pytest.mark.parametrize("remember", ["", "on"])
@pytest.mark.parametrize("as_query", [True, False], ids=["query", "form"])
def test_every_way_to_store_the_cookie_works(
    script: Script, take: Any, remember: str, as_query: bool
) -> None:
    parameters = LOGIN | ({"ifRemember": remember} if remember else {})
    response = script.post("/login", **parameters) if as_query else script.post("/login", parameters)
    (header,) = response.headers.getlist("Set-Cookie")
    assert header.count('"') == 0
    script.cookie = take(header)
    assert script.post("/jobgroup/pageList").get_json()["recordsTotal"] == 0


def test_a_lost_login_is_detected_by_the_redirect_and_renewed(script: Script) -> None:
    """ColinZou: follows no redirect, checks the end of Location."""
    script.cookie = "XXL_JOB_LOGIN_IDENTITY=" + "0" * 64
    lost = script.post("/jobinfo/pageList", {"jobGroup": 0, "triggerStatus": -1})
    assert (lost.status_code, lost.data) == (302, b"")
    assert lost.headers["Location"].endswith("/toLogin")
    script.cookie = between(script.post("/login", LOGIN).headers["Set-Cookie"])
    assert script.post("/jobinfo/pageList", {"jobGroup": 0, "triggerStatus": -1}).status_code == 200


def test_an_auto_registration_starter_finds_or_creates_group_and_job(script: Script) -> None:
    """Teoan, osinn, yupd, lianweimao, hiwepy: query, compare, create if missing, use the first row."""
    script.cookie = whole(script.post("/login", LOGIN).headers["Set-Cookie"])
    group = {"appname": "my-app", "title": "我的应用"}
    for _start in range(2):
        listed = script.post("/jobgroup/pageList", group).get_json()["data"]
        if not any(row["appname"] == group["appname"] and row["title"] == group["title"] for row in listed):
            saved = script.post("/jobgroup/save", group | {"addressType": "0", "addressList": ""}).get_json()
            assert saved == {"code": 200, "msg": None, "content": None}
            listed = script.post("/jobgroup/pageList", group).get_json()["data"]
        group_id = listed[0]["id"]
        query = {"jobGroup": group_id, "triggerStatus": -1, "executorHandler": "starterHandler"}
        found = script.post("/jobinfo/pageList", query).get_json()["data"]
        if not [row for row in found if row["executorHandler"] == "starterHandler"]:
            answer = script.post(
                "/jobinfo/add", BEAN | {"jobGroup": group_id, "triggerStatus": "1"}
            ).get_json()
            assert int(answer["content"]) > 0
    (job,) = script.post("/jobinfo/pageList", {"jobGroup": group_id, "triggerStatus": 1}).get_json()["data"]
    assert (job["triggerStatus"], job["triggerNextTime"] > 0) == (1, True)
    changed = {
        name: "" if value is None else value for name, value in job.items()
    }  # the row is sent back unchanged, dates included
    assert script.post("/jobinfo/update", changed | {"scheduleConf": "0 0 4 * * ?"}).get_json()["code"] == 200
    assert script.post("/jobinfo/stop", id=job["id"]).get_json()["code"] == 200
    assert script.post("/jobinfo/remove", id=job["id"]).get_json()["code"] == 200


def test_errors_are_detected_in_the_raw_text(script: Script) -> None:
    """photowey uses a regular expression, so the key order matters; hutool compares the code as integer."""
    script.cookie = whole(script.post("/login", LOGIN).headers["Set-Cookie"])
    for response, code in (
        (script.post("/jobinfo/add", {"jobGroup": 1}), 500),
        (script.post("/jobinfo/start", id=77), 500),
        (script.post("/jobgroup/save", {"appname": "my-app", "title": "x"}), 200),
        (script.post("/jobinfo/nextTriggerTime", scheduleType="FIX_RATE", scheduleConf="60"), 200),
    ):
        match = PHOTOWEY.match(response.text)
        assert match is not None, response.text
        assert int(match.group(1)) == response.get_json()["code"] == code
        assert bool(match.group(2)) == (code == 500)
        assert response.status_code == 200
        assert response.content_type.startswith("application/json")  # hiwepy checks this


def test_dates_are_in_the_format_gson_reads(script: Script) -> None:
    script.cookie = whole(script.post("/login", LOGIN).headers["Set-Cookie"])
    group_id = add_group()
    job_id = add_job(group_id)
    add_log(job_id, group_id, handle_code=200)
    lists = (
        script.post("/jobgroup/pageList"),
        script.post("/jobinfo/pageList", jobGroup=group_id, triggerStatus=-1),
        script.post("/joblog/pageList", jobGroup=group_id, jobId=job_id, logStatus=-1),
    )
    for response in lists:
        (row,) = response.get_json()["data"]
        dates = {
            name: text
            for name, text in row.items()
            if name in {"updateTime", "addTime", "glueUpdatetime", "triggerTime"}
        }
        assert dates
        for text in dates.values():
            assert (
                datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").strftime("%Y-%m-%dT%H:%M:%S.000+00:00")
                == text
            )


def test_an_exporter_with_curl_uses_get_with_a_fixed_cookie(script: Script) -> None:
    """Fame-Lin: the cookie is configured; it reads both counts, per day and status."""
    script.cookie = between(script.post("/login", LOGIN | {"ifRemember": "on"}).headers["Set-Cookie"])
    group_id = add_group()
    job_id = add_job(group_id)
    add_log(job_id, group_id, handle_code=200)
    add_log(job_id, group_id, handle_code=500)
    span = quote("2000-01-01 00:00:00 - 2099-12-31 23:59:59")
    figures = {}
    for status in (1, 2, 3):
        path = f"/joblog/pageList?jobGroup=0&jobId=0&logStatus={status}&filterTime={span}&start=0&length=1"
        found = json.loads(script.get(path).text)
        figures[status] = found["recordsFiltered"]
        assert found["recordsFiltered"] == found["recordsTotal"]
    assert figures == {1: 1, 2: 1, 3: 0}


def test_shell_scripts_trigger_with_one_line_of_curl(script: Script) -> None:
    """``curl -X POST -b "$cookie" …/jobinfo/trigger?id=72``: no body, no type.

    Also with a body in another order, or a double slash.
    """
    script.cookie = whole(script.post("/login", LOGIN).headers["Set-Cookie"])
    job_id = add_job(add_group())
    assert (
        script.client.post(
            f"{CONTEXT}/jobinfo/trigger?id={job_id}", headers={"Cookie": script.cookie}
        ).get_json()["code"]
        == 200
    )
    assert (
        script.post("/jobinfo/trigger", f"addressList=&executorParam=a%26b&id={job_id}").get_json()["code"]
        == 200
    )
    assert script.post("//jobinfo//trigger", id=job_id).get_json()["code"] == 200
    assert script.post("/jobinfo/trigger/", id=job_id).get_json()["code"] == 200
