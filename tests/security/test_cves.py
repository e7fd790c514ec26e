"""Known holes with a CVE number, attacked over HTTP: docs/reference/security.md, section 4.1."""

import ast
import json
import re
from html import escape, unescape

import pytest

from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User
from tests.security.rows import (
    BEAN,
    CROSS_SITE,
    MARKUP,
    MISSING,
    NEW_ADMIN,
    REFERENCE,
    is_at_login,
    unchanged,
)
from tests.security.site import USERS, Browser, Site, await_true
from tests.support.architecture import read_modules
from tests.support.fake_executor import Answer, FakeExecutor


def escaped(page: str) -> bool:
    """Whether a page shows MARKUP as text only."""
    return MARKUP not in page and (escape(MARKUP) in page or "&lt;img src=x" in page)


def test_cve_2020_23811(site: Site) -> None:
    users = site.admin.call("/user/pageList", role=-1, length=100)["data"]
    assert {row["password"] for row in users} == {None}
    hashes = [user.password for user in site.rows(User)]
    pages = site.admin.get("/user").text + site.admin.get("/user/1/edit").text + json.dumps(users)
    assert not any(password in pages for password in [*hashes, "argon2"])
    for name in USERS:
        assert site[name].refused("/user/pageList", role=-1) == "permission denied"


@pytest.mark.parametrize("field", ["appname", "title", "addressList"])
def test_cve_2020_23814(site: Site, field: str) -> None:
    values = {
        "appname": "some-app",
        "title": "some",
        "addressType": "1",
        "addressList": "http://127.0.0.1:9999",
    }
    site.admin.refused("/jobgroup/save", **(values | {field: MARKUP}))
    group = site.store(Group(app_name=MARKUP, title="stored", address_type=1, address_list=MARKUP))
    try:
        assert escaped(site.admin.get("/jobgroup").text)
        assert escaped(site.admin.get(f"/jobgroup/{group}").text)
    finally:
        site.remove("xxl_job_group", group)


@pytest.mark.parametrize("headers", CROSS_SITE, ids=str)
def test_cve_2020_24922(site: Site, headers: dict[str, str]) -> None:
    before = site.count("xxl_job_user")
    form = NEW_ADMIN | {"role": "0"}
    assert site.admin.send("POST", "/user/add", data=form, headers=headers).status_code == 403
    assert site.count("xxl_job_user") == before


@pytest.mark.parametrize("name", [MARKUP, "<b>bold</b>", '"onload="', "ann'--"])
def test_cve_2020_29204(site: Site, name: str) -> None:
    """The server checks names; whatever is stored nevertheless is escaped."""
    site.admin.refused("/user/add", **(NEW_ADMIN | {"username": MARKUP}))
    user = site.store(User(username=name, password="x", role=0))
    try:
        page = site.admin.get("/user").text
        assert name not in page
        assert name in unescape(page)
    finally:
        site.remove("xxl_job_user", user)


def test_cve_2022_29002(site: Site) -> None:
    """The page's form needs the token of the login, whatever the browser sends."""
    before = site.count("xxl_job_user")
    for headers in (*CROSS_SITE, {}, {"Sec-Fetch-Site": "same-origin"}):
        for token in ("", "0" * 64, site["viewer"].csrf_token):
            form = NEW_ADMIN | {"csrf_token": token}
            assert site.admin.send("POST", "/user/new", data=form, headers=headers).status_code == 403
    assert site.count("xxl_job_user") == before


@pytest.mark.parametrize("field", ["jobDesc", "author", "executorParam", "executorHandler"])
def test_cve_2022_29770(site: Site, field: str) -> None:
    job = site["glue"].call("/jobinfo/add", **(BEAN | {"jobGroup": site.one.group, field: MARKUP}))
    assert job["code"] == 200, job
    for path in (f"/jobinfo?jobGroup={site.one.group}", f"/jobinfo/{job['content']}"):
        response = site["glue"].get(path)
        assert MARKUP not in response.text
        assert "script-src 'self';" in response.headers["Content-Security-Policy"]
    assert escaped(response.text)
    table = site["glue"].post("/jobinfo/pageList", jobGroup=site.one.group, triggerStatus=-1)
    assert table.headers["Content-Type"] == "application/json"
    assert table.headers["X-Content-Type-Options"] == "nosniff"
    site["glue"].call("/jobinfo/remove", id=job["content"])


