"""Known holes of the console without a CVE number, attacked over HTTP.

Source: docs/reference/security.md, section 4.2.
"""

import base64
import json
from hashlib import md5

import pytest

from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.log import JobLog
from app.models.session import LoginSession
from app.models.user import User
from tests.security.rows import BEAN, CROSS_SITE, MARKUP, MISSING, NEW_ADMIN, is_at_login, unchanged
from tests.security.site import PASSWORD, Browser, Site
from tests.support.security import COOKIE

REFUSED = "Wrong user name or password"
#: 2 January 2001 UTC, a day that the monitor leaves alone
COUNTED_DAY_MS = 978_393_600_000


def user_named(site: Site, name: str) -> User:
    return next(user for user in site.rows(User) if user.username == name)


def is_logged_in(browser: Browser) -> bool:
    return browser.get("/account").status_code == 200


def test_forged_login_cookie(site: Site) -> None:
    """What the database holds of a user or login is no login, in any form."""
    admin = site.row(User, 1)
    login = next(row for row in site.rows(LoginSession) if row.user_id == admin.id)
    fields = {"id": 1, "username": "admin", "password": md5(b"123456").hexdigest(), "role": 1}
    forged = [
        json.dumps(fields).encode().hex(),
        json.dumps(fields | {"password": admin.password}).encode().hex(),
        login.token_hash,
        f"{login.id}",
        "0" * 64,
    ]
    for value in forged:
        assert is_at_login(Browser(site.url, value).get("/user")), value


def test_default_admin_123456(site: Site) -> None:
    assert site.anonymous().refused("/login", userName="admin", password="123456") == REFUSED


def test_no_brute_force_limit_no_captcha(site: Site) -> None:
    guesser = site.anonymous()
    site.new_user("guessed")
    for number in range(12):  # each failure after the fifth waits longer than the one before
        answer = guesser.post("/login", userName="guessed", password=f"guess-{number}")
        if answer.status_code == 429:
            break
    assert number >= 5
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    site.prolong_throttle("guessed")
    right = guesser.post("/login", userName="guessed", password=PASSWORD)
    assert right.status_code == 429, "the right password is not checked during the wait either"
    assert "Set-Cookie" not in right.headers
    assert guesser.post("/toLogin", userName="guessed", password=PASSWORD).status_code == 429


def test_no_login_audit_no_operation_log(site: Site) -> None:
    site.anonymous().refused("/login", userName="audited", password="wrong")
    user = site.new_user("audited-user", "view,edit")
    user.call("/logout")
    user = site.log_in("audited-user")
    job = user.call("/jobinfo/add", **(BEAN | {"jobGroup": site.one.group}))["content"]
    user.call("/jobinfo/remove", id=job)
    entries = [entry for entry in site.rows(AuditEntry) if entry.username.startswith("audited")]
    assert [entry.action for entry in entries] == [
        "login.refused",
        "logout",
        "login",
        "job.add",
        "job.remove",
    ]
    assert {entry.address for entry in entries} == {"127.0.0.1"}
    assert entries[-1].object_id == int(job)


def test_log_idor_family(site: Site) -> None:
    run = site.two.run
    before = vars(site.row(JobLog, run))
    for user in ("outsider", "glue"):
        browser = site[user]
        for path, form in (
            ("/joblog/logDetailCat", {"logId": run, "fromLineNum": 1}),
            ("/joblog/logKill", {"id": run}),
        ):
            assert browser.refused(path, **form) in MISSING | {"permission denied"}
        for page in ("", "/note", "/lines", "/log.txt", "/kill"):
            assert browser.get(f"/joblog/{run}{page}").status_code in (403, 404), page
        shown = browser.get(f"/joblog/logDetailPage?id={run}")
        assert shown.status_code in (303, 403, 404)
        assert site.two.app_name not in shown.text
    assert unchanged(before, site.row(JobLog, run))


def test_pagelist_by_jobid_ignores_the_group(site: Site) -> None:
    for group in (site.one.group, 0, -1):
        answer = site["glue"].call("/joblog/pageList", jobGroup=group, jobId=site.two.job, logStatus=-1)
        assert (answer["recordsTotal"], answer["data"]) == (0, [])
    assert site.admin.call("/joblog/pageList", jobGroup=0, jobId=site.two.job, logStatus=-1)["recordsTotal"]


