"""Doctor: what it finds in the database, on every kind of it."""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.clock import DAY_MS, HOUR_MS, now_ms
from app.database.engine import bind_engine, bind_for_reading, read_scope, session_scope
from app.database.urls import sqlite_file
from app.domain.access.permissions import system_actor
from app.domain.calendars.drafts import CalendarDraft
from app.domain.enums import NodeKind, Role
from app.models.alarm import Alarm
from app.models.archive import LogArchive
from app.models.backfill import Backfill
from app.models.calendar import JobBlackout
from app.models.channel import AlarmChannel
from app.models.code import JobVersion
from app.models.job import Job
from app.models.node import Node
from app.models.registry import Registration
from app.models.user import User
from app.pipeline.sent_log_ids import SentLogIds
from app.services.accounts import passwords
from app.services.backups.last_backup import LastBackup, note_last
from app.services.backups.lost_commits import CommitWatch, settle_lost
from app.services.calendars.calendars import put_calendar
from app.services.doctor import executors
from app.services.doctor.examination import Examination, examine
from app.services.doctor.findings import Level
from app.services.installation import nodes
from app.settings.config import Config, MailConfig
from app.settings.home import access_tokens, secret_key
from app.settings.log_archive import ArchiveConfig
from executor_client.wire.version import VERSION
from tests.pipeline.round_steps import follow
from tests.services.backfills.backfill_steps import draft, minutely, start
from tests.support.factories import make_due_job, make_fire, make_group, make_job, make_log, remove, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.narrowed import changed_column
from tests.support.plan import every_database

EXECUTOR = "http://127.0.0.1:1111/"


@pytest.fixture
def installed(database: str, config: Config) -> Iterator[Config]:
    """An installation with its secrets, whose services are down."""
    access_tokens(config)
    secret_key(config)
    note_last(config, LastBackup(now_ms(), Path("/var/backups/one.backup")))
    if (file := sqlite_file(config.database_url)) is not None:  # as the services make it
        for each in file.parent.glob(f"{file.name}*"):
            each.chmod(0o600)
    yield replace(config, executor_networks=(ip_network("127.0.0.0/8"),))
    bind_engine(config)


def found_by(config: Config, check: str, *, probe: bool = False) -> list[str]:
    """Return what needs something, of one check."""
    examination = examine(config, probe=probe)
    assert examination.is_complete
    bind_engine(config)
    return [each.text for each in examination.findings if each.check == check and each.level is not Level.OK]


def add_node(kind: str, **changes: object) -> None:
    times = dict.fromkeys(("started_ms", "heartbeat_ms", "scanned_ms"), now_ms())
    save(Node(**{"name": "one", "kind": kind, "version": VERSION, **times, **changes}))


def add_nodes() -> None:
    add_node("console")
    add_node("workers")


@every_database
def test_an_orderly_installation(installed: Config) -> None:
    add_nodes()
    save(User(username="admin", password=passwords.hash_password("correct-horse-7"), role=Role.ADMIN))
    examination = examine(installed)
    assert [each for each in examination.findings if each.level is not Level.OK] == []
    assert examination.is_fine


def test_the_first_password_is_compared_with_that_of_its_user(installed: Config) -> None:
    add_nodes()
    stored = installed.home / "admin_password"
    save(User(username="admin", password=passwords.hash_password("correct-horse-7"), role=Role.ADMIN))
    assert found_by(installed, "passwords") == []
    stored.write_text("correct-horse-7\n")
    assert found_by(installed, "passwords") == [
        f"the first password of admin is still valid, and in {stored}"
    ]
    stored.write_text("another-horse-8\n")
    assert found_by(installed, "passwords") == [f"the password in {stored} is not valid"]


def test_the_token_is_compared_with_that_of_the_node_that_was_started_last(installed: Config) -> None:
    token = access_tokens(installed)[0]
    nodes.start(installed, NodeKind.CONSOLE, now_ms=now_ms())
    assert found_by(installed, "token") == []
    other = replace(installed, access_tokens=("0123456789abcdef",))
    assert "had another access token" in found_by(other, "token")[-1]
    shared = replace(installed, access_tokens=("0123456789abcdef", token))
    assert found_by(shared, "token") == ["two access tokens are valid: a change has not been ended"]


