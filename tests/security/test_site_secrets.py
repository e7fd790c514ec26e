"""Secrets of a running installation: not in logs, process list, audit or database, and private on disk."""

import psutil
import requests

from app.models.audit import AuditEntry
from tests.console.conftest import ADMIN_PASSWORD, PASSWORD
from tests.security.site import BOUND_TOKEN, Site

MISTYPED = "typed-by-mistake-77"
WRONG_TOKEN = "guessed-token-0123456789"


def test_secrets_are_written_nowhere(site: Site) -> None:
    cookie = site.log_in("editor").http.cookies.get_dict()["XXL_JOB_LOGIN_IDENTITY"]
    site.anonymous().refused("/login", userName="editor", password=MISTYPED)
    site["editor"].refused("/user/updatePwd", oldPassword=MISTYPED, password=MISTYPED)
    site.admin.submit(f"/jobgroup/{site.one.group}/test")
    for url in (f"{site.url}/api/registry", f"{site.own_executor}/run"):
        requests.post(url, json={}, headers={"XXL-JOB-ACCESS-TOKEN": WRONG_TOKEN}, timeout=60)
    key = (site.cluster.folder / "home" / "secret_key").read_text().strip()
    secrets = {site.token, BOUND_TOKEN, ADMIN_PASSWORD, PASSWORD, MISTYPED, WRONG_TOKEN, cookie, key}
    secrets |= {browser.cookie for browser in site.browsers.values()}
    places = site.cluster.programs.outputs()
    places["process list"] = "".join(command_lines(site))
    places["audit"] = "".join(str(vars(entry)) for entry in site.rows(AuditEntry))
    places["sessions"] = str(site.cluster.select("SELECT * FROM xxl_job_session"))
    for name, text in places.items():
        assert [secret for secret in secrets if secret in text] == [], name


def command_lines(site: Site) -> list[str]:
    running = [program for program in site.cluster.programs.started if not program.has_ended]
    processes = [process for program in running for process in program.children()]
    processes += [psutil.Process(program.pid) for program in running]
    assert len(processes) >= 4
    return [" ".join(process.cmdline()) for process in processes]


def test_the_home_is_private(site: Site) -> None:
    home = site.cluster.folder / "home"
    for path in (home, *home.rglob("*")):
        # connecting to a socket needs the right to write
        others = 0o022 if path.is_socket() else 0o077
        assert path.stat().st_mode & others == 0, path
