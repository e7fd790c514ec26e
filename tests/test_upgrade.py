"""Upgrading a schema: two at once, broken off, refused; each failure is one line and exit code 2."""

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from click.testing import CliRunner, Result
from sqlalchemy import Engine, make_url, text

from app.clock import DAY_MS
from app.commands.flask_app import create_command_app
from app.commands.main import duetime
from app.errors import NotConfigured
from app.services.installation.schema import MIGRATIONS, RESTORING, Revisions
from app.services.installation.upgrade import KEEPS_FAILED, KEEPS_NONE, UpgradeReport, upgrade
from app.settings.config import Config
from app.store.copies import upgrade_lock as upgrade_lock_module
from app.store.copies.schema import find_former_tables, find_revision
from app.store.copies.upgrade_lock import IDLE_S, upgrade_lock
from tests.support.databases import ROOT
from tests.support.factories import T0
from tests.support.migrations import execute, make_2_4_1, migrate_to

#: seconds for an upgrade in a process of its own, on a loaded machine
TIMEOUT_S = 120
#: an upgrade in a process of its own
ALONE = "import sys; from app.services.installation.upgrade import upgrade; upgrade(sys.argv[1])"
#: one that is killed before the n-th change of the schema
KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from app.services.installation.upgrade import upgrade
left = int(sys.argv[2])
@event.listens_for(Engine, "before_cursor_execute")
def count(connection, cursor, sql, *rest):
    global left
    left -= sql.lstrip().startswith(("CREATE", "ALTER", "DROP", "INSERT", "UPDATE"))
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
upgrade(sys.argv[1])
"""


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def flask_db(command: str, engine: Engine, home: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run a command of ``flask --app wsgi db``."""
    monkeypatch.setenv("XXL_JOB_HOME", str(home))
    monkeypatch.setenv("XXL_JOB_DATABASE_URL", url_of(engine))
    return create_command_app(Config.from_env()).test_cli_runner().invoke(args=["db", command])


def refusal_of(exit_code: int, errors: str) -> str:
    """Return the line with which an upgrade was refused."""
    lines = [line for line in errors.splitlines() if not line.startswith("INFO")]
    assert (exit_code, len(lines)) == (2, 1), errors
    return lines[0]


def revision(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.scalar(text("SELECT version_num FROM alembic_version")))


def test_two_upgrades_at_once_end_well(engine: Engine) -> None:
    command = [sys.executable, "-c", ALONE, url_of(engine)]
    programs = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(2)]
    errors = [program.communicate(timeout=TIMEOUT_S)[1] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], errors
    assert revision(engine) == Revisions().newest


def test_the_migrations_are_read_as_alembic_does() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    revisions = Revisions()
    assert revisions.newest == scripts.get_current_head()
    for script in scripts.walk_revisions():
        revisions.require_known(script.revision)
        for replaced in getattr(script.module, "REPLACES", ()):
            revisions.require_known(replaced)


def test_an_upgrade_waits_for_another_one_and_gives_up(engine: Engine) -> None:
    with (
        engine.connect() as other,
        upgrade_lock(other),
        pytest.raises(NotConfigured, match="did not end within"),
    ):
        upgrade(url_of(engine), wait_s=0.3)
    upgrade(url_of(engine), wait_s=0.3)
    with engine.connect() as other, upgrade_lock(other):
        upgrade(url_of(engine), wait_s=0.3)  # nothing to do: waits for no one


@pytest.mark.databases("mariadb", "postgresql")
def test_the_holder_of_the_lock_may_be_idle_for_hours(engine: Engine) -> None:
    is_mysql = engine.dialect.name == "mysql"
    limit = "SET SESSION wait_timeout = 5" if is_mysql else "SET idle_session_timeout = '5s'"
    limited = "SELECT @@SESSION.wait_timeout" if is_mysql else "SHOW idle_session_timeout"
    with engine.connect() as connection:
        connection.execute(text(limit))
        connection.commit()
        with upgrade_lock(connection):
            assert str(connection.scalar(text(limited))) == (str(IDLE_S) if is_mysql else "0")


@pytest.mark.databases("mariadb")  # whose changes of the schema are not undone
def test_an_upgrade_killed_halfway_continues(engine: Engine) -> None:
    command = [sys.executable, "-c", KILLED, url_of(engine), "37"]
    assert subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S).returncode == -signal.SIGKILL
    upgrade(url_of(engine))
    assert revision(engine) == Revisions().newest


@pytest.mark.parametrize(
    ("found", "expected"),
    [("9999_later", r"newer schema \(9999_later\).*start the newer program"), (RESTORING, "--replace")],
)
def test_a_schema_that_no_upgrade_starts_from_is_refused(engine: Engine, found: str, expected: str) -> None:
    upgrade(url_of(engine))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": found})
    with pytest.raises(NotConfigured, match=expected):
        upgrade(url_of(engine))
    assert revision(engine) == found