@pytest.mark.parametrize("user", USERS)
def test_cve_2022_36157(site: Site, user: str) -> None:
    before = site.count("xxl_job_user"), site.count("xxl_job_group")
    browser = site[user]
    for path, form in (
        ("/user/add", NEW_ADMIN),
        ("/user/update", {"id": 1, "username": "admin", "role": 0}),
        ("/user/remove", {"id": 1}),
        ("/jobgroup/save", {"appname": "evil-app", "title": "evil", "addressType": 0}),
        ("/jobgroup/update", {"id": site.one.group, "appname": "evil-app", "title": "evil"}),
        ("/jobgroup/remove", {"id": site.one.group}),
    ):
        assert browser.refused(path, **form) == "permission denied"
    for page in ("/user", "/user/new", "/user/audit", "/jobgroup", "/jobgroup/new"):
        assert browser.get(page).status_code == 403
    assert (site.count("xxl_job_user"), site.count("xxl_job_group")) == before


def test_cve_2022_40929(site: Site) -> None:
    """Code needs a right of its own in the console, and ``--allow-glue`` at the executor."""
    script = BEAN | {"jobGroup": site.one.group, "glueType": "GLUE_SHELL", "glueSource": "id"}
    for user in ("viewer", "operator", "editor"):
        assert site[user].refused("/jobinfo/add", **script) == "permission denied"
        answer = site[user].refused("/jobcode/save", id=site.one.code, glueSource="id", glueRemark="four")
        assert answer == "permission denied"
    for language in ("GLUE_SHELL", "GLUE_PYTHON", "GLUE_NODEJS", "GLUE_PHP", "GLUE_POWERSHELL"):
        run = {"jobId": 1, "logId": 1, "logDateTime": 1, "glueType": language, "glueSource": "touch /tmp/x"}
        answer = site.to_executor("run", run)
        assert answer["code"] == 500
        assert "--allow-glue" in answer["msg"]


def test_cve_2022_43183(site: Site) -> None:
    with FakeExecutor() as listener:
        for name in ("executorAddress", "address", "addressList", "logId"):
            form = {"logId": site.one.run, "fromLineNum": 1, "triggerTime": 1, name: listener.address}
            response = site["viewer"].post("/joblog/logDetailCat", **form)
            assert response.status_code in (200, 400)
    assert listener.requests == []


def test_cve_2023_0674(site: Site) -> None:
    before = site.row(User, 1).password
    new = {"password": "long-enough-77"}
    assert site.admin.get("/user/updatePwd", params=new).status_code == 405
    site.admin.refused("/user/updatePwd", **new)
    site.admin.refused("/user/updatePwd", **new, oldPassword="wrong")
    for headers in CROSS_SITE:
        assert site.admin.send("POST", "/user/updatePwd", data=new, headers=headers).status_code == 403
    assert site.admin.post("/account/password", **new).status_code == 403, "the page's form needs its token"
    assert site.row(User, 1).password == before


def test_cve_2023_26120(site: Site) -> None:
    site.new_user("markup-target")
    user = next(user for user in site.rows(User) if user.username == "markup-target")
    for field in ("username", "password", "permission"):
        form = {"id": user.id, "username": user.username, "role": 0, "permission": str(site.one.group)}
        site.admin.call("/user/update", **(form | {field: MARKUP}))
        assert MARKUP not in site.admin.get("/user").text + site.admin.get(f"/user/{user.id}/edit").text
    assert site.row(User, user.id).username == user.username


@pytest.mark.parametrize(("user", "group"), [("outsider", "one"), ("viewer", "two"), ("glue", "two")])
def test_cve_2023_27087(site: Site, user: str, group: str) -> None:
    place = getattr(site, group)
    jobs = {"jobGroup": place.group, "triggerStatus": -1}
    runs = {"jobGroup": place.group, "jobId": 0, "logStatus": -1}
    for path, form in (("/jobinfo/pageList", jobs), ("/joblog/pageList", runs)):
        answer = site[user].call(path, **form)
        assert answer.get("data", []) == []
        assert place.app_name not in json.dumps(answer)


