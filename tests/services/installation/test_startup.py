"""Start-up: checks and initial rows before the console serves."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import ResourceClosedError

from app.database.engine import bind_engine, read_scope, session_scope, unbind_engine
from app.database.opening import check_database
from app.domain.access import stored_passwords
from app.domain.access.permissions import system_actor
from app.domain.enums import AddressType, TriggerStatus
from app.errors import NotConfigured
from app.models.group import Group
from app.models.job import Job
from app.models.lock import SCHEDULE_LOCK, Lock
from app.models.user import User
from app.services.accounts import passwords
from app.services.installation import demo, preconditions, startup
from app.settings.config import Config
from app.settings.home import first_password
from app.store.accounts import users
from tests.support.databases import migrate
from tests.support.factories import all_rows, make_group, only_row
from tests.support.plan import every_database

pytestmark = every_database

NOW = 1_714_530_000_000
MD5 = "e10adc3949ba59abbe56e057f20f883e"


def admin() -> User:
    with read_scope() as session:
        user = users.find_by_name(session, "admin")
        assert user is not None
        session.expunge(user)
        return user


def test_the_first_start_creates_an_administrator_with_a_stored_password(
    database: str, config: Config
) -> None:
    assert startup.ensure_admin(config, now_ms=NOW)
    assert not startup.ensure_admin(config, now_ms=NOW)
    file = config.home / "admin_password"
    assert file.stat().st_mode & 0o777 == 0o600
    assert passwords.verify(admin().password, file.read_text().strip())
    assert stored_passwords.must_change(admin().password)
    assert admin().is_admin


def test_a_configured_first_password_need_not_be_changed(database: str, config: Config) -> None:
    configured = replace(config, admin_password="given-secret-1")
    startup.ensure_admin(configured, now_ms=NOW)
    assert passwords.verify(admin().password, "given-secret-1")
    assert not stored_passwords.must_change(admin().password)
    assert not (config.home / "admin_password").exists()


def test_no_administrator_is_created_if_users_exist(database: str, config: Config) -> None:
    with session_scope() as session:
        session.add(User(username="somebody", password="x", role=0))
    assert not startup.ensure_admin(config, now_ms=NOW)


def test_adopted_hashes_are_wrapped_once(database: str, config: Config) -> None:
    with session_scope() as session:
        session.add(User(username="admin", password=MD5, role=1))
        session.add(User(username="other", password=passwords.hash_password(first_password(config)), role=0))
    assert startup.wrap_adopted_hashes(replace(config, shared_with_java=True)) == 0
    assert admin().password == MD5
    assert startup.wrap_adopted_hashes(config) == 1
    assert startup.wrap_adopted_hashes(config) == 0
    assert passwords.verify(admin().password, "123456")
    assert not passwords.verify(admin().password, MD5)


def test_the_lock_row_is_created_if_missing(database: str, config: Config) -> None:
    with session_scope() as session:
        session.execute(text("DELETE FROM xxl_job_lock"))
    startup.prepare(config)
    with read_scope() as session:
        assert session.get(Lock, SCHEDULE_LOCK) is not None


def test_a_new_database_has_the_sample_group_and_a_stopped_job(database: str, config: Config) -> None:
    startup.prepare(config)
    startup.prepare(config)
    group, job = only_row(Group), only_row(Job)
    assert (group.id, group.app_name, group.address_type, group.addresses) == (
        1,
        "xxl-job-executor-sample",
        AddressType.AUTOMATIC,
        [],
    )
    assert (job.id, job.job_group, job.trigger_status) == (1, 1, TriggerStatus.STOPPED)
    assert (job.author, job.schedule_type, job.schedule_conf, job.misfire_strategy) == (
        "XXL",
        "CRON",
        "0 0 0 * * ? *",
        "DO_NOTHING",
    )
    assert (job.executor_handler, job.executor_param, job.executor_route_strategy) == (
        "demoJobHandler",
        "",
        "FIRST",
    )
    with session_scope() as session:
        assert demo.seed(session, actor=system_actor("demo"), clock=lambda: NOW) == len(demo.JOBS), (
            "also with the sample job"
        )
        assert demo.seed(session, actor=system_actor("demo"), clock=lambda: NOW) == 0
    assert only_row(Group).id == 1


def test_a_database_in_use_gets_no_sample(database: str, config: Config) -> None:
    make_group()
    startup.prepare(config)
    assert len(all_rows(Group)) == 1
    assert all_rows(Job) == []


def test_addresses_that_can_never_be_called_are_reported(
    database: str, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    make_group(app_name="fine", address_list="http://127.0.0.1:9999/")
    make_group(app_name="adopted", address_list="http://127.0.0.1:81/,http://8.8.8.8:9999/")
    networks = Config.from_env({}, dotenv=None).executor_networks
    startup.warn_of_addresses(replace(config, executor_networks=networks))
    assert [record.getMessage() for record in caplog.records] == [
        "executor address unusable app_name=adopted address=http://127.0.0.1:81/"
        " reason=port 81 is not allowed; 80, 443 and 1024 to 65535 are",
        "executor address unusable app_name=adopted address=http://8.8.8.8:9999/"
        " reason=it is outside the networks of XXL_JOB_EXECUTOR_NETWORKS",
    ]
    caplog.clear()
    make_group(app_name="more", address_list=",".join(f"http://8.8.8.{number}:9999/" for number in range(20)))
    startup.warn_of_addresses(replace(config, executor_networks=networks))
    assert len(caplog.records) == startup.ADDRESSES_NAMED + 1
    assert caplog.records[-1].getMessage() == "executor addresses unusable count=22"


def test_a_database_without_tables_is_reported_with_the_command(empty_database: str, config: Config) -> None:
    engine = bind_engine(replace(config, database_url=empty_database))
    with pytest.raises(NotConfigured, match=r"no tables .*run: .* db upgrade"):
        preconditions.check_schema(engine)
    unbind_engine()


@pytest.mark.parametrize(
    ("revision", "expected_text"), [("0001", "db upgrade"), ("0010", "db upgrade"), ("9999", "newer schema")]
)
def test_another_schema_is_reported(
    empty_database: str, config: Config, revision: str, expected_text: str
) -> None:
    migrate(empty_database)
    engine = create_engine(empty_database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    with pytest.raises(NotConfigured, match=expected_text):
        preconditions.check_schema(engine)
    engine.dispose()


@pytest.mark.databases("sqlite")
def test_a_read_only_folder_of_the_database_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root can write everywhere, so a folder stands for the file that cannot be opened."""
    monkeypatch.setattr("app.services.installation.preconditions.os.access", lambda _path, _mode: False)
    expected_text = f"unable to open database file; {tmp_path.parent} is not writable"
    with pytest.raises(NotConfigured, match=re.escape(expected_text)):
        preconditions.check_schema(create_engine(f"sqlite:///{tmp_path}"))


@pytest.mark.databases("sqlite")
def test_a_database_that_goes_away_at_the_first_connection_is_one_line(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Mock(side_effect=ResourceClosedError("This Connection is closed"))
    monkeypatch.setattr(DefaultDialect, "initialize", lost)
    with pytest.raises(NotConfigured, match="cannot be opened: connection lost"):
        check_database(replace(config, database_url=database))
    with pytest.raises(NotConfigured, match="the schema cannot be read: connection lost"):
        preconditions.check_schema(create_engine(database))
