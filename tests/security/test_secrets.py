"""Secrets and files of the running program: readable by their owner only, shown nowhere.

Console, workers and executor run once, with umask 0 and secrets that can be searched for.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import requests
from sqlalchemy import create_engine, inspect, text

from app.database.engine import unbind_engine
from app.database.opening import check_database
from app.errors import NotConfigured
from app.factory import create_app
from app.settings.config import Config
from tests.acceptance.console import TIMEOUT_S, Console
from tests.acceptance.programs import Program, Programs, free_port, wait_for
from tests.security.secret_use import SecretUse
from tests.support.console_web import SAMPLE, rules_of
from tests.support.eventually import eventually
from tests.support.fake_executor import FakeExecutor

SECRETS = {
    "XXL_JOB_ACCESS_TOKEN": "canary-token-6d1f0c29",
    "XXL_JOB_ADMIN_PASSWORD": "canary-password-6d1f0c29",
    "XXL_JOB_MAIL_PASSWORD": "canary-mail-6d1f0c29",
    "XXL_JOB_ALARM_URLS": "discord://canary-hook/canary-alarm-6d1f0c29",
}
GROUP_TOKEN = "canary-group-token-6d1f0c29"
GROUP_ALARM = "discord://canary-hook/canary-group-alarm-6d1f0c29"
#: of a secret of jobs, whose value JSON writes differently
JOB_CANARY = "8e2a77d0"
JOB_SECRET = f'canary "täglich" {JOB_CANARY}-6d1f0c29'
USER_PASSWORD = "canary-user-password-6d1f0c29"
CANARY = "6d1f0c29"
FORMS = ("/jobgroup/2/edit",)
APPNAME = "xxl-job-executor-sample"
#: pages of a run with a secret, and of its job, besides those of number 1
OF_RUN = ("", "/note", "/lines", "/lines?last=100", "/log.txt", "/compare?old={other}", "/result.csv")


@dataclass
class Running:
    """Console, workers and executor started together, an administrator logged in, a script that has run."""

    program: Program
    home: Path
    console: Console
    environ: dict[str, str]
    use: SecretUse

    def outputs(self) -> str:
        """Return all that was printed or logged."""
        logs = [path.read_text(encoding="utf-8", errors="replace") for path in self.home.glob("logs/*")]
        return "\n".join([self.program.output, *logs])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("secrets")
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB_")}
    own = {"XXL_JOB_HOME": str(folder / "home"), "XXL_JOB_PORT": str(port), "XXL_JOB_LOG_LEVEL": "DEBUG"}
    own |= {"XXL_JOB_EXECUTOR_PORT": str(free_port()), "XXL_JOB_MAIL_HOST": "127.0.0.1"}
    own["XXL_JOB_MAIL_FROM"] = "jobs@x.example"
    own |= {"XXL_JOB_EXECUTOR_ALLOW_GLUE": "shell", "PYTHONUNBUFFERED": "1"}
    environ = kept | own | SECRETS
    programs = Programs(folder)
    command = ["sh", "-c", 'umask 0; exec "$0" -m app up --demo', sys.executable]
    program = programs.start("all", command, environ)
    try:
        wait_for(program, lambda: "Ctrl-C" in program.output, "it says how to log in")
        console = Console(f"http://127.0.0.1:{port}/xxl-job-admin")
        console.login(SECRETS["XXL_JOB_ADMIN_PASSWORD"])
        with FakeExecutor() as executor:
            use = SecretUse(console, programs, environ, folder / "code", JOB_SECRET, executor)
            made = Running(program, folder / "home", console, environ, use)
            _use(made)
            use.prepare()
            use.run_all()
            yield made
    finally:
        assert programs.stop_all() == []


def _use(running: Running) -> None:
    """Set secrets, fail a login and a request of an executor, run a script."""
    console = running.console
    page = console.http.get(f"{console.address}/help", timeout=TIMEOUT_S).text
    token = page.partition('name="csrf_token"')[2].partition('value="')[2].partition('"')[0]
    group_id = next(row["id"] for row in console.groups() if row["appname"] == APPNAME)
    console.post("/user/add", username="norman", password=USER_PASSWORD, role=0)
    console.ask("/login", userName="admin", password=f"wrong-{CANARY}")
    fields = {"csrf_token": token, "app_name": "canary-app", "title": "canary", "address_type": "0"}
    fields |= {"access_token": GROUP_TOKEN, "alarm_urls": GROUP_ALARM}
    saved = console.http.post(f"{console.address}/jobgroup/new", data=fields, timeout=TIMEOUT_S)
    assert "canary-app" in saved.text, saved.text[-2_000:]
    secret = {"csrf_token": token, "name": "CANARY", "group": str(group_id), "secret": JOB_SECRET}
    secret |= {"password": SECRETS["XXL_JOB_ADMIN_PASSWORD"]}
    saved = console.http.post(f"{console.address}/variables/new?kind=secret", data=secret, timeout=TIMEOUT_S)
    assert "CANARY" in saved.text, saved.text[-2_000:]
    requests.post(
        f"{console.address}/api/registry",
        json={
            "registryGroup": "EXECUTOR",
            "registryKey": "canary-app",
            "registryValue": "http://10.0.0.5:99",
        },
        headers={"XXL-JOB-ACCESS-TOKEN": f"wrong-{CANARY}"},
        timeout=TIMEOUT_S,
    )
    console.await_addresses(group_id)
    script = {"glueType": "GLUE_SHELL", "executorHandler": "", "glueSource": "env; echo done > made"}
    job_id = console.add_job(group_id, **script, glueRemark="first one")
    console.trigger(job_id)
    (run,) = console.await_runs(group_id, job_id, 1)
    assert run["handleCode"] == 200, run


def test_every_file_under_the_home_is_its_owners(running: Running) -> None:
    assert (running.home / "xxl_job.db-wal").exists()
    # files that scripts make have the umask the executor was started with; their folder is closed
    paths = [running.home, *running.home.rglob("*")]
    written_by_scripts = {path for path in paths if path.name == "made"}
    modes = {
        str(path.relative_to(running.home)): stat.filemode(path.lstat().st_mode)
        for path in set(paths) - written_by_scripts
        if path.lstat().st_mode & 0o077
    }
    assert len(written_by_scripts) == 1
    assert len(paths) > 15
    assert modes == {}


def test_no_command_line_contains_a_secret(running: Running) -> None:
    processes = [psutil.Process(running.program.pid), *running.program.children()]
    lines = [" ".join(process.cmdline()) for process in processes]
    assert len(lines) >= 6
    assert [line for line in lines if CANARY in line] == []


def test_no_page_contains_a_secret(running: Running) -> None:
    """All pages that can be read, as an administrator: the URL map with the objects of number 1."""
    app = create_app(Config(home=running.home, database_url=f"sqlite:///{running.home}/unused.db"))
    unbind_engine()
    shown: dict[str, str] = {}
    pages = 0
    for rule in rules_of(app):
        if "GET" not in (rule.methods or set()):
            continue
        values = {name: SAMPLE.get(name, 1) for name in rule.arguments}
        path = app.url_map.bind("localhost").build(rule.endpoint, values, method="GET")
        for each in {path, path.replace("/1/", "/2/")}:
            answer = running.console.http.get(f"{running.console.address}{each}", timeout=TIMEOUT_S)
            shown[each] = answer.text + str(answer.headers)
            pages += answer.status_code == 200
    assert pages > 60
    # the form of a group has its channels, for administrators to edit
    for path in FORMS:
        shown[path] = shown[path].replace(GROUP_ALARM, "", 1)
    assert [path for path, page in shown.items() if CANARY in page] == []


def test_no_page_of_a_run_with_a_secret_contains_it(running: Running) -> None:
    use, shown = running.use, dict[str, str]()
    other = use.log_ids[0]
    paths = [f"/joblog/{log_id}{path.format(other=other)}" for log_id in use.log_ids for path in OF_RUN]
    paths += [f"/jobinfo/{job_id}{path}" for job_id in use.job_ids for path in ("",)]
    paths += ["/joblog", "/joblog/runs.csv", "/", "/audit", "/variables", "/alarms", "/jobinfo"]
    for path in paths:
        answer = running.console.http.get(f"{running.console.address}{path}", timeout=TIMEOUT_S)
        shown[f"{answer.status_code} {path}"] = answer.text
    assert [path for path, text in shown.items() if JOB_CANARY in text] == []
    assert [path for path in shown if path[0] not in "24"] == []
    masked = {path for path, text in shown.items() if "‹secret CANARY›" in text or "\\u2039secret" in text}
    assert {f"200 /joblog/{log_id}/lines" for log_id in use.log_ids if log_id != use.log_ids[3]} <= masked


def test_no_answer_alarm_export_or_backup_contains_a_secret(running: Running) -> None:
    running.use.ask_all()
    shown = running.use.shown
    assert len(shown) > 20
    assert [where for where, text in shown.items() if JOB_CANARY in text] == []
    assert "secret CANARY" in shown["alarms"]
    assert "${secret.CANARY}" in shown["--local export"]


def test_no_log_contains_a_secret(running: Running) -> None:
    def logged() -> bool:
        return all(
            word in running.outputs() for word in ("console started", "login refused", "executor registered")
        )

    eventually(logged)
    assert [line for line in running.outputs().splitlines() if CANARY in line] == []
    # as docs/reference/operations.md has it for fail2ban, which removes the time first
    line = (
        r"^\S+ \S+ WARNING +\S+ app\.services\.auditing\.refusals"
        r' login refused address=127\.0\.0\.1 username="admin" reason=password request=\w+$'
    )
    assert re.search(line, running.outputs(), re.MULTILINE)
    # An executor sees a secret that it is sent, and may log it.
    with_secret = {str(log_id) for log_id in running.use.log_ids}
    paths = [path for path in running.home.rglob("executor-logs/*/*.log") if path.stem not in with_secret]
    runs = [path.read_text(encoding="utf-8") for path in paths]
    assert "PATH=" in "".join(runs)
    assert CANARY not in "".join(runs)


def test_no_table_contains_a_secret_of_a_job(running: Running) -> None:
    engine = create_engine(f"sqlite:///{running.home / 'xxl_job.db'}")
    try:
        with engine.connect() as connection:
            names = inspect(connection).get_table_names()
            found = {name: str(connection.execute(text(f"SELECT * FROM {name}")).all()) for name in names}
    finally:
        engine.dispose()
    assert "CANARY" in found["xxl_job_variable"]
    assert [name for name, rows in found.items() if JOB_CANARY in rows] == []
    assert {name for name, rows in found.items() if "‹secret CANARY›" in rows} >= {"xxl_job_log"}


def test_no_audit_entry_contains_a_secret(running: Running) -> None:
    def entries() -> list[str]:
        with engine.connect() as connection:
            return [str(row) for row in connection.execute(text("SELECT * FROM xxl_job_audit"))]

    engine = create_engine(f"sqlite:///{running.home / 'xxl_job.db'}")
    try:
        eventually(lambda: "refused.token" in "".join(entries()))
        found = entries()
    finally:
        engine.dispose()
    assert {word for word in ("user.add", "group.add", "login.refused") if word in "".join(found)} == {
        "user.add",
        "group.add",
        "login.refused",
    }
    assert [entry for entry in found if CANARY in entry] == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XXL_JOB_ACCESS_TOKEN", f"{CANARY}"),
        ("XXL_JOB_ACCESS_TOKEN", f"{CANARY}-{CANARY}\n{CANARY}"),
        ("XXL_JOB_ADMIN_PASSWORD", CANARY[:7]),
        ("XXL_JOB_DATABASE_URL", f"oracle://root:{CANARY}@db/x"),
        ("XXL_JOB_DATABASE_URL", f"root:{CANARY}@db/x"),
        ("XXL_JOB_MAIL_PASWORD", CANARY),
    ],
)
def test_a_wrong_setting_is_reported_without_its_value(variable: str, value: str) -> None:
    with pytest.raises(NotConfigured) as error:
        Config.from_env({variable: value}, dotenv=None)
    assert variable in str(error.value)
    assert CANARY[:7] not in str(error.value)


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "postgresql+psycopg"])
def test_a_database_that_does_not_answer_is_reported_without_its_password(
    scheme: str, tmp_path: Path
) -> None:
    config = Config(home=tmp_path, database_url=f"{scheme}://root:{CANARY}@127.0.0.1:1/x")
    with pytest.raises(NotConfigured) as error:
        check_database(config)
    assert "XXL_JOB_DATABASE_URL" in str(error.value)
    assert CANARY not in str(error.value) + repr(config)