@pytest.mark.parametrize("action", ["update", "remove", "start", "stop", "trigger"])
def test_cve_2023_33779(site: Site, action: str) -> None:
    before = vars(site.row(Job, site.two.job))
    answer = site["glue"].call(f"/jobinfo/{action}", id=site.two.job, **(BEAN | {"jobGroup": site.two.group}))
    assert (answer["code"], answer["msg"]) in [(500, "Job id is invalid"), (200, None)]
    assert answer["code"] == 500 or action == "remove", "a missing job is removed with success, as ever"
    assert unchanged(before, site.row(Job, site.two.job))
    assert site.cluster.select("SELECT id FROM xxl_job_fire WHERE job_id = :job", job=site.two.job) == []


def test_cve_2023_48087(site: Site) -> None:
    for user in ("outsider", "glue"):
        for form in (
            {"jobGroup": site.two.group, "jobId": 0},
            {"jobGroup": site.two.group, "jobId": site.two.job},
            {"jobGroup": 0, "jobId": site.two.job},
            {"jobGroup": 0, "jobId": 0},
            {"jobGroup": site.one.group, "jobId": site.two.job},
        ):
            site[user].call("/joblog/clearLog", **form, type=9)
            assert site.row(JobLog, site.two.run) is not None
            assert site.row(JobLog, site.one.run) is not None, form
        answer = site[user].call("/joblog/logDetailCat", logId=site.two.run, fromLineNum=1)
        assert answer["msg"] in MISSING | {"permission denied"}


def test_cve_2023_48088(site: Site) -> None:
    run = site.new_run(site.one, trigger_msg=MARKUP)
    site.executor.respond(
        "log", Answer.json(content={"fromLineNum": 1, "toLineNum": 1, "logContent": MARKUP})
    )
    assert site.machine("callback", [{"logId": run, "handleCode": 500, "handleMsg": MARKUP}])["code"] == 200
    assert site.row(JobLog, run).handle_msg == MARKUP
    viewer = site["viewer"]
    for path in (f"/joblog/{run}", f"/joblog/{run}/note", f"/joblog?jobGroup={site.one.group}"):
        page = viewer.get(path)
        assert page.status_code == 200
        assert MARKUP not in page.text
    content = viewer.call("/joblog/logDetailCat", logId=run, fromLineNum=1)["content"]["logContent"]
    assert content.rstrip("\n") == escape(MARKUP)  # Lines of the archive, if it was faster, all end in LF.
    for path in (f"/joblog/{run}/lines?from=1", f"/joblog/{run}/log.txt"):
        answer = viewer.get(path)
        assert not answer.headers["Content-Type"].startswith("text/html")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_cve_2023_48089(site: Site) -> None:
    versions = site.count("xxl_job_logglue")
    for user in ("outsider", "glue"):
        answer = site[user].refused("/jobcode/save", id=site.two.code, glueSource="id", glueRemark="four")
        assert answer in MISSING | {"permission denied"}
    assert site.row(Job, site.two.code).glue_source == "echo group-two"
    assert site.count("xxl_job_logglue") == versions