def test_cookie_sessions_never_end(site: Site) -> None:
    """A logout, an idle and an old login end on the server: the cookie that is sent again is none."""
    for ended in ("logout", "last_seen_ms", "expires_ms"):
        browser = site.new_user(f"ending {ended[:4]}")
        assert is_logged_in(browser)
        if ended == "logout":
            browser.call("/logout")
        else:
            site.change_login(f"ending {ended[:4]}", **{ended: 1})
        assert is_at_login(Browser(site.url, browser.cookie).get("/account")), ended


@pytest.mark.parametrize("changed_by", ["the user", "an administrator"])
def test_3_x_session_store(site: Site, changed_by: str) -> None:
    """A changed password ends all logins of the user, of which there may be several."""
    name = "changing" if changed_by == "the user" else "reset-by-admin"
    browsers = [site.new_user(name), site.log_in(name)]
    assert all(map(is_logged_in, browsers))
    if changed_by == "the user":
        browsers[0].call("/user/updatePwd", oldPassword=PASSWORD, password="another-one-77")
    else:
        user = user_named(site, name)
        site.admin.call("/user/update", id=user.id, username=name, role=0, password="another-one-77")
    assert [is_logged_in(browser) for browser in browsers] == [False, False]
    assert is_logged_in(site.log_in(name, "another-one-77"))


@pytest.mark.parametrize("field", ["userId", "id"])
def test_3_x_forced_logout(site: Site, field: str) -> None:
    victim = user_named(site, "viewer")
    for signature in ("", "x", "0" * 64):
        claim = json.dumps({field: str(victim.id), "userName": "viewer", "signature": signature})
        cookie = base64.b64encode(claim.encode()).decode()
        Browser(site.url, cookie).post("/logout")
        Browser(site.url, cookie).post("/account/logout")
        assert is_logged_in(site["viewer"])
    for headers in CROSS_SITE:
        assert site["viewer"].send("POST", "/logout", headers=headers).status_code == 403
    assert is_logged_in(site["viewer"])


def test_loadbyid_leaks_the_group_token(site: Site) -> None:
    token = "token-of-group-one-0123"
    form = {"app_name": "token-app", "title": "Token", "address_type": "0", "access_token": token}
    assert site.admin.submit("/jobgroup/new", **form).status_code == 303
    group = next(
        row for row in site.admin.call("/jobgroup/pageList")["data"] if row["appname"] == "token-app"
    )
    job = site.admin.call("/jobinfo/add", **(BEAN | {"jobGroup": group["id"]}))["content"]
    answers = [
        site.admin.post("/jobgroup/loadById", id=group["id"]),
        site.admin.post("/jobgroup/pageList"),
        site.admin.post("/joblog/getJobsByGroup", jobGroup=group["id"]),
        *(
            site.admin.get(path)
            for path in (
                "/jobgroup",
                f"/jobgroup/{group['id']}",
                f"/jobgroup/{group['id']}/edit",
                f"/jobinfo/{job}",
                f"/jobinfo/export?jobGroup={group['id']}",
                "/user/audit",
            )
        ),
    ]
    for answer in answers:
        assert answer.status_code == 200
        assert token not in answer.text
        assert site.token not in answer.text
        assert "accessToken" not in answer.text
    assert site["viewer"].refused("/jobgroup/loadById", id=group["id"])


def test_update_idor(site: Site) -> None:
    """The group that counts is the stored one of the job, and the new one if it is moved."""
    before = vars(site.row(Job, site.two.job))
    change = BEAN | {"jobGroup": site.one.group}
    assert site["glue"].refused("/jobinfo/update", id=site.two.job, **change) == "Job id is invalid"
    assert unchanged(before, site.row(Job, site.two.job))
    own = site.new_job(site.one)
    reason = site["glue"].refused("/jobinfo/update", id=own, **(BEAN | {"jobGroup": site.two.group}))
    assert reason == "Choose an executor group"
    assert site.row(Job, own).job_group == site.one.group


