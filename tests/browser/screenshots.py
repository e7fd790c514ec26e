"""Screenshots of the console: ``python3 manage.py pictures [FOLDER] [--only jobs,logs] [--themes light] …``.

Every page with sample data, by default in both themes and widths, into build/pictures. ``--docs`` takes the
few that docs/ shows, into docs/img.
"""

import argparse
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from app.clock import DAY_MS, now_ms
from app.database.engine import session_scope
from app.domain.completeness.days import day_of
from tests.browser.seed import ADMIN, ZONE, beat
from tests.browser.serving import LAUNCH, Console, serving

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = {"wide": 1440, "phone": 390, "large": 1920, "tablet": 1024}
#: pictures of docs/img by look; tests/test_docs.py checks that docs/ shows each of them
DOCS: Mapping[str, frozenset[str]] = {
    "en-light-wide": frozenset(
        (
            "dashboard",
            "timeline",
            "load",
            "completeness",
            "backfill",
            "backfill-new",
            "jobs",
            "job",
            "job-edit",
            "log",
            "executor",
            "import",
        )
    ),
    "en-dark-wide": frozenset(("dashboard",)),
    "en-light-phone": frozenset(("log",)),
    "zh_CN-light-wide": frozenset(("calendar-job", "job-calendar-edit", "jobs")),
}
#: parts of pages with a picture of their own, of the first screen only
PARTS = {"timeline": "/?hours=6#run-timeline"}
LOCALES = {"en": "en-US", "zh_CN": "zh-CN", "zh_TW": "zh-TW"}
#: job file for the picture of an import
FILE = """{"format": 1, "jobs": [
  {"appname": "shop-orders", "jobDesc": "Close unpaid orders", "executorHandler": "closeUnpaidOrders",
   "author": "marco", "executorTimeout": 90},
  {"appname": "shop-reports", "jobDesc": "Rebuild the sales report", "executorHandler": "rebuildSalesReport"},
  {"appname": "mail-gateway", "jobDesc": "Remind of open invoices", "executorHandler": "remindInvoices",
   "author": "lina", "scheduleType": "CRON", "scheduleConf": "0 0 8 ? * MON"}]}"""


def days_ago(days: int) -> str:
    """Return a past day in the zone of the seeded schedules."""
    return day_of(now_ms() - days * DAY_MS, ZoneInfo(ZONE)).isoformat()