def test_cve_2024_3366() -> None:  # callbacks wait as JSON: nothing reads objects or runs code from files
    forbidden = {"pickle", "marshal", "shelve", "dill", "jsonpickle"}
    for module in read_modules(REFERENCE.parents[2], "app", "workers", "executor_client").values():
        for node in ast.walk(ast.parse(module.source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert forbidden.isdisjoint(name.partition(".")[0] for name in names), module.name
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ("eval", "exec"), module.name
            # of YAML texts and lists only, as with JSON
            assert not re.match(r"yaml\.(?!safe_|YAMLError)\w*(load|Loader)", called), (module.name, called)


@pytest.mark.parametrize(
    "address",
    [
        "{listener}",
        "http://169.254.169.254",
        "{executor}.evil.example",
        "{executor}@{bare}",
        "{executor},{listener}",
    ],
)
def test_cve_2024_24113(site: Site, address: str) -> None:
    with FakeExecutor() as listener:
        values = {
            "listener": listener.address,
            "bare": listener.address.removeprefix("http://"),
            "executor": site.executor.address.rstrip("/"),
        }
        reason = site["operator"].refused(
            "/jobinfo/trigger", id=site.one.job, addressList=address.format(**values)
        )
        assert "add it to the group first" in reason
    assert listener.requests == []


def test_cve_2024_24113_addresses_of_the_group(site: Site) -> None:
    job = site.new_job(site.one)
    for address in (site.executor.address, site.executor.address.rstrip("/")):
        assert site["operator"].call("/jobinfo/trigger", id=job, addressList=address)["code"] == 200
    await_true(lambda: len(site.executor.requests_for("run")) >= 2, "both runs arrive")


def test_cve_2024_42681(site: Site) -> None:
    own = site.new_job(site.one)
    change = BEAN | {"jobGroup": site.one.group, "childJobId": site.two.job}
    expected = f"Child job id ({site.two.job}) was not found"
    assert site["glue"].refused("/jobinfo/update", id=own, **change) == expected
    assert site["glue"].refused("/jobinfo/add", **change) == expected
    assert site.row(Job, own).child_jobid == ""


@pytest.mark.parametrize("param", ["http://169.254.169.254/", "url: http://127.0.0.1/\nmethod: get"])
def test_cve_2025_7787(site: Site, param: str) -> None:
    assert_no_such_handler(site, "httpJobHandler", param)


@pytest.mark.parametrize("param", ["id", "touch /tmp/x; id"])
def test_cve_2025_7788(site: Site, param: str) -> None:
    assert_no_such_handler(site, "commandJobHandler", param)


def assert_no_such_handler(site: Site, handler: str, param: str) -> None:
    """Our executor has no sample handlers that do what their parameter says."""
    run = {"jobId": 3, "logId": 3, "logDateTime": 1, "glueType": "BEAN", "executorHandler": handler}
    answer = site.to_executor("run", run | {"executorParams": param})
    assert answer["code"] == 500
    assert handler in answer["msg"]


def test_cve_2025_7789(site: Site) -> None:
    """A cookie is random and new for each login; passwords are kept as Argon2id."""
    first, second = (site.log_in("viewer") for _ in range(2))
    cookies = {browser.http.cookies.get_dict()["XXL_JOB_LOGIN_IDENTITY"] for browser in (first, second)}
    assert len(cookies) == 2
    user = next(user for user in site.rows(User) if user.username == "viewer")
    assert user.password.startswith("$argon2id$")
    for forged in (user.password, user.password.encode().hex()):
        assert is_at_login(Browser(site.url, forged.replace(",", "%2C")).get("/jobinfo"))


@pytest.mark.parametrize("user", ["outsider", "glue"])
def test_cve_2025_9263(site: Site, user: str) -> None:
    answer = site[user].call("/joblog/getJobsByGroup", jobGroup=site.two.group)
    assert answer.get("content") in (None, [])


def test_cve_2025_9264(site: Site) -> None:
    for user in ("outsider", "glue"):
        site[user].call("/jobinfo/remove", id=site.two.job)
        assert site[user].submit(f"/jobinfo/{site.two.job}/delete").status_code in (403, 404)
        assert site.row(Job, site.two.job) is not None
    assert site["operator"].refused("/jobinfo/remove", id=site.one.job) == "permission denied"


@pytest.mark.parametrize("text", ["<details open ontoggle=alert(1)>", "<svg/onload=alert(1)>"])
def test_cve_2026_94145(site: Site, text: str) -> None:
    job = site.new_job(site.one, job_desc=text, author=text)
    run = site.new_run(site.one, job_id=job)
    for path in (f"/jobinfo?jobGroup={site.one.group}", f"/jobinfo/{job}", f"/joblog/{run}", "/", "/joblog"):
        page = site["viewer"].get(path)
        assert (page.status_code, text in page.text) == (200, False), path
    assert text in unescape(site["viewer"].get(f"/jobinfo/{job}").text)
    site.remove("xxl_job_log", run)
    site.remove("xxl_job_info", job)


@pytest.mark.parametrize("text", ["<b onmousemove=alert(1)>", "<a autofocus onfocus=alert(1)>"])
def test_cve_2026_94426(site: Site, text: str) -> None:
    group = site.store(Group(app_name="named-app", title=text, address_type=0))
    for path in ("/jobgroup", f"/jobgroup/{group}", "/jobinfo", "/joblog", "/user/new"):
        page = site.admin.get(path)
        assert (page.status_code, text in page.text) == (200, False), path
        assert text in unescape(page.text), path
    site.remove("xxl_job_group", group)