@every_database
def test_the_doctor_cannot_write(installed: Config) -> None:
    bind_for_reading(installed)
    with pytest.raises(DBAPIError), read_scope() as session:
        session.execute(text("DELETE FROM xxl_job_user"))


def test_nothing_is_created(tmp_path: Path) -> None:
    home = tmp_path / "home"
    examination = examine(Config(home=home, database_url=f"sqlite:///{home}/xxl_job.db"))
    assert not examination.is_complete
    assert "there is no database" in examination.findings[-1].text
    assert not home.exists()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql+pymysql://ann:secret-word@127.0.0.1:1/xxl", "ann:***@127.0.0.1:1"),
        ("postgresql+psycopg://ann@127.0.0.1:1/xxl?password=secret-word", "password=***"),
    ],
)
def test_an_unreachable_server_hides_its_password(url: str, shown: str, tmp_path: Path) -> None:
    examination = examine(Config(home=tmp_path, database_url=url))
    assert isinstance(examination, Examination)
    assert not examination.is_complete
    assert shown in examination.findings[-1].text
    assert "secret-word" not in str(examination)


def test_services_that_are_down(installed: Config) -> None:
    assert [line.partition(":")[0] for line in found_by(installed, "nodes")] == [
        "no workers process is alive",
        "no console process is alive",
    ]


def test_a_scheduler_that_hangs(installed: Config) -> None:
    """Its monitor goes on sending heartbeats."""
    add_node("console")
    add_node("workers", scanned_ms=now_ms() - 33_000)
    (hung,) = found_by(installed, "nodes")
    assert hung.startswith("no scheduler has scanned for 3")


def test_a_monitor_that_hangs(installed: Config) -> None:
    add_node("console")
    add_node("workers", heartbeat_ms=now_ms() - 60_000)
    hung, dead = found_by(installed, "nodes")
    assert hung.startswith("no workers process sends heartbeats, though a scheduler scans")
    assert dead.endswith("one (workers)")


def test_a_monitor_that_has_hung_for_days(installed: Config) -> None:
    add_node("console")
    add_node("workers", heartbeat_ms=now_ms() - 2 * DAY_MS)
    (hung,) = found_by(installed, "nodes")
    assert hung.startswith("no workers process sends heartbeats, though a scheduler scans")


@pytest.mark.parametrize("in_order", [True, False])
def test_workers_that_ended_a_moment_ago(installed: Config, in_order: bool) -> None:
    """Their last scan still counts as recent."""
    add_node("console")
    ended_ms = now_ms() - 6_000
    add_node("workers", heartbeat_ms=0 if in_order else ended_ms - 900, scanned_ms=ended_ms)
    assert found_by(installed, "nodes")[0] == "no workers process is alive: nothing is scheduled"


def test_nodes(installed: Config) -> None:
    add_nodes()
    add_node("workers", name="other", version="0.0.1")
    add_node("workers", name="dead", heartbeat_ms=now_ms() - 60_000)
    add_node("workers", name="fast", skew_ms=5_000, heartbeat_ms=now_ms() + 5_000)
    dead, version = found_by(installed, "nodes")
    assert dead.endswith("dead (workers)")
    assert version.endswith("other (workers): 0.0.1")
    assert "fast (workers) by 5000 ms" in found_by(installed, "clock")[0]


def test_nodes_of_different_zones(installed: Config) -> None:
    add_nodes()
    add_node("workers", name="other", time_zone="America/New_York")
    add_node("workers", name="same", time_zone="Etc/UTC")
    (zone,) = found_by(replace(installed, time_zone="UTC"), "nodes")
    assert zone.endswith("than this program (UTC): other (workers): America/New_York")


