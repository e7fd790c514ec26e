"""Known attacks are refused. docs/reference/security.md, section 4 lists their sources."""

import pytest

from app.db import session_scope
from app.domain.permissions import Right
from app.store import job_lists
from tests.console.conftest import CONTEXT, Console, add_group, add_job

HTML = {"Accept": "text/html"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://localhost:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
        {"Sec-Fetch-Site": ""},
    ],
)
def test_another_site_cannot_make_a_browser_change_anything(admin: Console, headers: dict[str, str]) -> None:
    response = admin.post("/jobgroup/save", {"appname": "evil-app", "title": "evil"}, headers=headers)
    assert response.status_code == 403
    assert admin.call("/jobgroup/pageList")["recordsTotal"] == 0


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}],
)
def test_scripts_and_our_own_pages_can(admin: Console, headers: dict[str, str]) -> None:
    response = admin.post("/jobgroup/save", {"appname": "good-app", "title": "good"}, headers=headers)
    assert response.get_json()["code"] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "192.168.0.7:8080"],
)
def test_a_foreign_host_name_is_refused(console: Console, host: str) -> None:
    assert console.get("/toLogin", headers={"Host": host}).status_code == 400
    assert console.client.get("/", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"])
def test_loopback_names_are_accepted(console: Console, host: str) -> None:
    assert console.get("/toLogin", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("method", ["TRACE", "PUT", "DELETE", "PATCH", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused_first(admin: Console, method: str) -> None:
    response = admin.client.open(f"{CONTEXT}/jobinfo/start", method=method)
    assert response.status_code == 405
    assert b"Cookie" not in response.data


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/xml", ""])
def test_a_body_that_is_not_a_form_is_refused(admin: Console, content_type: str) -> None:
    assert admin.post("/jobgroup/save", b"{}", content_type=content_type).status_code == 415


def test_a_body_too_long_is_refused(admin: Console) -> None:
    response = admin.post("/jobgroup/save", {"title": "x" * (9 * 1024 * 1024)})
    assert response.status_code == 413


def test_an_invalid_integer_is_a_bad_request(admin: Console) -> None:
    for value in ("", "x", "1.5", "0x1", "99999999999", "1;drop table", "٣"):
        assert admin.post("/jobinfo/start", {"id": value}).status_code == 400
    assert admin.post("/joblog/logKill", {"id": str(2**63)}).status_code == 400
    assert admin.call("/jobinfo/start") == {"code": 500, "msg": "Parameter id is missing", "content": None}


@pytest.mark.parametrize(
    "text", ["' OR '1'='1", "%", "_", "\\", "x' UNION SELECT password FROM xxl_job_user --", "\x00", "\ud800"]
)
def test_a_search_text_is_only_text(admin: Console, text: str) -> None:
    group_id = add_group()
    add_job(group_id)
    answer = admin.call(
        "/jobinfo/pageList",
        jobGroup=group_id,
        triggerStatus=-1,
        jobDesc=text.encode("utf-8", "surrogatepass"),
    )
    assert answer.get("data", []) == []


def test_pages_have_a_content_security_policy_and_are_not_cached(admin: Console) -> None:
    for response in (
        admin.get("/toLogin"),
        admin.post("/jobgroup/pageList"),
        admin.get("/no/such/page", headers=HTML),
    ):
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"
        assert response.headers["Cache-Control"] == "no-store"
        assert "Strict-Transport-Security" not in response.headers
        assert "Server" not in response.headers


def test_an_error_page_escapes_its_input(admin: Console) -> None:
    response = admin.get("/<script>alert(1)</script>?x=<script>", headers=HTML)
    assert response.status_code == 404
    assert "<script>alert" not in response.text


@pytest.mark.parametrize("field", ["appname", "title", "addressList"])
def test_markup_in_a_group_is_refused(admin: Console, field: str) -> None:
    values = {
        "appname": "some-app",
        "title": "some",
        "addressType": "1",
        "addressList": "http://127.0.0.1:9999",
    }
    assert admin.call("/jobgroup/save", **(values | {field: "<img src=x onerror=alert(1)>"}))["code"] == 500


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254",
        "http://[fd00:ec2::254]",
        "http://100.100.100.200",
        "http://0.0.0.0:9999",
        "http://8.8.8.8:9999",
        "http://10.0.0.5:22",
        "http://user@10.0.0.5:9999",
        "ftp://10.0.0.5:9999",
        "10.0.0.5:9999",
        "http://10.0.0.5:9999?x=1",
        "file:///etc/passwd",
    ],
)
def test_an_invalid_executor_address_is_refused(admin: Console, address: str) -> None:
    answer = admin.call(
        "/jobgroup/save", appname="some-app", title="some", addressType=1, addressList=address
    )
    assert answer["code"] == 500
    assert admin.call("/jobgroup/pageList")["recordsTotal"] == 0


@pytest.mark.parametrize(
    "address",
    [
        "http://10.0.0.99:9999",
        "http://169.254.169.254",
        "http://10.0.0.5:9998",
        "http://10.0.0.5:9999.evil.example",
    ],
)
def test_a_manual_run_goes_only_to_addresses_of_its_executor(admin: Console, address: str) -> None:
    job_id = add_job(add_group(addresses="http://10.0.0.5:9999"))
    answer = admin.call("/jobinfo/trigger", id=job_id, addressList=address)
    assert answer["code"] == 500
    assert "add it to the group first" in answer["msg"]
    assert admin.call("/jobinfo/trigger", id=job_id, addressList="http://10.0.0.5:9999/")["code"] == 200


def test_no_answer_contains_a_secret(admin: Console) -> None:
    add_group()
    for path in ("/user/pageList", "/jobgroup/pageList"):
        text = admin.post(path, {"role": -1}).text
        assert "argon2" not in text
        assert "oken" not in text
    assert admin.call("/user/pageList", role=-1)["data"][0]["password"] is None


def test_the_current_account_cannot_be_demoted_by_another_name(admin: Console) -> None:
    answer = admin.call("/user/update", id=1, username="somebody-else", role=0)
    assert answer["msg"] == "The account you are logged in with cannot be changed here"
    assert admin.call("/user/remove", id=1)["code"] == 500
    assert admin.call("/jobgroup/pageList")["recordsTotal"] == 0


def test_a_job_cannot_be_moved_out_of_a_foreign_group(console: Console, normal_user) -> None:  # type: ignore[no-untyped-def]
    own_group, foreign = add_group("own-app"), add_group("foreign-app")
    job_id = add_job(foreign)
    norman = normal_user(own_group)
    parameters = {
        "jobGroup": own_group,
        "jobDesc": "mine now",
        "author": "norman",
        "scheduleType": "NONE",
        "misfireStrategy": "DO_NOTHING",
    }
    parameters |= {
        "executorRouteStrategy": "FIRST",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorHandler": "x",
        "glueType": "BEAN",
    }
    assert norman.call("/jobinfo/update", id=job_id, **parameters)["msg"] == "Job id is invalid"
    own_job = add_job(own_group)
    assert (
        norman.call("/jobinfo/update", id=own_job, **(parameters | {"jobGroup": foreign}))["msg"]
        == "Choose an executor group"
    )
    assert (
        norman.call("/jobinfo/update", id=own_job, **parameters, childJobId=job_id)["msg"]
        == f"Child job id ({job_id}) was not found"
    )
    with session_scope() as session:
        job = job_lists.find_job(session, job_id)
        assert job is not None
        assert (job.job_group, job.job_desc) == (foreign, "nightly report")


def test_code_needs_the_glue_right(console: Console, normal_user) -> None:  # type: ignore[no-untyped-def]
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_SHELL", glue_source="echo 1")
    other = add_group("other-app")
    norman = normal_user(group_id, other, rights={group_id: frozenset(Right) - {Right.GLUE}})
    assert (
        norman.call("/jobcode/save", id=job_id, glueSource="id", glueRemark="four more")["msg"]
        == "permission denied"
    )
