"""A database of the Java original is upgraded in place and keeps working, alone or with a Java admin."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from app.clock import now_ms
from tests.acceptance.cluster import Cluster
from tests.acceptance.console import Console
from tests.acceptance.programs import wait_for
from tests.support.databases import migrate, run_script
from tests.support.eventually import eventually
from tests.support.migrated_databases import databases_key, kinds_key

GROUP_ID, RUNNING_ID, CHILD_ID = 2, 7, 9
#: our scan looks this far ahead, and may be in progress when the lock is taken
AHEAD_MS = 5_000 + 1_000
HELD_MS = 9_000
#: rows of a Java admin, without the added columns
WRITTEN_BY_JAVA = (
    "INSERT INTO xxl_job_log (job_group, job_id, trigger_time, trigger_code, handle_code) VALUES (2, 7,"
    " now(), 0, 0)",
    "INSERT INTO xxl_job_user (username, password, role)"
    " VALUES ('java', '363c1f23d1ba2350e2809e560ec6ae0b', 1)",  # java-password
    "INSERT INTO xxl_job_group (app_name, title, address_type) VALUES ('java-made', 'Java', 0)",
    "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time)"
    " VALUES ('EXECUTOR', 'recorder', 'http://127.0.0.1:3/', now())",
    "INSERT INTO xxl_job_logglue (job_id, glue_type, glue_source, glue_remark) VALUES (8, 'GLUE_SHELL',"
    " 'true', 'third version')",
    "INSERT INTO xxl_job_info (job_group, job_desc, schedule_type, glue_type) VALUES (2, 'made by Java',"
    " 'NONE', 'BEAN')",
)


@pytest.fixture
def adopted(request: pytest.FixtureRequest, clusters: list[Cluster], tmp_path: Path) -> Cluster:
    """A cluster on the database of a 2.4.1 installation, or of a given script, not upgraded yet."""
    kinds = [kind for kind in ("mariadb", "mysql") if kind in request.config.stash[kinds_key]]
    if not kinds:
        pytest.skip("the original has MySQL databases only")
    kept = {"XXL_JOB_LOG_RETENTION_DAYS": "0"}  # the rows are older than the default retention
    made = Cluster(tmp_path, request.config.stash[databases_key].empty(kinds[0]), kept)
    run_script(made.database_url, getattr(request, "param", "xxl_job_2_4_1.sql"))
    clusters.append(made)
    return made


def upgrade(cluster: Cluster) -> None:
    """Run the upgrade command."""
    program = cluster.programs.start(
        "upgrade", [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"], cluster.environ
    )
    assert program.process.wait(60) == 0, program.output


def test_it_is_upgraded_in_place_and_works(adopted: Cluster) -> None:
    assert adopted.start("early", "wsgi.py").process.wait(60) == 2
    assert re.search("run: .* db upgrade", adopted.programs["early"].output)
    upgrade(adopted)
    upgrade(adopted)  # changes nothing
    console = adopted.start_console(wait=False)
    adopted.start_recorder()
    adopted.await_console(console)
    wait_for(console, lambda: "executor registered" in console.output, "an executor registers")
    adopted.start_workers()  # at once they run what is due

    # the running job continues and records what it skipped since the original was stopped
    runs = adopted.console.await_runs(GROUP_ID, RUNNING_ID, 3, 60)
    assert {
        (run["triggerCode"], run["handleCode"], run["executorParam"]) for run in runs if run["id"] > 104
    } == {(200, 200, "from 2.4.1")}
    adopted.console.await_runs(GROUP_ID, CHILD_ID, 2, 60)
    (skip,) = adopted.select("SELECT * FROM xxl_job_skip WHERE job_id = 7 AND reason = 'misfire'")
    assert (skip["from_ms"], skip["skipped"]) == (1_714_557_600_000, 10_000)
    adopted.console.stop(RUNNING_ID)

    # existing rows are kept, and their work is not repeated
    old = {run["id"]: run for run in adopted.console.runs(GROUP_ID, RUNNING_ID)}
    assert (old[101]["handleCode"], old[102]["handleCode"], old[102]["handleMsg"]) == (
        200,
        500,
        "told to fail",
    )
    assert old[101]["triggerTime"] == "2024-05-01T09:59:57.000+00:00"
    assert old[102]["alarmStatus"] == 2
    assert adopted.console.job(GROUP_ID, 8)["glueSource"] == "#!/bin/bash\necho 你好\n"
    assert (
        len(adopted.select("SELECT id FROM xxl_job_registry WHERE registry_value = 'http://127.0.0.1:1/'"))
        <= 1
    )
    page = adopted.console.http.get(
        f"{adopted.console.address}/joblog/logDetailPage", params={"id": 102}, timeout=20
    )
    assert page.status_code == 200
    assert "<script>alert(1)" not in page.text


@pytest.mark.extensive
@pytest.mark.parametrize("adopted", ["xxl_job_2_2_0.sql"], indirect=True)
def test_a_database_of_2_2_is_adopted_and_works(adopted: Cluster) -> None:
    """By default tests/test_adopting_2_2.py shows what becomes of its rows."""
    migrate(adopted.database_url)
    adopted.await_console(adopted.start_console(wait=False))
    adopted.start_recorder()
    eventually(
        lambda: "http://127.0.0.1:1/" not in adopted.console.await_addresses(GROUP_ID),
        60,
        "the executor is known",
    )
    adopted.start_workers()
    runs = adopted.console.await_runs(GROUP_ID, RUNNING_ID, 2, 60)
    assert {
        (run["triggerCode"], run["handleCode"], run["executorParam"]) for run in runs if run["id"] > 101
    } == {(200, 200, "from 2.2.0")}
    adopted.console.stop(RUNNING_ID)

    script = adopted.console.job(GROUP_ID, 8)
    assert (script["scheduleType"], script["scheduleConf"], script["misfireStrategy"]) == (
        "CRON",
        "0 0 3 * * ?",
        "DO_NOTHING",
    )
    adopted.console.post("/jobinfo/update", **script | {"scheduleConf": "0 0 4 * * ?"})
    assert adopted.console.job(GROUP_ID, 8)["scheduleConf"] == "0 0 4 * * ?"
    assert adopted.console.add_job(adopted.console.add_group("added-here")) > 9
    for path in ("/", "/jobinfo", "/jobinfo/7", "/jobgroup", f"/jobgroup/{GROUP_ID}", "/joblog"):
        page = adopted.console.http.get(f"{adopted.console.address}{path}", timeout=20, allow_redirects=False)
        assert page.status_code == 200, path


@pytest.mark.extensive
def test_old_passwords_are_accepted_and_rehashed(adopted: Cluster) -> None:
    migrate(adopted.database_url)
    adopted.await_console(adopted.start_console(wait=False))
    operator = Console(adopted.console.address)
    operator.login("nightly-operator", "operator")
    assert [
        row["id"]
        for row in operator.ask("/jobinfo/pageList", jobGroup=2, triggerStatus=-1, start=0, length=10)["data"]
    ] == [9, 8, 7]
    wrong = Console(adopted.console.address).ask("/login", userName="operator", password="nightly-operator ")
    assert wrong["code"] == 500
    stored = {
        row["username"]: row["password"]
        for row in adopted.select("SELECT username, password FROM xxl_job_user")
    }
    assert all(password.startswith("$argon2id$") for password in stored.values()), stored


def test_with_a_java_admin_its_users_can_still_log_in_there(adopted: Cluster) -> None:
    migrate(adopted.database_url)
    adopted.settings["XXL_JOB_SHARED_WITH_JAVA"] = "true"
    adopted.await_console(adopted.start_console(wait=False))
    (admin,) = adopted.select("SELECT password FROM xxl_job_user WHERE username = 'admin'")
    assert re.fullmatch("[0-9a-f]{32}", admin["password"])
    unreadable = {"scheduleType": "FIX_DELAY", "scheduleConf": "5"}
    assert (
        adopted.console.ask("/jobinfo/update", **adopted.console.job(GROUP_ID, 9) | unreadable)["code"] == 500
    )
    with adopted.engine().begin() as connection:
        for statement in WRITTEN_BY_JAVA:
            connection.execute(text(statement))
    Console(adopted.console.address).login("java-password", "java")


@contextmanager
def java_admin_scans(cluster: Cluster) -> Iterator[None]:
    """Hold the schedule lock as a scanning Java admin does."""
    with cluster.engine().connect() as connection, connection.begin():
        connection.execute(text("SELECT * FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE"))
        yield


@pytest.mark.extensive
def test_a_scanning_java_admin_blocks_our_scan(adopted: Cluster) -> None:
    """By default tests/acceptance/test_nodes.py holds the lock, which blocks all nodes."""
    migrate(adopted.database_url)
    adopted.settings["XXL_JOB_SHARED_WITH_JAVA"] = "true"
    console = adopted.start_console(wait=False)
    adopted.start_recorder()
    workers = adopted.start_workers()
    wait_for(console, adopted.console.answers, "it answers")
    eventually(lambda: len(instants(adopted)) >= 2, 60, "the job fires")
    with java_admin_scans(adopted):
        held_ms = now_ms()
        eventually(lambda: now_ms() > held_ms + HELD_MS, 60)
        assert max(instants(adopted)) <= held_ms + AHEAD_MS
        assert max(planned(adopted)) <= held_ms + AHEAD_MS
    eventually(
        lambda: max(instants(adopted)) > held_ms + HELD_MS, 30, "firing goes on after the Java admin's scan"
    )
    assert not workers.has_ended
    rows = instants(adopted)
    gaps = {later - earlier for earlier, later in zip(rows, rows[1:], strict=False)}
    assert gaps == {1_000}, "no instant was lost or doubled while the scan was blocked"


def instants(cluster: Cluster) -> list[int]:
    rows = cluster.select(
        "SELECT fire_time FROM xxl_job_log WHERE job_id = 7 AND fire_time IS NOT NULL ORDER BY fire_time"
    )
    return [row["fire_time"] for row in rows]


def planned(cluster: Cluster) -> list[int]:
    return [
        0,
        *(
            row["due_time"]
            for row in cluster.select("SELECT due_time FROM xxl_job_fire WHERE trigger_type = 'CRON'")
        ),
    ]
