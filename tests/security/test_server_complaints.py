"""Known holes of the HTTP server without a CVE number, attacked over HTTP and by raw sockets.

Source: docs/reference/security.md, section 4.2.
"""

import contextlib
import resource
import socket
import sys
from collections.abc import Iterator

import pytest

from app.models.job import Job
from tests.security.rows import BEAN, unchanged
from tests.security.site import PASSWORD, TIMEOUT_S, Site
from tests.support.console_scripting import CHANGING
from tests.support.security import COOKIE

#: another address of this machine (Linux has all of 127.0.0.0/8)
ATTACKER = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
CHANGES = (*CHANGING, "/login", "/logout")


@pytest.mark.parametrize(
    "path", ["", "/health", "/env", "/heapdump", "/beans", "/loggers", "/threaddump", "/metrics", "/shutdown"]
)
def test_actuator(site: Site, path: str) -> None:
    for url in (f"{site.url}/actuator{path}", f"http://127.0.0.1:{site.port}/actuator{path}"):
        response = site.anonymous().http.get(url, timeout=TIMEOUT_S, allow_redirects=False)
        if path == "/health" and response.status_code == 200:
            assert response.json() == {"status": "UP"}
        else:
            assert response.status_code in (302, 404)
        assert "Server" not in response.headers


@pytest.mark.parametrize("path", CHANGES)
def test_any_http_method(site: Site, path: str) -> None:
    """Only a POST changes anything, also with a login that may do everything."""
    before = vars(site.row(Job, site.one.job))
    query = f"{path}?id={site.one.job}&jobGroup={site.one.group}&jobId={site.one.job}&type=9"
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "PROPFIND"):
        assert site.admin.send(method, query).status_code == 405, method
    assert site.admin.send("OPTIONS", query).status_code == 200
    assert unchanged(before, site.row(Job, site.one.job))
    assert site.admin.get("/account").status_code == 200


def test_no_cookie_flags(site: Site) -> None:
    answer = site.anonymous().post("/login", userName="editor", password=PASSWORD, ifRemember="on")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Domain" not in cookie
    assert "Set-Cookie" not in site["editor"].get("/jobinfo").headers


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 0 1 1 ? 1970-99999999",
        "0 0 0 1 1 ? 99999999999999999999",
        "0 0 0 30 2 ? */1",
        "0-59/1 * * * * ? 1970-2099,1970-2099" + ",*" * 40,
        "0 0 0 ? * 9999999#99999999",
        "* " * 500,
    ],
)
def test_year_range_in_cron(site: Site, cron: str) -> None:
    """The preview and the job are answered, before the time limit of the request."""
    preview = {"scheduleType": "CRON", "scheduleConf": cron}
    assert site["editor"].call("/jobinfo/nextTriggerTime", **preview)["code"] in (200, 500)
    job = BEAN | preview | {"jobGroup": site.one.group}
    answer = site["editor"].call("/jobinfo/add", **job)
    if answer["code"] == 200:
        assert site["editor"].call("/jobinfo/remove", id=answer["content"])["code"] == 200
    assert site["editor"].get("/jobinfo/preview", params={"schedule_conf": cron}).status_code < 500


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4_096 if hard == resource.RLIM_INFINITY else min(4_096, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_half_sent_bodies(site: Site) -> None:
    """Logins that are never sent to their end, and idle connections, shut no user or executor out."""
    head = f"POST /xxl-job-admin/login HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n"
    half = f"{head}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 500\r\n\r\nuserName=a"
    with contextlib.ExitStack() as connections:
        for number in range(1_220):
            opened = socket.create_connection(("127.0.0.1", site.port), TIMEOUT_S, (ATTACKER, 0))
            connections.enter_context(opened)
            if number < 220:
                with contextlib.suppress(OSError):  # the server may have closed it already
                    opened.sendall(half.encode())
        assert site.anonymous().get("/toLogin").status_code == 200
        assert site.log_in("editor").get("/account").status_code == 200
        body = {
            "registryGroup": "EXECUTOR",
            "registryKey": "own-executor",
            "registryValue": site.own_executor,
        }
        assert site.machine("registry", body)["code"] == 200
        assert site.machine("callback", [{"logId": 987_654, "handleCode": 200}])["code"] == 200


def test_trace_foreign_host(site: Site) -> None:
    response = site.admin.send("TRACE", "/jobinfo")
    assert response.status_code == 405
    assert site.admin.cookie not in response.text
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "[::1",
        "192.168.0.7:8080",
    ):
        for path in ("/toLogin", "/jobinfo", ""):
            answer = site.anonymous().get(path, headers={"Host": host, "X-Forwarded-Host": "localhost"})
            assert answer.status_code == 400, host
            assert not host or host not in answer.text + str(answer.headers)
    forwarded = site.anonymous().get("/jobinfo", headers={"X-Forwarded-Host": "evil.example"})
    assert forwarded.headers["Location"] == "/xxl-job-admin/toLogin"