@pytest.mark.databases("postgresql")
def test_the_encoding_of_the_environment_is_not_that_of_the_upgrade(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PGCLIENTENCODING", "SQL_ASCII")
        upgrade(url_of(engine))
    assert revision(engine) == Revisions().newest


@pytest.mark.databases("sqlite")
def test_what_the_operator_has_to_mend_is_one_line_and_exit_code_2(engine: Engine, tmp_path: Path) -> None:
    take_a_name(engine)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB_")}
    ended = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "wsgi", "db", "upgrade"],  # as the unit of the console does
        cwd=ROOT,
        env=clean | {"XXL_JOB_HOME": str(tmp_path), "XXL_JOB_DATABASE_URL": url_of(engine)},
        text=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    line = refusal_of(ended.returncode, ended.stderr)
    assert re.search(r"the schema cannot be upgraded: .*xxl_job_info.*upgrade again", line), line


@pytest.mark.databases("mariadb", "postgresql")
def test_a_change_does_not_wait_behind_a_long_transaction(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(url_of(engine))
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE xxl_job_log DROP COLUMN killed"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0005_security'"))
    monkeypatch.setattr(upgrade_lock_module, "TABLE_WAIT_S", 1)
    with engine.connect() as reader:
        reader.execute(text("SELECT * FROM xxl_job_log")).all()
        with pytest.raises(NotConfigured, match=r"the schema cannot be upgraded: .*(?i:lock).*upgrade again"):
            upgrade(url_of(engine))
    upgrade(url_of(engine))
    assert revision(engine) == Revisions().newest


def take_a_name(engine: Engine) -> None:
    """Give another thing the name of a table."""
    with engine.begin() as connection:
        connection.execute(text("CREATE VIEW xxl_job_info AS SELECT 1 AS id"))


@pytest.mark.databases("mariadb", "postgresql")
def test_a_user_without_rights_is_told_so(engine: Engine) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "mysql":
            name = engine.url.database
            connection.exec_driver_sql("CREATE USER IF NOT EXISTS reader@'127.0.0.1'")
            connection.exec_driver_sql(f"GRANT SELECT ON {name}.* TO reader@'127.0.0.1'")
        else:
            connection.exec_driver_sql("DROP ROLE IF EXISTS reader")
            connection.exec_driver_sql("CREATE ROLE reader LOGIN")
    url = make_url(engine.url).set(username="reader").render_as_string(hide_password=False)
    with pytest.raises(NotConfigured, match=r"the schema cannot be upgraded: .*(denied|permission)"):
        upgrade(url)


@pytest.mark.databases("mariadb", "postgresql")
def test_an_absent_database_is_named_in_one_line(engine: Engine) -> None:
    url = make_url(engine.url).set(database="nowhere").render_as_string(hide_password=False)
    with pytest.raises(NotConfigured, match="nowhere"):
        upgrade(url)