@pytest.mark.parametrize(
    ("accepted", "texts"), [(146, []), (145, ["the server accepts 145 connections, 2 nodes may open 146"])]
)
def test_connections(
    installed: Config, monkeypatch: pytest.MonkeyPatch, accepted: int, texts: list[str]
) -> None:
    monkeypatch.setattr("app.store.nodes.diagnosis.connections_max", lambda _session: accepted)
    for name in ("one", "two"):
        add_node("workers", name=name)
    assert found_by(replace(installed, threads=32), "database") == texts


def test_addresses_of_executors(installed: Config) -> None:
    addresses = f"{EXECUTOR},http://8.8.8.8:9999/"
    make_group(app_name="stale", address_type=0, address_list=addresses)
    beat = {"registry_group": "EXECUTOR", "capabilities": "", "boot_id": "", "update_time": now_ms()}
    save(Registration(registry_key="stale", registry_value="http://8.8.8.8:9999/", **beat))
    save(Registration(registry_key="unknown", registry_value=EXECUTOR, **beat))
    stale, refused, groupless = found_by(installed, "executors")
    assert stale.endswith(f"stale {EXECUTOR}")
    assert "stale http://8.8.8.8:9999/ (" in refused
    assert groupless.endswith("unknown")


def test_jobs_without_an_executor(installed: Config) -> None:
    due_ms, group_id = now_ms() + DAY_MS, make_group(app_name="empty", address_list="").id
    first = make_due_job(due_ms, job_group=group_id, job_desc="nightly").id
    lost = make_due_job(due_ms, job_group=4_711, job_desc="lost").id
    orphan, empty = found_by(installed, "jobs")
    assert orphan == f'each run of job {lost} "lost" fails: the executor group no longer exists'
    reason = "fails: no executor empty is online, none was ever seen"
    assert empty == f'each run of job {first} "nightly" {reason}'
    others = [make_due_job(due_ms, job_group=group_id, job_desc="other").id for _ in range(6)]
    texts = ", ".join(f'{job_id} "other"' for job_id in others[:4])
    empty = found_by(installed, "jobs")[1]
    assert empty == f'each run of jobs {first} "nightly", {texts} and 2 more {reason}'


@every_database
def test_adopted_jobs_with_day_rules_in_a_list(installed: Config) -> None:
    due_ms = now_ms() + DAY_MS
    workdays = make_due_job(due_ms, "CRON", "0 0 9 15W,1W * ?")
    last = make_due_job(due_ms, "CRON", "0 0 9 1,L * ?")
    for conf in ("0 0 9 1,15 * ?", "0 0 9 15W * ?", "0 0 9 ? * WED,FRI", "0 9 1,15 * *", "1,L"):
        make_due_job(due_ms, "CRON", conf)
    make_due_job(due_ms, "CRON", "0 0 9 1W,2W * ?", trigger_status=0)
    saved = make_due_job(due_ms, "CRON", "0 0 9 1W,3W * ?")
    save(JobVersion(job_id=saved.id, number=1, fields="{}"))
    (text,) = found_by(installed, "schedules")
    assert text.endswith(f": {workdays.id} (0 0 9 15W,1W * ?), {last.id} (0 0 9 1,L * ?)")


def test_jobs_whose_placeholders_a_java_admin_would_send(installed: Config) -> None:
    make_due_job(now_ms() + DAY_MS)
    filled = make_due_job(now_ms() + DAY_MS, fill_parameter=1)
    assert found_by(installed, "parameters") == []
    (text,) = found_by(replace(installed, shared_with_java=True), "parameters")
    assert text == f"jobs whose parameter is filled in, which a Java admin does not: {filled.id}"


def test_jobs_that_run_all_they_have_missed_beside_a_java_admin(installed: Config) -> None:
    job = make_due_job(now_ms() + DAY_MS, misfire_strategy="RUN_ALL")
    assert found_by(installed, "missed runs") == []
    (text,) = found_by(replace(installed, shared_with_java=True), "missed runs")
    assert text == f"jobs that run all they have missed, of which a Java admin runs nothing: {job.id}"


