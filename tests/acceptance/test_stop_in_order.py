"""Stops are orderly, and start errors are one line."""

import re
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import text

from app.clock import now_ms
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT, Program, free_port
from tests.support.databases import migrate
from tests.support.eventually import eventually

#: longest stop allowed by the services' unit files
STOP_PROMISED_S = 10
#: jobs stopped one after the other
STOPS = 8
#: seconds until programs notice that their parent was killed
ORPHAN_S = 20


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGTERM, id="term"),
        pytest.param(signal.SIGINT, id="int", marks=pytest.mark.extensive),
    ],
)
def test_a_signal_ends_console_and_workers_with_all_their_processes(
    cluster: Cluster, number: signal.Signals
) -> None:
    group_id = cluster.start_all()
    console = cluster.console
    for _ in range(5):
        console.add_job(group_id, scheduleType="CRON", scheduleConf="* * * * * ?", triggerStatus=1)
    slow_id = console.add_job(group_id, executorHandler="sleep")
    console.trigger(slow_id, "60")
    eventually(lambda: cluster.events("start"), 30, "something runs")
    for name in ("workers", "console"):
        program = cluster.programs[name]
        family = program.children()
        assert program.end(number, STOP_PROMISED_S) == 0, program.output[-2000:]
        _gone, alive = psutil.wait_procs(family, timeout=STOP_PROMISED_S)
        assert alive == []
        assert "Traceback" not in program.output
        assert " ERROR " not in program.output
    # what was sent before the stop was recorded: nothing is left in SENDING
    states = {row["state"] for row in cluster.select("SELECT state FROM xxl_job_fire")}
    assert states <= {"PENDING", "ACCEPTED"}


@pytest.mark.extensive
def test_children_end_when_their_supervisor_is_killed(cluster: Cluster) -> None:
    program = cluster.start_workers()
    family = program.children()
    assert len(program.workers()) >= 2
    program.end(signal.SIGKILL)
    _gone, alive = psutil.wait_procs(family, timeout=ORPHAN_S)
    assert alive == []