def pages(console: Console) -> dict[str, str]:
    """Return name -> path of every page."""
    jobs, groups = console.seeded.jobs, console.seeded.groups
    return {
        "dashboard": "/",
        "load": "/load",
        "completeness": "/completeness",
        "completeness-job": f"/completeness?job_id={jobs[0]}",
        "completeness-day": f"/completeness?job_id={jobs[0]}&from={days_ago(9)}&to={days_ago(9)}",
        "incidents": "/incidents",
        "incidents-all": "/incidents?state=all",
        "incident": f"/incidents/{console.seeded.incident_id}",
        "promises": "/promises",
        "job-promises-edit": f"/jobinfo/{jobs[0]}/edit?suggest=1",
        "limits": "/limits",
        "limit": f"/limits/{console.seeded.limit_id}",
        "limit-job": f"/limits/job/{jobs[4]}",
        "limit-new": "/limits/new",
        "job-limits": f"/jobinfo/{jobs[3]}",
        "job-limits-edit": f"/jobinfo/{jobs[3]}/edit#section-limits",
        "calendars": "/calendars",
        "calendar": f"/calendars/{console.seeded.calendar_id}?year=2026",
        "calendar-job": f"/calendars/{console.seeded.calendar_id}?year=2026&job={jobs[3]}",
        "calendar-new": "/calendars/new",
        "calendar-import": f"/calendars/{console.seeded.calendar_id}/import",
        "calendar-delete": f"/calendars/{console.seeded.calendar_id}/delete",
        "job-calendar-edit": f"/jobinfo/{jobs[3]}/edit#section-calendar",
        "blackouts": "/blackouts",
        "blackout-new": "/blackouts/new",
        "blackout-end": f"/blackouts/{console.seeded.blackout_id}/end",
        "executor-off": f"/jobgroup/{groups[0]}/off",
        "run-blackout": f"/jobinfo/{jobs[2]}/run",
        "job-blackout": f"/jobinfo/{jobs[2]}",
        "job-graph": f"/jobinfo/{jobs[8]}/graph",
        "job-graph-alone": f"/jobinfo/{jobs[0]}/graph",
        "executor-graph": f"/jobgroup/{groups[0]}/graph",
        "job-rounds": f"/jobinfo/{jobs[6]}",
        "job-gate": f"/jobinfo/{jobs[3]}",
        "job-after-edit": f"/jobinfo/{jobs[6]}/edit#section-after",
        "rounds": "/rounds",
        "round": f"/rounds/{console.seeded.round_id}",
        "round-missing": f"/rounds/{console.seeded.round_id - 2}/run-missing",
        "backfills": "/backfills",
        "backfill": f"/backfills/{console.seeded.backfill_id}",
        "backfill-resume": f"/backfills/{console.seeded.backfill_id - 1}/resume",
        "backfill-cancel": f"/backfills/{console.seeded.backfill_id}/cancel",
        "backfill-new": f"/backfills/new?job={jobs[3]}&preset=30days&which=missing",
        "backfill-of-runs": f"/backfills/new?id={console.seeded.log_id}&id={console.seeded.log_id + 1}",
        "job-backfills": f"/jobinfo/{jobs[2]}",
        "logs-failed": "/joblog?logStatus=2&range=all",
        "log-search": "/logs/search?q=order&regex=1&range=all",
        "jobs": "/jobinfo",
        "job": f"/jobinfo/{jobs[0]}",
        "job-runs": f"/jobinfo/{jobs[0]}?tab=runs",
        "job-alarms": f"/jobinfo/{jobs[0]}?tab=alarms",
        "job-versions": f"/jobinfo/{jobs[0]}?tab=versions",
        "job-code-versions": f"/jobinfo/{jobs[4]}?tab=versions",
        "job-history": f"/jobinfo/{jobs[0]}?tab=history",
        "job-version": f"/jobinfo/{jobs[0]}/versions/1",
        "job-managed": f"/jobinfo/{jobs[6]}",
        "job-managed-edit": f"/jobinfo/{jobs[6]}/edit",
        "job-new": "/jobinfo/new",
        "job-edit": f"/jobinfo/{jobs[3]}/edit",
        "run": f"/jobinfo/{jobs[1]}/run",
        "job-filled": f"/jobinfo/{jobs[8]}",
        "job-filled-edit": f"/jobinfo/{jobs[8]}/edit",
        "run-filled": f"/jobinfo/{jobs[8]}/run",
        "bulk": f"/jobinfo/bulk/move?id={jobs[0]}&id={jobs[1]}&id={jobs[7]}",
        "bulk-delete": f"/jobinfo/bulk/delete?id={jobs[0]}&id={jobs[1]}",
        "delete": f"/jobinfo/{jobs[1]}/delete",
        "bulk-tag": f"/jobinfo/bulk/tag?id={jobs[0]}&id={jobs[1]}",
        "jobs-tagged": "/jobinfo?tag=Nightly&favourites=1",
        "view-new": "/views/jobs/new?tag=nightly",
        "view-edit": f"/views/{console.seeded.view_id}/edit",
        "view-delete": f"/views/{console.seeded.view_id}/delete",
        "import": "/jobinfo/import",
        "tasks": "/tasks",
        "copy": f"/jobinfo/{jobs[3]}/copy",
        "next-times": f"/jobinfo/{jobs[0]}/next-times",
        "job-addresses": f"/jobinfo/{jobs[0]}/nodes",
        "logs": "/joblog?range=day",
        "logs-today": "/joblog",
        "logs-days": "/joblog?range=week&logStatus=2&length=100",
        "logs-hint": "/joblog?q=status:red+orders",
        "log": f"/joblog/{console.seeded.log_id}",
        "log-failed": f"/joblog/{console.seeded.log_id + 1}",
        "log-filled": f"/joblog/{console.seeded.filled_id}/note",
        "log-unfilled": f"/joblog/{console.seeded.filled_id + 1}",
        "log-dispatch": f"/joblog/{console.seeded.log_id}?tab=dispatch",
        "message": f"/joblog/{console.seeded.log_id}/note",
        "kill": f"/joblog/{console.seeded.log_id}/kill",
        "clean": f"/joblog/clean?jobGroup={groups[0]}",
        "executors": "/jobgroup",
        "executor-edit": f"/jobgroup/{groups[0]}/edit",
        "executor": f"/jobgroup/{groups[0]}",
        "mute": f"/jobinfo/{jobs[1]}/mute",
        "test-alarm": f"/jobinfo/{jobs[0]}/test-alarm",
        "drain": f"/jobgroup/{groups[0]}/drain?address=http://10.0.3.12:9999",
        "addresses": f"/jobgroup/{groups[0]}/nodes",
        "users": "/user",
        "user-new": "/user/new",
        "user-edit": f"/user/{console.seeded.user_id}/edit",
        "logins": f"/user/{console.seeded.user_id}/logins",
        "audit": "/user/audit",
        "tokens": "/account/tokens",
        "token-new": "/account/tokens/new",
        "token-revoke": "/account/tokens/1/revoke",
        "all-tokens": "/user/tokens",
        "token-new-service": "/user/tokens/new",
        "alarms": "/alarms",
        "alarms-failed": "/alarms?result=failed&channel=2",
        "alarm-channels": "/alarmchannels",
        "mutes": "/alarms/mutes",
        "alarm-channel": "/alarmchannels/new?kind=slack",
        "alarm-channel-edit": "/alarmchannels/1/edit",
        "variables": "/variables",
        "variables-none": "/variables?name=nothing",
        "variable": "/variables/1",
        "secret": "/variables/4",
        "variable-new": "/variables/new",
        "secret-new": "/variables/new?kind=secret",
        "secret-edit": "/variables/4/edit",
        "variable-delete": "/variables/1/delete",
        "glue": f"/jobcode?jobId={jobs[4]}",
        "glue-diff": f"/jobcode/diff?jobId={jobs[4]}",
        "account": "/account",
        "help": "/help",
        "api": "/help/api",
        "connect": "/connect?appname=shop-orders",
        "connect-new": "/connect",
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
    browser: Browser,
    console: Console,
    folder: Path,
    look: str,
    *,
    only: Collection[str] = (),
    first_screen: bool = False,
) -> None:
    """Take the pictures of one look, such as ``zh_CN-dark-phone``; empty ``only``: of every page."""
    with open_page(browser, look) as page:
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
            if "#section-" in path:
                page.click(f"{path[path.index('#') :]} > summary")
            page.wait_for_load_state("networkidle")
            if name == "log":  # of a run that has ended
                end = page.locator("[data-text-loaded]").get_attribute("data-text-loaded")
                expect(page.locator("[data-log-status]")).to_contain_text(str(end))
            full = not (first_screen or name in PARTS)
            page.screenshot(path=folder / f"{name}-{look}.png", full_page=full)