def test_limits_beside_a_java_admin_and_long_waits(installed: Config) -> None:
    job = make_due_job(now_ms() + DAY_MS, max_running=1)
    group = make_group(app_name="limited", max_running=3)
    make_fire(job, due_time=now_ms() - 2 * DAY_MS, state="WAITING")
    make_fire(make_due_job(now_ms() + DAY_MS), due_time=now_ms(), state="WAITING")
    (wait,) = found_by(installed, "limits")
    assert wait == f"runs wait for a limit for more than a day, of jobs {job.id}"
    beside, _ = found_by(replace(installed, shared_with_java=True), "limits")
    owners = f"job {job.id}, executor group {group.id}"
    assert beside == f"limits that runs of a Java admin do not keep, of {owners}"


def test_the_log_archive_names_what_the_store_does_not_take(installed: Config, tmp_path: Path) -> None:
    row = {"job_id": 1, "job_group": 1, "folder": "2026/07/01/1/1", "next_ms": now_ms() - HOUR_MS}
    full = save(LogArchive(log_id=1, state="open", reason="disk_full", **row))
    assert found_by(replace(installed, archive=ArchiveConfig(mode="off")), "log archive") == []
    on = replace(installed, archive=ArchiveConfig(mode="all", url=f"file://{tmp_path}"))
    (refused,) = found_by(on, "log archive")
    assert refused.startswith("the store did not take 1 logs when it was asked last")
    remove(full)
    save(LogArchive(log_id=2, state="ending", **row))
    assert found_by(on, "log archive") == ["1 logs wait to be fetched, the oldest for 60 minutes"]
    away = ArchiveConfig(mode="all", url="s3://logs?endpoint=http://127.0.0.1:1&access_key=a&secret_key=b")
    assert found_by(replace(installed, archive=away), "log archive")[0].startswith(
        "the store does not answer"
    )


def test_old_blackouts_and_what_a_java_admin_ignores(installed: Config) -> None:
    job = make_due_job(now_ms() + DAY_MS, calendar='{"name": "cn"}')
    made = {"created_ms": now_ms(), "reason": "moving"}
    old = save(JobBlackout(from_ms=now_ms() - 8 * DAY_MS, **made))
    fresh = save(JobBlackout(from_ms=now_ms() - DAY_MS, **made))
    (text,) = found_by(installed, "blackouts")
    assert text == f"blackouts without an end are on for more than 7 days: {old.id} (moving)"
    *_, beside = found_by(replace(installed, shared_with_java=True), "blackouts")
    names = f"blackout {old.id}, blackout {fresh.id}, calendar of job {job.id}"
    assert beside == f"what runs of a Java admin do not keep: {names}"


def test_calendars_in_use_that_do_not_know_the_coming_days(installed: Config) -> None:
    with session_scope() as session:
        for name in ("cn", "unused"):
            entered = CalendarDraft(valid_until="2020-12-31")
            put_calendar(session, name, entered, actor=system_actor("ann"), clock=now_ms)
    assert found_by(installed, "calendars") == []
    make_due_job(now_ms() + DAY_MS, calendar='{"name": "cn"}')
    assert found_by(installed, "calendars") == [
        "calendars do not know the coming days: cn (until 2020-12-31)"
    ]
    lost = make_due_job(now_ms() + DAY_MS, calendar='{"name": "CN"}')
    *_, text = found_by(installed, "calendars")
    assert text.endswith(f"the calendars that they name do not exist: {lost.id} (CN)")


def test_backfills_that_do_not_go_on(installed: Config) -> None:
    job = minutely()
    first, second = (start(job, draft(number, number), now_ms=now_ms()) for number in (2, 1))
    assert found_by(installed, "backfills") == []
    with session_scope() as session:
        paused = session.get_one(Backfill, first)
        paused.state, paused.reason = "paused", '{"msgid": "The job was deleted", "params": {}}'
        session.get_one(Backfill, second).updated_ms = now_ms() - DAY_MS - 1
    *_, reason, still, beside = found_by(replace(installed, shared_with_java=True), "backfills")
    assert reason == f"backfills were paused, and not by a user: {first} (The job was deleted)"
    assert still == f"backfills have ended no run for more than a day: {second}"
    assert beside == f"backfills beside a Java admin, which knows none: {second}, {first}"