@pytest.mark.extensive
def test_a_stopped_job_fires_no_instant_after_the_answer(cluster: Cluster) -> None:
    """By default bench/faults, and an outage of the database, look for fires after a stop."""
    group_id = cluster.start_all()
    console = cluster.console
    job_ids = [
        console.add_job(group_id, scheduleType="CRON", scheduleConf="* * * * * ?", triggerStatus=1)
        for _ in range(STOPS)
    ]
    await_more(cluster, 2 * STOPS)
    answered: dict[int, int] = {}
    for job_id in job_ids:
        console.stop(job_id)
        answered[job_id] = now_ms()
        let_pass(1_000 // STOPS)  # each at another moment of its second
    # a planned instant would have fired by then: the scan looks five seconds ahead
    let_pass(6_000)
    late = [row for row in instants(cluster) if row[1] > answered[row[0]]]
    assert late == [], "fired after the stop was answered"
    for job_id in job_ids:
        console.start(job_id)
    await_more(cluster, 1)
    rows = instants(cluster)
    assert len(rows) == len(set(rows)), "an instant fired twice"


def await_more(cluster: Cluster, count: int) -> None:
    """Wait until this number of further runs have started."""
    seen = len(cluster.events("start"))
    eventually(lambda: len(cluster.events("start")) >= seen + count, 30, "the jobs fire")


def let_pass(duration_ms: int) -> None:
    until = now_ms() + duration_ms
    eventually(lambda: now_ms() > until, duration_ms / 1000 + 30)


def instants(cluster: Cluster) -> list[tuple[int, int]]:
    """Return job and instant of every scheduled row."""
    rows = cluster.select("SELECT job_id, fire_time FROM xxl_job_log WHERE fire_time IS NOT NULL")
    return [(row["job_id"], row["fire_time"]) for row in rows]


PROGRAMS = {"console": ("wsgi.py",), "workers": ("-m", "workers")}


def refusals(cluster: Cluster, **settings: str) -> list[str]:
    """Start console and workers, which must refuse; return the one line of each."""
    programs = [cluster.start(name, *arguments, **settings) for name, arguments in PROGRAMS.items()]
    return [refusal(program) for program in programs]


def refusal(program: Program) -> str:
    """Wait for the end of a program that must refuse to start; return its one line."""
    code = program.process.wait(60)
    output = program.output.strip()
    assert code not in (0, -signal.SIGTERM), output
    assert "Traceback" not in output, output
    # log lines before the checks do not count
    lines = [line for line in output.splitlines() if not re.match(r"\d{4}-\d\d-\d\d ", line)]
    assert len(lines) == 1, output
    return lines[0]


@pytest.fixture
def alone(clusters: list[Cluster], tmp_path: Path) -> Cluster:
    """A cluster on SQLite without a schema, for checks that precede the database."""
    clusters.append(Cluster(tmp_path, f"sqlite:///{tmp_path / 'xxl_job.db'}"))
    return clusters[0]


#: an unknown setting and a secret; tests/settings/test_config.py has all others
WRONG_SETTINGS = [
    ("XXL_JOB_PROT", "8080", "XXL_JOB_PROT is not a known setting .*XXL_JOB_PORT"),
    ("XXL_JOB_ADMIN_PASSWORD", "short", "XXL_JOB_ADMIN_PASSWORD: expected 8 to 128"),
]
SECRETS = {"XXL_JOB_ADMIN_PASSWORD"}


def test_a_wrong_setting_is_named(alone: Cluster) -> None:
    for name, value, expected in WRONG_SETTINGS:
        for line in refusals(alone.beside(name), **{name: value}):
            assert re.search(expected, line), line
            assert value not in line or name not in SECRETS


@pytest.mark.extensive
def test_an_unreachable_database_is_named_without_its_password(alone: Cluster) -> None:
    for scheme in ("mysql+pymysql", "postgresql+psycopg"):
        url = f"{scheme}://root:hunter22@127.0.0.1:{free_port()}/xxl_job"
        for line in refusals(alone.beside(scheme), XXL_JOB_DATABASE_URL=url):
            assert re.search(r"XXL_JOB_DATABASE_URL: .*127\.0\.0\.1.* cannot be opened", line), line
            assert "hunter22" not in line


@pytest.mark.extensive
def test_a_missing_or_different_schema_is_reported_with_the_command(alone: Cluster) -> None:
    def require(expected: str, folder: str) -> None:
        for line in refusals(alone.beside(folder)):
            assert re.search(expected, line), line

    command = r"run: .* db upgrade"
    require(f"there is no such file; for a new installation, {command}", "absent")
    Path(alone.database_url.removeprefix("sqlite:///")).touch()
    require(f"no tables of this program.*{command}", "empty")
    migrate(alone.database_url)
    with alone.engine().begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    require(f"has the schema 0001, .* is needed.*{command}", "old")
    with alone.engine().begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    require("newer schema", "new")


@pytest.mark.extensive
def test_a_database_that_cannot_be_written_is_named(alone: Cluster) -> None:
    migrate(alone.database_url)
    with alone.engine().connect() as connection:
        connection.execute(text("PRAGMA journal_mode=WAL"))
    file = alone.database_url.removeprefix("sqlite:///")
    for line in refusals(alone, XXL_JOB_DATABASE_URL=f"sqlite:///file:{file}?mode=ro&uri=true"):
        assert line.endswith("XXL_JOB_DATABASE_URL: attempt to write a readonly database"), line


def test_a_port_in_use_is_named(alone: Cluster) -> None:
    migrate(alone.database_url)
    with socket.create_server(("127.0.0.1", alone.port)):
        line = refusal(alone.programs.start("second", [sys.executable, "wsgi.py"], alone.environ))
    assert re.search(rf"XXL_JOB_PORT: cannot listen on 127\.0\.0\.1:{alone.port}", line), line
    assert alone.select("SELECT name FROM xxl_job_node") == [], "it counts as a console that executors reach"


@pytest.mark.extensive
def test_another_token_on_the_same_database_is_refused(alone: Cluster) -> None:
    migrate(alone.database_url)
    alone.start_workers()
    eventually(lambda: alone.select("SELECT name FROM xxl_job_node"), 30, "the node is known")
    other = {"XXL_JOB_ACCESS_TOKEN": "another-token-0123456789", "XXL_JOB_NODE_NAME": "other"}
    for line in refusals(alone.beside("other"), **other):
        assert re.search(
            r"XXL_JOB_ACCESS_TOKEN: the node workers .*on the same database uses another access token", line
        ), line


@pytest.mark.extensive
def test_the_executor_client_reports_errors_in_one_line(alone: Cluster) -> None:
    admin = ("--admin", alone.console.address, "--appname", "x")
    wrong = {
        "nothing": ("-m", "executor_client"),
        "module": ("-m", "executor_client", "no.such.module", *admin),
        "port": ("-m", "executor_client", "executor_client.demo", *admin, "--port", "http"),
    }
    programs = {name: alone.start(name, *arguments) for name, arguments in wrong.items()}
    for name, program in programs.items():
        assert refusal(program).startswith(("executor_client: ", "python -m executor_client: ")), name


@pytest.mark.extensive
def test_the_schema_command_works_from_the_command_line(alone: Cluster) -> None:
    program = alone.programs.start(
        "upgrade", [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"], alone.environ, cwd=ROOT
    )
    assert program.process.wait(60) == 0, program.output
    assert alone.select("SELECT lock_name FROM xxl_job_lock") == [{"lock_name": "schedule_lock"}]
