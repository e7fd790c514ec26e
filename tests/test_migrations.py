"""Migrations: new, adopted, interrupted and earlier databases all end up as the models define."""

import pkgutil
import re
from contextlib import suppress
from importlib import import_module
from itertools import takewhile

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import IntegrityError

from app import models
from app.database.engine import read_scope, session_scope
from app.models.base import Base
from app.models.group import Group
from app.models.job import Job
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.session import LoginSession
from app.models.skip import Skip
from app.models.tag import JobTag
from app.models.user import User
from app.pipeline.scan import scan
from app.store.copies import whole_tables
from tests.support.databases import ROOT, migrate
from tests.support.factories import T0, all_rows, only_row
from tests.support.migrations import (
    EARLIER_VERSIONS,
    ROWS_2_4_1,
    Interrupted,
    bind,
    differences,
    execute,
    interrupted_after,
    lacks,
    make_2_4_1,
    migrate_to,
)

for module in pkgutil.iter_modules(models.__path__):
    import_module(f"app.models.{module.name}")  # the metadata contains only tables of imported models


def test_the_tables_of_all_schemas_are_known_as_those_of_the_program() -> None:
    versions = EARLIER_VERSIONS.glob("*.py")
    named = {name for file in versions for name in re.findall(r'"(xxl_job_\w+)"', file.read_text("utf-8"))}
    assert named | Base.metadata.tables.keys() == whole_tables.OWN


def test_a_new_database_matches_the_models(engine: Engine) -> None:
    migrate(engine.url.render_as_string(hide_password=False))
    assert differences(engine) == []