def test_circles_of_jobs_and_predecessors_that_never_run(installed: Config) -> None:
    assert found_by(installed, "rounds") == []
    off = make_job(schedule_type="CRON", schedule_conf="0 0 3 * * ?")
    first = make_job()
    last = follow(off, first)
    second = make_job(child_jobid=str(last.id))
    with session_scope() as session:
        session.get_one(Job, last.id).child_jobid = str(second.id)
    remove(first)
    circle, gone, silent = found_by(installed, "rounds")
    assert circle == f"jobs start each other forever: {last.id} → {second.id} → {last.id}"
    assert gone == f"jobs run after jobs that are gone, which counts as not run: {last.id} (after {first.id})"
    waits = f"wait until their deadlines: {last.id} (after {off.id})"
    assert silent == f"jobs run after jobs whose schedule is off, and {waits}"
    *_, beside = found_by(replace(installed, shared_with_java=True), "rounds")
    assert beside == f"jobs run after others, which runs of a Java admin do not start: {last.id}"


def test_many_groups_without_an_executor_are_counted(installed: Config) -> None:
    for number in range(executors.EMPTY_NAMED + 3):
        make_due_job(now_ms() + DAY_MS, job_group=make_group(app_name=f"empty-{number}", address_list="").id)
    found = found_by(installed, "jobs")
    assert len(found) == executors.EMPTY_NAMED + 1
    names = "empty-5, empty-6, empty-7"
    assert found[-1] == f"each run of their jobs fails, too: no executor of {names} is online"


def test_alarms_that_reach_no_one(installed: Config) -> None:
    job = make_due_job(now_ms() + DAY_MS, job_desc="nightly")
    mailed = make_due_job(now_ms() + DAY_MS, job_desc="mailed", alarm_email="ann@example.com")
    save(Alarm(log_id=1, job_id=1, reason="failed", state="FAILED", created_ms=now_ms() - 5))
    save(Alarm(log_id=2, job_id=1, reason="failed", state="PENDING", created_ms=now_ms() - DAY_MS))
    silent, unmailed, failed, late = found_by(installed, "alarms")
    assert silent == (
        f'no one is notified of failures of job {job.id} "nightly": no alarm mail and no channel is set'
    )
    assert unmailed == f'no alarm mail is sent for job {mailed.id} "mailed": no mail server is set'
    assert failed == "1 alarm of the last day could not be delivered to all targets"
    assert late == "1 alarm waiting for more than 10 min"
    with_mail = replace(installed, mail=MailConfig(host="mail"))
    assert len(found_by(with_mail, "alarms")) == 3
    save(AlarmChannel(name="all", kind="ntfy", settings="{}", for_all=1))
    assert silent not in found_by(installed, "alarms")


@every_database
def test_escalations_to_channels_that_are_gone(installed: Config) -> None:
    escalation = '{"channel":"On call","after_minutes":15}'
    group = make_group(app_name="billing", escalation=escalation)
    job = make_job(job_group=group.id, escalation=escalation)
    make_job(job_group=group.id, escalation="{")
    assert found_by(installed, "promises") == [
        f"incidents of group billing, job {job.id} are not escalated: there is no alarm channel 'On call'"
    ]
    save(AlarmChannel(name="On call", kind="ntfy", settings="{}", for_all=0))
    assert found_by(installed, "promises") == []