@contextmanager
def open_page(browser: Browser, look: str) -> Iterator[Page]:
    """Open a browser page in the language, theme and width of a look."""
    language, theme, width = look.rsplit("-", 2)
    scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
    size: ViewportSize = {"width": WIDTHS[width], "height": 900}
    context = browser.new_context(
        viewport=size, locale=LOCALES[language], color_scheme=scheme, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="manage.py pictures", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "pictures")
    parser.add_argument("--docs", action="store_true", help="take the pictures of docs/img")
    parser.add_argument("--language", default="en", choices=sorted(LOCALES))
    parser.add_argument("--only", default="", metavar="NAMES", help="pages, comma separated")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--widths", default="wide,phone")
    parser.add_argument("--first-screen", action="store_true", help="without the part below the fold")
    options = parser.parse_args()
    if options.docs:
        take(ROOT / "docs" / "img", DOCS, first_screen=True)
        return
    only = frozenset(name for name in options.only.split(",") if name)
    looks = [
        f"{options.language}-{theme}-{width}"
        for theme in options.themes.split(",")
        for width in options.widths.split(",")
    ]
    take(options.folder, dict.fromkeys(looks, only), first_screen=options.first_screen)


def take(folder: Path, looks: Mapping[str, Collection[str]], *, first_screen: bool) -> None:
    """Start a console with sample data for each language and take the pictures of its looks."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in sorted({look.split("-")[0] for look in looks}):
        with (
            tempfile.TemporaryDirectory() as home,
            serving(Path(home), language=language) as console,
            sync_playwright() as driver,
        ):
            browser = driver.chromium.launch(**LAUNCH)
            for look, only in looks.items():
                if look.startswith(f"{language}-"):
                    shoot(browser, console, folder, look, only=only, first_screen=first_screen)
            browser.close()


if __name__ == "__main__":
    main()