@pytest.mark.databases("sqlite")
def test_a_folder_that_cannot_be_locked_is_named(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")  # as on NFS

    monkeypatch.setattr(upgrade_lock_module.fcntl, "flock", refuse)
    with pytest.raises(NotConfigured, match="cannot be locked .*SQLite needs a local disk"):
        upgrade(url_of(engine))


UNIQUE_REGISTRATIONS = (
    "DELETE FROM xxl_job_registry",
    "DROP INDEX i_g_k_v ON xxl_job_registry",
    "CREATE UNIQUE INDEX i_g_k_v ON xxl_job_registry (registry_group, registry_key, registry_value)",
)
TOKEN = "ALTER TABLE xxl_job_user ADD COLUMN token varchar(100)"
BIG_IDS = "ALTER TABLE xxl_job_registry MODIFY COLUMN id bigint NOT NULL AUTO_INCREMENT"
NEWEST = Revisions().newest.partition("_")[0]


def report_of(engine: Engine, *, now_ms: int = T0, **sources: str) -> tuple[str, list[str]]:
    """Upgrade the database; return the summary and the warnings."""
    config = Config(database_url=url_of(engine), time_zone="Asia/Shanghai", sources=sources)
    warnings: list[str] = []
    report = UpgradeReport(config, now_ms=now_ms, warn=warnings.append)
    upgrade(config.database_url, look=report.look)
    return report.summary, warnings


def test_an_adoption_is_summed_up(engine: Engine) -> None:
    make_2_4_1(engine)
    execute(
        engine, "INSERT INTO xxl_job_log (job_group, job_id, trigger_code, handle_code) VALUES (1, 1, 0, 0)"
    )
    assert report_of(engine) == (f"adopted XXL-JOB 2.3 to 2.4: 1 job, 2 runs; schema {NEWEST}", [])
    assert report_of(engine) == (f"nothing to do; schema {NEWEST}", [])


@pytest.mark.parametrize("has_jobs", [True, False])
def test_an_upgrade_says_what_the_log_archive_keeps(engine: Engine, has_jobs: bool) -> None:
    if has_jobs:
        make_2_4_1(engine)
    report = UpgradeReport(Config(database_url=url_of(engine)), now_ms=T0, warn=print)
    upgrade(url_of(engine), look=report.look)
    assert report.notice == (KEEPS_NONE if has_jobs else KEEPS_FAILED)
    stored = "SELECT value FROM xxl_job_setting WHERE name = 'log_archive'"
    with engine.connect() as connection:
        assert connection.scalar(text(stored)) == ("off" if has_jobs else "failed")


def test_other_upgrades_are_summed_up(engine: Engine) -> None:
    migrate_to(engine, "0011")
    assert report_of(engine)[0] == f"upgraded from schema 0011; schema {NEWEST}"


def test_a_new_installation_is_summed_up(engine: Engine) -> None:
    assert report_of(engine)[0] == f"created the tables; schema {NEWEST}"


@pytest.mark.databases("mariadb")
@pytest.mark.parametrize(
    ("statements", "releases"),
    [
        (["ALTER TABLE xxl_job_info ADD COLUMN job_cron varchar(128)"], "2.2"),
        ([], "2.3 to 2.4"),
        (UNIQUE_REGISTRATIONS, "2.5 to 3.1"),
        ([*UNIQUE_REGISTRATIONS, TOKEN], "3.2 to 3.3"),
        ([*UNIQUE_REGISTRATIONS, TOKEN, BIG_IDS], "3.4"),
    ],
)
def test_the_releases_of_adopted_tables_are_named(
    engine: Engine, statements: Sequence[str], releases: str
) -> None:
    make_2_4_1(engine)
    execute(engine, *statements)
    with engine.connect() as connection:
        former = find_former_tables(connection)
    assert former is not None
    assert former.releases == releases


def test_tables_are_looked_at_under_the_lock_only(engine: Engine) -> None:
    looks: list[str | None] = []
    with (
        engine.connect() as other,
        upgrade_lock(other),
        pytest.raises(NotConfigured, match="did not end within"),
    ):
        upgrade(url_of(engine), wait_s=0.3, look=lambda connection: looks.append(find_revision(connection)))
    assert looks == []


LATER_MS = T0 + Config().log_retention_days * DAY_MS


def test_runs_that_the_workers_will_delete_are_named_before_an_adoption(engine: Engine) -> None:
    make_2_4_1(engine)
    (warning,) = report_of(engine, now_ms=LATER_MS)[1]
    assert "older than 30 days" in warning
    assert report_of(engine, now_ms=LATER_MS)[1] == [], "it was adopted before"


def test_runs_are_not_named_if_how_long_to_keep_them_was_decided(engine: Engine) -> None:
    make_2_4_1(engine)
    assert report_of(engine, now_ms=LATER_MS, XXL_JOB_LOG_RETENTION_DAYS="environment")[1] == []


@pytest.mark.databases("sqlite")
def test_an_adoption_prints_what_the_workers_will_delete(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_2_4_1(engine)
    ended = flask_db("upgrade", engine, tmp_path, monkeypatch)
    assert (ended.exit_code, ended.stderr.count("XXL_JOB_LOG_RETENTION_DAYS")) == (0, 1)
    assert ended.stdout.startswith("adopted XXL-JOB 2.3 to 2.4: ")


@pytest.mark.databases("sqlite")
def test_other_commands_on_the_schema_do_not_print_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_2_4_1(engine)
    ended = flask_db("current", engine, tmp_path, monkeypatch)
    assert (ended.exit_code, "XXL_JOB_LOG_RETENTION_DAYS" in ended.output) == (0, False)


@pytest.mark.databases("sqlite")
def test_runs_that_cannot_be_read_are_one_line_and_exit_code_2(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE xxl_job_log (id integer)"))
    ended = flask_db("upgrade", engine, tmp_path, monkeypatch)
    assert "trigger_time" in refusal_of(ended.exit_code, ended.stderr)


@pytest.mark.databases("sqlite")
def test_the_command_prints_it_too(engine: Engine, tmp_path: Path) -> None:
    make_2_4_1(engine)
    path = tmp_path / "xxl-job.env"
    path.write_text(f"XXL_JOB_HOME={tmp_path}/home\nXXL_JOB_DATABASE_URL={url_of(engine)}\n")
    ended = CliRunner().invoke(duetime, ["--env-file", str(path), "db", "upgrade"])
    assert (ended.exit_code, ended.stderr.count("XXL_JOB_LOG_RETENTION_DAYS")) == (0, 1)
    assert ended.stdout.startswith("adopted XXL-JOB 2.3 to 2.4: ")