@pytest.mark.databases("mariadb", "postgresql")
@pytest.mark.parametrize(
    ("column", "kind", "back"),
    [
        ("executor_param", "text", "varchar(2048)"),
        ("executor_handler", "varchar(500)", "varchar(255)"),
    ],
)
def test_columns_of_the_log_that_are_narrower_than_those_of_jobs(
    installed: Config, column: str, kind: str, back: str
) -> None:
    assert found_by(installed, "columns") == []
    comment = " COMMENT 'it''s'" if installed.database_url.startswith("mysql") else ""
    with (
        changed_column("xxl_job_info", column, kind, back=back),
        changed_column("xxl_job_log", column, back + comment, back=back),
    ):
        (narrow,) = [each for each in examine(installed).findings if each.check == "columns"]
        bind_engine(installed)
    assert narrow.text.startswith(f"xxl_job_log.{column} is narrower than xxl_job_info.{column}")
    verb, to = ("MODIFY", "") if installed.database_url.startswith("mysql") else ("ALTER COLUMN", "TYPE ")
    statement, _, then = narrow.advice.partition("; ")
    assert statement.startswith(f"ALTER TABLE xxl_job_log {verb} {column} {to}{kind}")
    if verb == "MODIFY":
        assert " CHARACTER SET utf8mb4 COLLATE utf8mb4_" in statement
        assert statement.endswith(" COMMENT 'it''s'")
    assert then == "then restart console and workers"


def test_runs(installed: Config) -> None:
    job = make_due_job(now_ms() + DAY_MS)
    log = make_log(job, trigger_code=504)
    make_fire(job, due_time=now_ms() - 120_000)
    unresolved, waiting = found_by(installed, "runs")
    assert unresolved.endswith(f"newest first: {log.id}")
    assert waiting.startswith("1 due and not sent yet, the oldest for 1")


def test_a_run_that_is_not_claimed_although_nothing_explains_it(installed: Config) -> None:
    add_node("workers", started_ms=now_ms() - DAY_MS)
    make_fire(make_due_job(now_ms() + DAY_MS), due_time=now_ms() - 40_000)
    (unclaimed,) = found_by(installed, "runs")
    assert unclaimed.startswith("due and not sent, and nothing explains it: 1, the oldest for 4")


@every_database
def test_lost_commits_are_a_problem_until_they_are_settled_and_then_a_warning(installed: Config) -> None:
    log = make_log(make_job())
    sent = SentLogIds()
    assert CommitWatch(installed, sent).check()
    assert found_by(installed, "commits") == []
    sent.note(log.id + 1_000)
    (lost,) = found_by(installed, "commits")
    assert f"run {log.id + 1_000} was sent" in lost
    settle_lost(actor=system_actor("test"), clock=now_ms, up_to_id=sent.highest)
    (settled,) = found_by(installed, "commits")
    assert settled == "the database has lost commits in the last week and was settled 0 minutes ago"


@pytest.mark.parametrize(
    "stored",
    [passwords.fast_hash("123456", 32), passwords.wrap(passwords.fast_hash("123456", 32))],
    ids=("adopted", "wrapped"),
)
def test_default_passwords(stored: str, installed: Config) -> None:
    save(User(username="boss", password=stored, role=Role.ADMIN))
    save(User(username="ann", password="x", role=Role.NORMAL, weak_password=1))
    default, weak = found_by(installed, "passwords")
    assert default.endswith("of XXL-JOB: boss")
    assert weak == "scripts still log in with common passwords of 1 user"


def test_another_application_key(installed: Config) -> None:
    make_group(access_token="sealed-with-the-first-key")
    (found,) = found_by(replace(installed, secret_key="k" * 32), "key")
    assert "was encrypted with another application key" in found


def test_probes(installed: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeExecutor() as executor:
        wrong = Answer.json(code=500, msg="The access token is wrong.")
        executor.respond("beat", Answer.json(), Answer.json(), Answer.json(), wrong)
        make_group(address_list=executor.address)
        assert found_by(installed, "probe", probe=True) == [
            f"executors that accept any access token: {executor.address}"
        ]
        assert found_by(installed, "probe", probe=True) == []
    monkeypatch.setattr(executors, "PROBED_MAX", 0)
    assert found_by(installed, "probe", probe=True) == ["1 of 1 executor not probed"]
    monkeypatch.undo()
    (failed,) = found_by(installed, "probe", probe=True)
    assert failed.startswith(f"1 of 1 executor did not accept a probe: {executor.address} (")