def test_stored_xss_no_csrf_new_admin(site: Site) -> None:
    """A remark is shown as text, and no page of the console makes a user without the login's token."""
    remark = f"<script>fetch('/user/add')</script>{MARKUP}"
    source = f"echo '{MARKUP}'"
    saved = site["glue"].call("/jobcode/save", id=site.one.code, glueSource=source, glueRemark=remark)
    assert saved["code"] == 200, saved
    for path in (f"/jobcode?jobId={site.one.code}", f"/jobinfo/{site.one.code}", "/user/audit"):
        response = site.admin.get(path)
        assert response.status_code == 200
        assert remark not in response.text
        assert MARKUP not in response.text
        assert "'unsafe-inline'" not in response.headers["Content-Security-Policy"]
    before = site.count("xxl_job_user")
    own_page = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{site.port}"}
    assert site.admin.send("POST", "/user/new", data=NEW_ADMIN, headers=own_page).status_code == 403
    assert site.count("xxl_job_user") == before


@pytest.mark.parametrize(
    "text",
    [
        "' OR '1'='1",
        "%",
        "_",
        "\\",
        "x' UNION SELECT password FROM xxl_job_user --",
        "\x00",
        "${1+1}",
        b"\xed\xa0\x80",
    ],
)
def test_in_sql_mapper(site: Site, text: str | bytes) -> None:
    jobs = {"jobGroup": site.one.group, "triggerStatus": -1}
    for field in ("jobDesc", "executorHandler", "author"):
        assert site.admin.call("/jobinfo/pageList", **jobs, **{field: text}).get("data", []) == []
    for path, form in (
        ("/user/pageList", {"role": -1, "username": text}),
        ("/jobgroup/pageList", {"appname": text}),
        ("/jobgroup/pageList", {"title": text}),
    ):
        assert site.admin.call(path, **form).get("data", []) == []
    for field in ("jobGroup", "triggerStatus", "start", "length"):
        assert site.admin.post("/jobinfo/pageList", **(jobs | {field: text})).status_code == 400
    assert site.admin.get("/jobinfo", params={"order": text, "sort": text, "q": text}).status_code == 200


def test_weak_password_rule(site: Site) -> None:
    before = site.count("xxl_job_user")
    for password in (
        "",
        " " * 8,
        "1234",
        "1234567",
        "12345678",
        "password",
        "weakling",
        "x" * 129,
        "aaaaaaaa",
    ):
        site.admin.refused("/user/add", username="weakling", password=password, role=0)
    assert site.count("xxl_job_user") == before
    assert site.admin.call("/user/add", username="stronger", password="x y-" * 32, role=0)["code"] == 200
    stored = user_named(site, "stronger").password
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    site["viewer"].refused("/user/updatePwd", oldPassword=PASSWORD, password="password")


def test_user_enumeration(site: Site) -> None:
    known = site.anonymous().post("/login", userName="operator", password="wrong")
    unknown = site.anonymous().post("/login", userName="no-such-user", password="wrong")
    assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
    assert set(known.headers) == set(unknown.headers)


def test_revived_cookie(site: Site) -> None:
    add = {"username": "reviver", "password": PASSWORD, "role": 0}
    assert site.admin.call("/user/add", **add)["code"] == 200
    browser = site.log_in("reviver")
    cookie = browser.http.cookies.get_dict()[COOKIE]
    user = user_named(site, "reviver")
    site.admin.call("/user/update", **(add | {"id": user.id}))
    assert not is_logged_in(Browser(site.url, cookie)), "a reset to the same password"
    cookie = site.log_in("reviver").http.cookies.get_dict()[COOKIE]
    site.admin.call("/user/remove", id=user.id)
    assert site.admin.call("/user/add", **add)["code"] == 200
    assert not is_logged_in(Browser(site.url, cookie)), "the same name and password made anew"


def test_demotion_by_name(site: Site) -> None:
    before = vars(site.row(User, 1))
    reason = site.admin.refused("/user/update", id=1, username="another-name", role=0)
    assert reason == "The account you are logged in with cannot be changed here"
    site.admin.refused("/user/remove", id=1)
    assert unchanged(before, site.row(User, 1))


def test_dashboard_counts_are_global(site: Site) -> None:
    days = {"startDate": "2001-01-01 00:00:00", "endDate": "2001-01-03 23:59:59"}
    site.new_run(site.one)
    own = sum(run.job_group == site.one.group for run in site.rows(JobLog))
    for _ in range(own + 1):
        site.new_run(site.two)
    site.count_runs(COUNTED_DAY_MS)
    for name, expected in (("outsider", 0), ("viewer", own)):
        shown = site[name].call("/chartInfo", **days)["content"]
        assert sum(shown[f"triggerCount{kind}Total"] for kind in ("Running", "Suc", "Fail")) == expected
    assert site.two.app_name not in site["viewer"].get("/").text
