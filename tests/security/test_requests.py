"""Requests that other sites make, and pages that refresh themselves; formulas in exports."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.clock import now_ms
from app.database.engine import session_scope
from app.factory import create_app
from app.models.audit import AuditEntry
from app.models.log import JobLog
from app.models.session import LoginSession
from app.services.accounts.login import IDLE_MS, LAST_SEEN_EVERY_MS
from app.settings.config import Config
from tests.console.pages import is_at_login
from tests.support.console import Console, add_group, add_job
from tests.support.console_scripting import add_log
from tests.support.factories import only_row

STATIC = Path(__file__).parents[2] / "app" / "static" / "js"
TEMPLATES = Path(__file__).parents[2] / "app" / "templates"
HOURS_MS = 3_600_000


def status_from(console: Console, origin: str, base_url: str = "http://localhost", **headers: str) -> int:
    answer = console.post(
        "/jobgroup/save",
        {"appname": "some-app", "title": "some"},
        base_url=base_url,
        headers={"Origin": origin, **headers},
    )
    return answer.status_code


@pytest.mark.parametrize(
    ("base_url", "origin", "status"),
    [
        ("https://localhost", "https://localhost", 200),
        ("https://localhost", "http://localhost", 403),
        ("http://localhost", "https://localhost", 403),
        ("http://localhost", "HTTP://LOCALHOST", 200),
        ("http://localhost:80", "http://localhost", 200),
        ("https://localhost:8443", "https://localhost:8443", 200),
        ("https://localhost:8443", "https://localhost", 403),
        ("http://localhost", "ftp://localhost", 403),
        ("http://localhost", "//localhost", 403),
        ("http://localhost", "http://user@localhost", 403),
        ("http://localhost", "http://localhost:99999", 403),
        ("http://localhost", "http://[localhost", 403),
    ],
)
def test_an_origin_is_compared_with_its_scheme(
    admin: Console, base_url: str, origin: str, status: int
) -> None:
    assert status_from(admin, origin, base_url) == status


def test_a_name_with_an_underscore_is_a_host(settings: Config, database: str) -> None:
    named = replace(settings, host="0.0.0.0", allowed_hosts=("xxl_job_admin",))
    app = create_app(named)
    console = Console(app, app.test_client())
    for host, status in (("xxl_job_admin:8080", 200), ("xxl_job_other", 400), ("a@xxl_job_admin", 400)):
        assert console.get("/toLogin", headers={"Host": host}).status_code == status, host
    login = {"Host": "xxl_job_admin:8080", "Origin": "http://xxl_job_admin:8080"}
    form = {"userName": "admin", "password": "wrong"}
    assert console.post("/login", form, headers=login).get_json()["code"] == 500
    assert console.post("/login", form, headers=login | {"Origin": "http://other"}).status_code == 403


def test_behind_a_proxy_the_scheme_is_the_browsers(settings: Config, database: str) -> None:
    proxied = Console(app := create_app(replace(settings, proxy_count=1)), app.test_client())
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.0.0.9"}
    assert status_from(proxied, "http://localhost", **forwarded) == 403
    assert status_from(proxied, "https://localhost", **forwarded) == 302


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:40123", "203.0.113.9"),
        ("[2001:db8::7]:40123", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("2001:db8::7:40123", "2001:db8::7:40123"),
        ("unknown", "unknown"),
    ],
)
def test_an_address_is_without_the_port_that_a_proxy_adds(
    settings: Config, database: str, forwarded: str, address: str
) -> None:
    """Each connection has another port: failed logins are counted by address."""
    proxied = Console(app := create_app(replace(settings, proxy_count=1)), app.test_client())
    form = {"userName": "norman", "password": "wrong"}
    assert proxied.post("/toLogin", form, headers={"X-Forwarded-For": forwarded}).status_code == 400
    assert only_row(AuditEntry).address == address


def test_the_public_address_is_an_own_origin(settings: Config, database: str) -> None:
    public = replace(settings, public_url="https://jobs.example/xxl-job-admin")
    console = Console(app := create_app(public), app.test_client())
    assert status_from(console, "https://jobs.example") == 302
    assert status_from(console, "http://jobs.example") == 403


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", "\n="])
def test_no_cell_of_an_export_is_a_formula(admin: Console, start: str) -> None:
    cell = f"{start}HYPERLINK(1)"
    job_id = add_job(add_group(), executor_handler="demoJobHandler")
    log_id = add_log(job_id, 1)
    with session_scope() as session:
        session.get_one(JobLog, log_id).executor_param = cell
    text = admin.get("/joblog/runs.csv?range=all").text.removeprefix("\ufeff")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["id"] == str(log_id)
    assert row["parameter"] == "'" + cell.replace("\n=", "\n'=")


@pytest.mark.parametrize("between", [";", "; ", "\t", ";;", "\n", "\r\n "])
def test_no_part_of_a_cell_is_a_formula_where_semicolons_separate(admin: Console, between: str) -> None:
    job_id = add_job(add_group(), executor_handler="demoJobHandler")
    with session_scope() as session:
        session.get_one(JobLog, add_log(job_id, 1)).executor_param = f"a=-1{between}=HYPERLINK(1);b"
    text = admin.get("/joblog/runs.csv?range=all").text.removeprefix("\ufeff")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["parameter"] == f"a=-1{between}'=HYPERLINK(1);b"
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
    assert not [cell for row in rows for cell in row if cell.lstrip(" \t").startswith("=")]


def last_seen(at_ms: int) -> None:
    with session_scope() as session:
        session.execute(update(LoginSession).values(last_seen_ms=at_ms))


def seen_ms() -> int:
    return only_row(LoginSession).last_seen_ms


@pytest.mark.parametrize("as_parameter", [True, False])
def test_a_refresh_of_a_page_does_not_keep_a_login(admin: Console, as_parameter: bool) -> None:
    long_ago = now_ms() - IDLE_MS + HOURS_MS
    last_seen(long_ago)
    path, headers = ("/?refresh=auto", {}) if as_parameter else ("/", {"X-Refresh": "auto"})
    assert admin.get(path, headers=headers).status_code == 200
    assert seen_ms() == long_ago
    last_seen(now_ms() - IDLE_MS - 1)
    assert is_at_login(admin.get(path, headers=headers))


def test_a_request_of_the_user_keeps_it(admin: Console) -> None:
    long_ago = now_ms() - 2 * LAST_SEEN_EVERY_MS
    last_seen(long_ago)
    admin.get("/")
    assert seen_ms() > long_ago


@pytest.mark.parametrize("name", ["live.js", "task.js", "run-sheet.js", "log-view.js"])
def test_each_script_that_polls_marks_its_refreshes(name: str) -> None:
    assert '"X-Refresh": "auto"' in (STATIC / name).read_text(encoding="utf-8")


def test_no_other_script_or_page_repeats_a_request() -> None:
    """A new one must mark its refreshes, and belongs into the list above."""
    repeats = re.compile(r"setInterval|setTimeout\((step|poll|resolve)|EventSource|WebSocket")
    polling = {path.name for path in STATIC.glob("*.js") if repeats.search(path.read_text(encoding="utf-8"))}
    assert polling == {"live.js", "task.js", "run-sheet.js", "log-view.js"}
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'hx-trigger="[^"]*every', text), path
        assert 'http-equiv="refresh"' not in text or re.search('refresh_address|content="0; url', text), path
