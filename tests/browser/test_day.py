"""A user's day in each language: first login, own password, a job, its run, the growing log, the kill."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import text

from app.services.accounts import passwords
from tests.acceptance.cluster import Cluster
from tests.support.browser import Watch
from tests.support.databases import migrate

pytestmark = pytest.mark.browser

APPNAME = "shop-orders"
FIRST, OWN = "a-first-password-3", "one-of-my-own-5"
#: milliseconds until a requested run is in the log, on a busy machine
RUN_MS = 30_000


@dataclass(frozen=True)
class Labels:
    """Texts of the pages for one user."""

    user: str
    locale: str
    html: str
    login: str
    choose: str
    changed: str
    job: str
    running: str
    kill: str
    killed: str
    account: str


DAYS = [
    Labels(
        "anna", "en-US", "en", "Log in", "only for the first login", "The password was changed",
        "Close unpaid orders", "Running", "Kill the run?", "Killed",
        "Account and settings",
    ),
    Labels(
        "lina", "zh-CN", "zh-Hans", "登录", "仅用于首次登录", "密码已修改", "关闭未支付订单",
        "进行中", "确定终止任务？", "已终止", "账号与设置",
    ),
    Labels(
        "meihua", "zh-TW", "zh-Hant", "登入", "僅用於首次登入", "密碼已修改", "關閉未付款訂單",
        "進行中", "確定終止任務？", "已終止", "帳號與設定",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Console, workers and an executor with handlers; a user with a first password for each language."""
    folder = Path(tmp_path_factory.mktemp("day"))
    url = f"sqlite:///{folder / 'xxl_job.db'}"
    migrate(url)
    running = Cluster(folder, url, forks=True)
    try:
        running.start_all(lambda: running.start_client("executor_client.demo", appname=APPNAME), APPNAME)
        add_users(running)
        yield running
    finally:
        assert running.programs.stop_all() == []


def add_users(cluster: Cluster) -> None:
    stored = passwords.hash_password(FIRST, must_change=True)
    statement = text(
        "INSERT INTO xxl_job_user (username, password, role, permission) VALUES (:username, :password, 1, '')"
    )
    with cluster.engine().begin() as connection:
        connection.execute(statement, [{"username": labels.user, "password": stored} for labels in DAYS])


@pytest.fixture
def page(browser: Browser, cluster: Cluster, labels: Labels) -> Iterator[Page]:
    """A new browser profile in the user's language; a problem of a page fails the test."""
    watch = Watch(cluster.console.address)
    context = browser.new_context(
        locale=labels.locale, reduced_motion="reduce", base_url=f"{cluster.console.address}/"
    )
    opened = context.new_page()
    watch.over(opened)
    yield opened
    context.close()
    wrong_password = "/toLogin: error: Failed to load resource: the server responded with a status of 400"
    assert [each for each in watch.problems if wrong_password not in each] == []


def log_in(page: Page, labels: Labels, password: str) -> None:
    expect(page.locator("html")).to_have_attribute("lang", labels.html)
    page.fill("#userName", labels.user)
    page.fill("#password", password)
    page.get_by_role("button", name=labels.login, exact=True).click()


def choose_password(page: Page, labels: Labels) -> None:
    """Change the first password: no other page is open before."""
    expect(page.locator("main [role=alert]")).to_contain_text(labels.choose)
    page.goto("jobinfo")
    expect(page).to_have_url(re.compile("/account$"))
    expect(page.locator("#new_password")).to_be_focused()
    page.fill("#new_password", OWN)
    page.fill("#repeated", OWN)
    page.locator("#password button.btn-primary").click()
    expect(page.locator(".toasts")).to_contain_text(labels.changed)


def add_job(page: Page, labels: Labels) -> None:
    """Add a job with a slow handler, by its form."""
    page.goto("jobgroup")
    expect(page.locator("tbody")).to_contain_text(APPNAME)
    page.goto("jobinfo/new")
    group_id = page.locator("#job_group option", has_text=APPNAME).get_attribute("value")
    page.select_option("#job_group", group_id)
    page.fill("#job_desc", labels.job)
    page.locator("#section-owner summary").click()
    page.fill("#author", labels.user)
    page.fill("#cron", "0 0 3 * * ?")
    expect(page.locator("#schedule-preview li")).to_have_count(5)
    page.fill("#executor_handler", "sleepJobHandler")
    page.fill("#executor_param", "600")
    page.locator("main form.box .form-buttons button.btn-primary").click()
    expect(page.locator("h1")).to_contain_text(labels.job)


def run_once(page: Page, labels: Labels) -> None:
    """Run the job with two clicks, see its log grow over the list, and open its page."""
    page.goto("jobinfo")
    page.locator("tbody tr", has_text=labels.job).locator("a.run-now").click()
    page.locator("dialog[open] form button.btn-primary").click()
    run = page.locator("dialog.run")
    expect(run.locator("[data-run-banner]")).to_contain_text(labels.running, timeout=RUN_MS)
    expect(run.locator(".log-line").filter(has_text="sleeping for 600.0 s")).to_have_count(1, timeout=RUN_MS)
    run.locator(".sheet-head a").click()


def kill_run(page: Page, labels: Labels) -> None:
    kill = page.locator("[data-run-acts] a[href$='/kill']")
    kill.click()
    dialog = page.get_by_role("dialog", name=labels.kill)
    dialog.locator("button.btn-danger").click()
    expect(page.locator("[data-toasts]")).to_contain_text(labels.job)
    expect(page.locator("[data-run-banner]")).to_contain_text(labels.killed)
    expect(kill).to_have_count(0)
    expect(page.locator(".log-line").filter(has_text="interrupted by a kill")).to_have_count(
        1, timeout=RUN_MS
    )


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(
            labels, id=labels.locale, marks=[] if labels.locale == "zh-CN" else pytest.mark.extensive
        )
        for labels in DAYS
    ],
)
def test_the_day_of_a_user(cluster: Cluster, page: Page, labels: Labels) -> None:
    page.goto("toLogin")
    log_in(page, labels, "a-typing-error")
    expect(page.locator("#password")).to_be_focused()
    log_in(page, labels, FIRST)
    choose_password(page, labels)
    expect(page.locator("main dl dd").first).to_be_visible()
    add_job(page, labels)
    run_once(page, labels)
    kill_run(page, labels)
    page.goto("account")
    expect(page.get_by_role("heading", name=labels.account)).to_be_visible()
    expect(page.locator("#logins tbody tr")).to_have_count(1)
    page.locator("[popovertarget=user-menu]").click()
    page.locator("#user-menu form[action$=logout] button").click()
    expect(page.locator("#userName")).to_be_visible()
    codes = cluster.select(
        "SELECT l.handle_code FROM xxl_job_log l JOIN xxl_job_info j ON j.id = l.job_id"
        " WHERE j.job_desc = :d",
        d=labels.job,
    )
    assert [row["handle_code"] for row in codes] == [500]