def test_a_second_upgrade_changes_nothing(engine: Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    migrate(url)
    execute(engine, *ROWS_2_4_1[:3])
    migrate(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM xxl_job_info")).scalar() == 1
        assert connection.execute(text("SELECT lock_name FROM xxl_job_lock")).scalars().all() == [
            "schedule_lock"
        ]


def test_a_database_of_2_4_1_is_adopted_with_its_rows(engine: Engine) -> None:
    make_2_4_1(engine)
    migrate(engine.url.render_as_string(hide_password=False))
    assert lacks(engine) == []
    bind(engine)
    job, log = only_row(Job), only_row(JobLog)
    assert (
        job.id,
        job.job_desc,
        job.time_zone,
        job.delivery,
        job.retry_backoff_percent,
        job.last_fire_ms,
    ) == (
        7,
        "daily",
        "",
        "auto",
        100,
        0,
    )
    assert (log.id, log.handle_msg, log.fire_time, log.trigger_time) == (900, "done", None, T0 - 11_045_000)
    assert only_row(User).password == "e10adc3949ba59abbe56e057f20f883e"
    assert only_row(Group).access_token is None
    addresses = [row.registry_value for row in all_rows(Registration)]
    assert sorted(addresses) == ["http://10.0.0.1:9999/", "http://10.0.0.2:9999/"], (
        "of equal rows the last one stays"
    )
    assert max(row.update_time or 0 for row in all_rows(Registration)) == T0 - 11_042_000


def test_an_adopted_database_accepts_long_hashes_and_titles(engine: Engine) -> None:
    make_2_4_1(engine)
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    with session_scope() as session:
        session.add(User(username="x", password="$argon2id$" + "x" * 240, role=0))
        session.add(Group(app_name="a", title="a title of more than twelve characters"))
    assert len(all_rows(User)[-1].password) == 250
    assert all_rows(Group)[-1].title == "a title of more than twelve characters"


def test_a_java_admin_can_still_write_to_an_adopted_database(engine: Engine) -> None:
    make_2_4_1(engine)
    migrate(engine.url.render_as_string(hide_password=False))
    execute(
        engine,
        "INSERT INTO xxl_job_info (job_group, job_desc, glue_type, trigger_status, trigger_next_time,"
        " schedule_type, schedule_conf)"
        f" VALUES (1, 'of java', 'BEAN', 1, {T0}, 'FIX_RATE', '60')",
        "INSERT INTO xxl_job_log (job_group, job_id, trigger_code, handle_code) VALUES (1, 7, 0, 0)",
        "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value) VALUES ('EXECUTOR',"
        " 'app', 'http://10.0.0.3:9999/')",
        "INSERT INTO xxl_job_user (username, password, role) VALUES ('java', 'x', 0)",
        "INSERT INTO xxl_job_group (app_name, title) VALUES ('java', 'java')",
        "INSERT INTO xxl_job_logglue (job_id, glue_remark) VALUES (7, 'r')",
    )
    bind(engine)
    assert {fire.job_id for fire in scan(node="one", zone="Asia/Shanghai", now_ms=T0)} == {
        7,
        all_rows(Job)[-1].id,
    }
    run = all_rows(JobLog)[-1]
    assert (run.id, run.duration_ms, run.killed) == (901, None, 0)


#: schema changes between two interruptions, so that each revision is hit at several places
STEP = 9


def test_a_repeatedly_interrupted_upgrade_completes(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":  # the original does not run on SQLite
        make_2_4_1(engine)
    url = engine.url.render_as_string(hide_password=False)
    allowed, interruptions = STEP, 0
    while not upgrade_ends(url, allowed):
        interruptions += 1
        if engine.dialect.name != "mysql":  # rolled back: the next attempt starts from the same place
            allowed *= 3
    assert interruptions >= 2
    assert lacks(engine) == []


def upgrade_ends(url: str, allowed: int) -> bool:
    """Whether an upgrade of this many statements ends."""
    with interrupted_after(allowed), suppress(Interrupted):
        migrate(url)
        return True
    return False


def test_failed_runs_are_marked_both_existing_and_new_ones_of_a_java_admin(engine: Engine) -> None:
    row = "INSERT INTO xxl_job_log (job_group, job_id, trigger_code, handle_code) VALUES (1, 7, {}, {})"
    make_2_4_1(engine)
    execute(engine, row.format(500, 0), row.format(200, 502), row.format(0, 0))
    migrate(engine.url.render_as_string(hide_password=False))
    execute(
        engine,
        row.format(504, 0),
        row.format(200, 200),
        "UPDATE xxl_job_log SET handle_code = 500 WHERE id = 900",
    )
    bind(engine)
    assert {(log.trigger_code, log.handle_code, log.failed) for log in all_rows(JobLog)} == {
        (200, 500, 1),
        (500, 0, 1),
        (200, 502, 1),
        (0, 0, 0),
        (504, 0, 1),
        (200, 200, 0),
    }


def test_tags_that_differ_only_in_an_accent_are_different(engine: Engine) -> None:
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    with session_scope() as session:
        session.add_all(JobTag(job_id=7, tag=tag, tag_key=tag) for tag in ("cafe", "café"))
    with pytest.raises(IntegrityError), session_scope() as session:
        session.add(JobTag(job_id=7, tag="Cafe", tag_key="cafe"))


#: revision before the first release -> changes of the next one that it lacks
NOT_YET = {
    "0010": [],
    "0009": [],
    "0008": [
        "DROP INDEX ix_xxl_job_log_failures{ON_LOG}",
        "CREATE INDEX ix_xxl_job_log_failed ON xxl_job_log (failed, trigger_time)",
    ],
    "0007": ["DROP TABLE xxl_job_seen", "DROP TABLE xxl_job_once"],
    "0006": [
        "DROP TABLE xxl_job_mute",
        "DROP INDEX ix_xxl_job_alarm_mute{ON_ALARM}",
        "ALTER TABLE xxl_job_alarm DROP COLUMN mute_id",
    ],
    "0005": ["DROP TABLE xxl_job_group_day"],
    "0004": [f"DROP TABLE xxl_job_{name}" for name in ("tag", "favourite", "view", "start_page")],
    "0003": ["DROP TABLE xxl_job_drain"],
    "0002": [
        "DROP INDEX ix_xxl_job_log_failed{ON_LOG}",
        "DROP INDEX ix_xxl_job_log_source{ON_LOG}",
        "ALTER TABLE xxl_job_log DROP COLUMN failed",
        "ALTER TABLE xxl_job_log DROP COLUMN trigger_type",
        "ALTER TABLE xxl_job_log DROP COLUMN source_log_id",
        "ALTER TABLE xxl_job_node DROP COLUMN skew_ms",
    ],
}


@pytest.mark.databases("mariadb")
@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "gbk", "utf8mb4 COLLATE utf8mb4_unicode_520_ci"])
def test_names_are_exact_whatever_the_character_set_was(engine: Engine, charset: str) -> None:
    make_2_4_1(engine)
    tables = ("xxl_job_group", "xxl_job_registry")
    execute(engine, *(f"ALTER TABLE {table} CONVERT TO CHARACTER SET {charset}" for table in tables))
    migrate(engine.url.render_as_string(hide_password=False))
    execute(engine, "UPDATE alembic_version SET version_num = '0004_tasks'")
    migrate(engine.url.render_as_string(hide_password=False))  # repeated after an interruption
    assert lacks(engine) == []
    execute(
        engine,
        "UPDATE xxl_job_group SET app_name = 'app'",
        *(
            f"INSERT INTO xxl_job_group (app_name, title) VALUES ('{name}', 't')"
            for name in ("APP", "\u00e1pp")
        ),
        *(
            "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time)"
            f" VALUES ('EXECUTOR', '{name}', 'http://10.0.0.1:9999/', now())"
            for name in ("APP", "\u00e1pp")
        ),
    )
    for table, column in (("xxl_job_group", "app_name"), ("xxl_job_registry", "registry_key")):
        with engine.connect() as connection:
            found = connection.scalars(text(f"SELECT DISTINCT {column} FROM {table} WHERE {column} = 'app'"))
            assert list(found) == ["app"]


@pytest.mark.parametrize(
    "revision",
    ["0010", *(pytest.param(name, marks=pytest.mark.extensive) for name in ("0008", "0005")), "0002"],
)
def test_a_database_from_before_the_first_release_is_upgraded(engine: Engine, revision: str) -> None:
    tables = {"ON_LOG": "xxl_job_log", "ON_ALARM": "xxl_job_alarm"}
    on_table = {
        name: f" ON {table}" if engine.dialect.name == "mysql" else "" for name, table in tables.items()
    }
    migrate_to(engine, "0002_own_schema")
    for _, statements in takewhile(lambda entry: entry[0] >= revision, NOT_YET.items()):
        execute(engine, *(statement.format(**on_table) for statement in statements))
    skip = "INSERT INTO xxl_job_skip (job_id, from_ms, to_ms, skipped, reason, recorded_ms)"
    execute(
        engine,
        f"{skip} VALUES (1, 2, 3, 4, 'edited', 5)",
        f"UPDATE alembic_version SET version_num = '{revision}'",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    assert differences(engine) == []
    bind(engine)
    assert only_row(Skip).skipped == 4


def test_former_addresses_and_logins_keep_their_last_seen_times(engine: Engine) -> None:
    migrate_to(engine, "0002_own_schema")
    execute(
        engine,
        "INSERT INTO xxl_job_seen (app_name, address, seen_ms) VALUES ('a', 'http://10.0.0.1:9999/', 5)",
        "INSERT INTO xxl_job_session (token_hash, user_id, created_ms, seen_ms, expires_ms)"
        " VALUES ('x', 1, 2, 3, 4)",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    assert (only_row(LastSeen).app_name, only_row(LastSeen).last_seen_ms) == ("a", 5)
    assert only_row(LoginSession).last_seen_ms == 3


#: last revision of each earlier commit that changed our own tables
EARLIER = sorted(path.stem for path in EARLIER_VERSIONS.glob("*.py"))[1:]


@pytest.mark.parametrize("adopted", [False, True], ids=["new", "adopted"])
@pytest.mark.parametrize(
    "revision",
    [
        name if name in ("0002_own_schema", "0005_security", "0010_reports") else extensive
        for name, extensive in ((name, pytest.param(name, marks=pytest.mark.extensive)) for name in EARLIER)
    ],
)
def test_a_database_of_an_earlier_commit_is_upgraded_with_its_rows(
    engine: Engine, revision: str, adopted: bool
) -> None:
    if adopted:
        make_2_4_1(engine)
    migrate_to(engine, revision)
    skip = "INSERT INTO xxl_job_skip (job_id, from_ms, to_ms, skipped, reason, recorded_ms)"
    execute(engine, f"{skip} VALUES (1, 2, 3, 4, 'edited', 5)")
    migrate(engine.url.render_as_string(hide_password=False))
    assert (lacks if adopted else differences)(engine) == []
    bind(engine)
    assert only_row(Skip).skipped == 4
    assert [job.id for job in all_rows(Job)] == ([7] if adopted else [])
    with session_scope() as session:
        session.add(Group(app_name="long", title="t", access_token="x" * 400))
    assert all_rows(Group)[-1].access_token == "x" * 400


def test_the_last_replaced_revision_is_only_stamped(engine: Engine) -> None:
    migrate_to(engine, "0011_node_zone")
    with interrupted_after(0):
        migrate_to(engine, "0011_own_schema")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) == "0011_own_schema"
    migrate(engine.url.render_as_string(hide_password=False))
    assert differences(engine) == []


def test_an_interruption_between_a_table_and_its_indexes_is_mended(engine: Engine) -> None:
    migrate(engine.url.render_as_string(hide_password=False))
    on_table = " ON {}" if engine.dialect.name == "mysql" else ""
    execute(
        engine,
        "DROP INDEX ux_xxl_job_token_hash" + on_table.format("xxl_job_token"),
        "DROP INDEX i_username" + on_table.format("xxl_job_user"),
        "UPDATE alembic_version SET version_num = '0001'",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    assert differences(engine) == []


def test_later_releases_of_the_original_are_adopted_too(engine: Engine) -> None:
    """2.5 made the registry unique and indexed the log; 3.2 added a user column; 3.4 widened columns."""
    make_2_4_1(engine)
    drop = (
        "DROP INDEX i_g_k_v ON xxl_job_registry" if engine.dialect.name == "mysql" else "DROP INDEX i_g_k_v"
    )
    execute(
        engine,
        "DELETE FROM xxl_job_registry",
        drop,
        "CREATE UNIQUE INDEX i_g_k_v ON xxl_job_registry (registry_group, registry_key, registry_value)",
        "CREATE INDEX I_job_id ON xxl_job_log (job_id)",
        "ALTER TABLE xxl_job_user ADD COLUMN token varchar(100)",
    )
    if engine.dialect.name == "mysql":
        execute(
            engine,
            "ALTER TABLE xxl_job_user MODIFY password varchar(100) NOT NULL",
            "ALTER TABLE xxl_job_info MODIFY executor_param text",
            "ALTER TABLE xxl_job_log MODIFY executor_param text",
            "ALTER TABLE xxl_job_group MODIFY title varchar(64) NOT NULL",
            "ALTER TABLE xxl_job_registry MODIFY id bigint NOT NULL AUTO_INCREMENT",
        )
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    with read_scope() as session:
        assert session.execute(text("SELECT token FROM xxl_job_user")).scalars().all() == [None]
    assert only_row(User).disabled == 0


def test_a_revision_is_a_number_with_a_name() -> None:
    """Bare numbers were revisions before the first release; ``migrations/env.py`` stamps them anew."""
    files = sorted((ROOT / "migrations" / "versions").glob("0*.py"))
    revisions = [re.findall(r'^revision = "([^"]+)"', path.read_text(), re.MULTILINE)[0] for path in files]
    assert revisions == ["0001", *(path.stem for path in files[1:])]


def test_the_parameter_is_widened_and_a_text_stays(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("SQLite keeps texts of any length")
    make_2_4_1(engine)
    quoted = "`executor_param`" if engine.dialect.name == "mysql" else "executor_param"
    to_text = f"MODIFY {quoted} text" if engine.dialect.name == "mysql" else f"ALTER {quoted} TYPE text"
    execute(engine, f"ALTER TABLE xxl_job_log {to_text}")
    migrate(engine.url.render_as_string(hide_password=False))
    lengths = {
        table: next(
            getattr(column["type"], "length", None)
            for column in inspect(engine).get_columns(table)
            if column["name"] == "executor_param"
        )
        for table in ("xxl_job_info", "xxl_job_log")
    }
    assert lengths == {"xxl_job_info": 2_048, "xxl_job_log": None}
