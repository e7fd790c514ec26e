"""``python -m tests.browser.screenshots FOLDER [--language en] [--only jobs,logs] [--themes light] [--widths wide]``.

Every page as a picture, in both widths and both themes unless asked otherwise; docs/img holds those of docs/console.md.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from app.clock import now_ms
from app.db import session_scope
from tests.browser.seed import ADMIN, beat
from tests.browser.serving import LAUNCH, Console, serving

WIDTHS = {"wide": 1440, "phone": 390}
#: parts of pages that have a picture of their own, taken with --first-screen
PARTS = {"timeline": "/?hours=6#run-timeline"}
LOCALES = {"en": "en-US", "zh_CN": "zh-CN", "zh_TW": "zh-TW"}
#: what the picture of an import imports
FILE = """{"format": 1, "jobs": [
  {"appname": "shop-orders", "jobDesc": "Close unpaid orders", "executorHandler": "closeUnpaidOrders", "author": "marco",
   "executorTimeout": 90},
  {"appname": "shop-reports", "jobDesc": "Rebuild the sales report", "executorHandler": "rebuildSalesReport"},
  {"appname": "mail-gateway", "jobDesc": "Remind of open invoices", "executorHandler": "remindInvoices", "author": "lina",
   "scheduleType": "CRON", "scheduleConf": "0 0 8 ? * MON"}]}"""


def pages(console: Console) -> dict[str, str]:
    """Return name -> path of every page that is worth a look."""
    jobs, groups = console.seeded.jobs, console.seeded.groups
    return {
        "dashboard": "/",
        "load": "/load",
        "jobs": "/jobinfo",
        "job": f"/jobinfo/{jobs[0]}",
        "job-new": "/jobinfo/new",
        "job-edit": f"/jobinfo/{jobs[3]}/edit",
        "run": f"/jobinfo/{jobs[1]}/run",
        "bulk": f"/jobinfo/bulk/move?id={jobs[0]}&id={jobs[1]}&id={jobs[7]}",
        "bulk-delete": f"/jobinfo/bulk/delete?id={jobs[0]}&id={jobs[1]}",
        "delete": f"/jobinfo/{jobs[1]}/delete",
        "bulk-tag": f"/jobinfo/bulk/tag?id={jobs[0]}&id={jobs[1]}",
        "jobs-tagged": "/jobinfo?tag=Nightly&favourites=1",
        "view-new": "/views/jobs/new?tag=nightly",
        "view-edit": f"/views/{console.seeded.view_id}/edit",
        "view-delete": f"/views/{console.seeded.view_id}/delete",
        "import": "/jobinfo/import",
        "copy": f"/jobinfo/{jobs[3]}/copy",
        "next-times": f"/jobinfo/{jobs[0]}/next-times",
        "job-nodes": f"/jobinfo/{jobs[0]}/nodes",
        "logs": "/joblog?range=day",
        "log": f"/joblog/{console.seeded.log_id}",
        "note": f"/joblog/{console.seeded.log_id}/note",
        "kill": f"/joblog/{console.seeded.log_id}/kill",
        "clean": f"/joblog/clean?jobGroup={groups[0]}",
        "groups": "/jobgroup",
        "group-edit": f"/jobgroup/{groups[0]}/edit",
        "machines": f"/jobgroup/{groups[0]}",
        "mute": f"/jobinfo/{jobs[1]}/mute",
        "test-alarm": f"/jobinfo/{jobs[0]}/test-alarm",
        "drain": f"/jobgroup/{groups[0]}/drain?address=http://10.0.3.12:9999",
        "nodes": f"/jobgroup/{groups[0]}/nodes",
        "users": "/user",
        "user-new": "/user/new",
        "user-edit": f"/user/{console.seeded.user_id}/edit",
        "logins": f"/user/{console.seeded.user_id}/logins",
        "audit": "/user/audit",
        "glue": f"/jobcode?jobId={jobs[4]}",
        "glue-diff": f"/jobcode/diff?jobId={jobs[4]}",
        "account": "/account",
        "help": "/help",
        "missing": "/nothing-here",
        "empty": "/jobinfo?jobDesc=nothing-has-this-name",
    }


def log_in(page: Page, console: Console) -> None:
    page.goto(f"{console.url}/toLogin")
    page.fill("#userName", ADMIN[0])
    page.fill("#password", ADMIN[1])
    page.click("button.btn-primary")
    page.wait_for_url(f"{console.url}/")


def shoot(
    browser: Browser, console: Console, folder: Path, look: str, only: set[str], *, first_screen: bool = False
) -> None:
    """Take the pictures of one look, such as ``zh_CN-dark-phone``; ``first_screen``: without what one scrolls to."""
    language, theme, width = look.rsplit("-", 2)
    scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
    size: ViewportSize = {"width": WIDTHS[width], "height": 900}
    context = browser.new_context(
        viewport=size, locale=LOCALES[language], color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{console.url}/toLogin")
    if not only or "login" in only:
        page.screenshot(path=folder / f"login-{look}.png")
    log_in(page, console)
    for name, path in {**pages(console), **PARTS}.items():
        if only and name not in only:
            continue
        with session_scope() as session:
            beat(session, now_ms())
        page.goto(console.url + path)
        if name == "import":
            page.fill("#text", FILE)
            page.click("form[data-waits] button.btn-primary")
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"{name}-{look}.png", full_page=not first_screen)
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language", default="en", choices=sorted(LOCALES))
    parser.add_argument("--only", default="")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--widths", default="wide,phone")
    parser.add_argument("--first-screen", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        serving(Path(home), language=asked.language) as console,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(**LAUNCH)
        looks = [(theme, width) for theme in asked.themes.split(",") for width in asked.widths.split(",")]
        for theme, width in looks:
            only = {name for name in asked.only.split(",") if name}
            shoot(
                browser,
                console,
                asked.folder,
                f"{asked.language}-{theme}-{width}",
                only,
                first_screen=asked.first_screen,
            )
        browser.close()


if __name__ == "__main__":
    main()
