"""Backup and restore on each kind of database: complete, refused where they must be, nothing fires again."""

import gzip
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from app.clock import SECOND_MS
from app.database.engine import read_scope, session_scope, unbind_engine
from app.database.urls import sqlite_file
from app.domain.enums import FireState, NodeKind, TriggerCode, TriggerStatus
from app.errors import NotConfigured
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.log import JobLog
from app.models.node import Node
from app.models.session import LoginSession
from app.models.skip import Skip
from app.pipeline.scan import scan
from app.services.backups import archive, dumps, programs
from app.services.backups.archive import check_archive
from app.services.backups.reconcile import IDS_A_SECOND, IDS_MIN
from app.services.backups.restore import restore as restore_backup
from app.services.backups.restore_options import UNPROVEN, Options
from app.services.installation import preconditions
from app.services.installation.upgrade import upgrade
from app.settings.config import Config
from app.settings.home import PASSWORD_FILE, SECRET_KEY_FILE, TOKEN_FILE
from app.store.nodes import nodes
from tests.support.backups import LATER, MADE, REPLACE, execute, make_backup, restore
from tests.support.factories import all_rows, make_fire, make_job, make_log, make_run, only_row, save
from tests.support.plan import every_database

pytestmark = every_database

#: a single damaged bit may mean the same: in a run of equal bytes, how far back they are copied from
DAMAGED_BYTES = 100
#: place of the checksum in a gzip file: four bytes, before four of the length
CHECKSUM_AT = -8


def test_what_is_restored_is_what_was_there(installation: Config, tmp_path: Path) -> None:
    job = make_job(job_desc="quotes ' \" \\ \n and 中文", executor_param="a),(b;\r\n'--")
    for number in range(3):
        make_log(job, trigger_msg=f"line {number}\nINSERT INTO `xxl_job_log` VALUES (1);")
    (tmp_path / ".one.backup.left.part").mkdir()  # of a killed backup
    made = make_backup(installation, tmp_path / "one.backup")
    assert (made.unverified, made.manifest.verified) == ("", True)
    assert (made.manifest.rows["xxl_job_log"], made.manifest.rows["xxl_job_info"]) == (3, 1)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert list(tmp_path.glob(".*.part")) == []
    key = (installation.home / SECRET_KEY_FILE).read_text()

    elsewhere = replace(installation, home=tmp_path / "elsewhere")
    execute(installation, "DELETE FROM xxl_job_log", "UPDATE xxl_job_info SET job_desc = 'lost'")
    restored = restore(elsewhere, made.path)
    assert restored.manifest == made.manifest
    assert only_row(Job).job_desc == "quotes ' \" \\ \n and 中文"
    assert only_row(Job).executor_param == "a),(b;\r\n'--"
    assert [row.trigger_msg for row in all_rows(JobLog)] == [
        f"line {number}\nINSERT INTO `xxl_job_log` VALUES (1);" for number in range(3)
    ]
    assert (elsewhere.home / SECRET_KEY_FILE).read_text() == key
    preconditions.check_schema(create_engine(installation.database_url, poolclass=NullPool))


def test_nothing_fires_again_after_a_restore(installation: Config, tmp_path: Path) -> None:
    rate = make_job(schedule_type="FIX_RATE", schedule_conf="10", trigger_status=1)
    once = make_job(schedule_type="CRON", schedule_conf="0 0 0 1 1 ? 2026", trigger_status=1)
    delay = make_job(schedule_type="FIX_DELAY", schedule_conf="10", trigger_status=1)
    for job, next_ms in ((rate, MADE + 10_000), (once, MADE - 5_000), (delay, AFTER_THE_CURRENT_RUN)):
        execute(installation, f"UPDATE xxl_job_info SET trigger_next_time = {next_ms} WHERE id = {job.id}")
    make_fire(rate, fire_key=f"cron:{rate.id}:{MADE}", due_time=MADE, trigger_type="CRON")
    make_fire(rate, fire_key="manual:1", due_time=MADE, trigger_type="MANUAL")
    run = make_run(delay, state=FireState.ACCEPTED.value, trigger_type="CRON")
    save(LoginSession(token_hash="x", user_id=1, created_ms=MADE, last_seen_ms=MADE, expires_ms=2 * MADE))
    made = make_backup(installation, tmp_path / "one.backup")

    settled = restore(installation, made.path).settlement
    assert (settled.fires.queued, settled.fires.open_runs, settled.logins) == (1, 1, 1)
    assert settled.next_log_id > run.id + IDS_MIN
    scan(node="one", zone="UTC", now_ms=LATER)
    assert all(fire.due_time > LATER for fire in all_rows(Fire))
    assert {skip.reason for skip in all_rows(Skip)} == {"restored"}
    skipped = {(skip.job_id, skip.from_ms, skip.to_ms, skip.skipped) for skip in all_rows(Skip)}
    assert (rate.id, MADE, MADE, 1) in skipped
    assert (rate.id, MADE + 10_000, LATER, 360) in skipped
    assert only_row(JobLog, id=run.id).trigger_code == TriggerCode.UNRESOLVED
    assert only_row(Job, id=once.id).trigger_status == TriggerStatus.STOPPED
    assert only_row(Job, id=delay.id).trigger_next_time == LATER + 10_000
    assert make_log(rate).id == settled.next_log_id
    assert all_rows(LoginSession) == []


@pytest.mark.databases("sqlite")
def test_each_restore_of_a_young_backup_gives_other_ids(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    first, second = (
        restore(installation, made.path, at_ms=MADE + seconds * SECOND_MS).settlement.next_log_id
        for seconds in (5, 6)
    )
    assert second == first + IDS_A_SECOND
    set_back = restore(installation, made.path, at_ms=MADE - SECOND_MS).settlement.next_log_id
    assert set_back > IDS_MIN


def test_a_backup_has_the_time_zone_of_the_services(installation: Config, tmp_path: Path) -> None:
    node = {"kind": "workers", "started_ms": 0, "version": "1"}
    save(Node(**node, name="one", time_zone="Asia/Tokyo", heartbeat_ms=MADE - 2))
    save(Node(**node, name="two", time_zone="Asia/Shanghai", heartbeat_ms=MADE - 1))
    made = make_backup(replace(installation, time_zone="UTC"), tmp_path / "one.backup")
    assert made.manifest.time_zone == "Asia/Shanghai"
    restore(installation, made.path)


def test_a_database_in_use_or_with_tables_is_not_replaced(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    with pytest.raises(NotConfigured, match="to replace them: --replace"):
        restore(installation, made.path, Options())
    with session_scope() as session:
        nodes.start_node(
            session, "one", NodeKind.WORKERS, version="1", token_fingerprint="", now_ms=LATER - 1_000
        )
    with pytest.raises(NotConfigured, match=r"stop every console .* alive: one \(workers\)"):
        restore(installation, made.path)


@pytest.mark.databases("sqlite")
def test_a_backup_that_cannot_be_used_here_is_refused(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    with pytest.raises(NotConfigured, match="exists"):
        make_backup(installation, made.path)
    with pytest.raises(NotConfigured, match="another application key"):
        restore(replace(installation, secret_key="k" * 32), made.path)
    with pytest.raises(NotConfigured, match="installation is in Asia/Shanghai, this one is in Pacific"):
        restore(replace(installation, time_zone="Pacific/Apia"), made.path)
    other = replace(installation, database_url="postgresql+psycopg://u@127.0.0.1/x")
    with pytest.raises(NotConfigured, match="the backup is of sqlite"):
        restore(other, made.path)
    newer = tmp_path / "newer.backup"
    archive.write_archive(newer, replace(made.manifest, schema="9999_later", files={}), {})
    with pytest.raises(NotConfigured, match=r"newer schema \(9999_later\)"):
        restore(installation, newer)
    content = bytearray(made.path.read_bytes())
    middle = slice(len(content) // 2, len(content) // 2 + DAMAGED_BYTES)
    content[middle] = bytes(byte ^ 0xFF for byte in content[middle])
    made.path.write_bytes(content)
    with pytest.raises(NotConfigured, match="damaged"):
        check_archive(made.path)
    content = content[: len(content) // 2]
    made.path.write_bytes(content)
    with pytest.raises(NotConfigured, match="damaged"):
        check_archive(made.path)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("name", ["../../authorized_keys", "/etc/passwd", "other"])
def test_a_backup_with_other_secrets_than_known_ones_is_refused(
    installation: Config, tmp_path: Path, name: str
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    forged, secret = tmp_path / "forged.backup", tmp_path / "secret"
    secret.write_text("x")
    named = f"{archive.SECRETS}/{name}"
    manifest = replace(made.manifest, files={named: sha256(b"x").hexdigest()})
    archive.write_archive(forged, manifest, {named: secret})
    with pytest.raises(NotConfigured, match=f"has an unexpected file: secrets/{name}"):
        restore(installation, forged)


@pytest.mark.databases("sqlite")
def test_a_backup_that_differs_from_the_checksum_of_its_compression_is_damaged(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    unpacked = gzip.decompress(made.path.read_bytes())
    # a half is read to its end, where the checksum is
    content = bytearray(gzip.compress(unpacked[: len(unpacked) // 2]))
    content[CHECKSUM_AT] ^= 1
    made.path.write_bytes(content)
    with pytest.raises(NotConfigured, match="damaged: CRC check failed"):
        check_archive(made.path)


@pytest.mark.parametrize("step", ["dumps.load_copy", "settle"])
def test_an_unfinished_restore_is_refused_until_it_is_repeated(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    if installation.is_sqlite and step != "settle":
        pytest.skip("not a step of SQLite")
    make_job()
    made = make_backup(installation, tmp_path / "one.backup")

    token = installation.home / TOKEN_FILE
    token.write_text("another token of 16")

    def broken_off(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"app.services.backups.restore.{step}", broken_off)
        with pytest.raises(KeyboardInterrupt):
            restore(installation, made.path)
    engine = create_engine(installation.database_url, poolclass=NullPool)
    if installation.is_sqlite or (made.manifest.database == "postgresql" and step != "settle"):
        preconditions.check_schema(engine)  # the earlier one is still in its place, and needs its secrets
        assert token.read_text() == "another token of 16"
    else:
        with pytest.raises(NotConfigured, match="run the restore again, with --replace"):
            preconditions.check_schema(engine)
        if step != "settle":
            with pytest.raises(NotConfigured, match="run the restore again, with --replace"):
                upgrade(installation.database_url)
    restore(installation, made.path)
    preconditions.check_schema(engine)
    assert only_row(Job).id
    assert token.read_text() != "another token of 16"


@pytest.mark.databases("postgresql")
def test_a_restore_into_another_schema_changes_nothing(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    token = installation.home / TOKEN_FILE
    token.write_text("another token of 16")
    execute(installation, "CREATE SCHEMA IF NOT EXISTS other")
    url = make_url(installation.database_url).update_query_dict({"options": "-csearch_path=other"})
    with pytest.raises(NotConfigured, match="in the schema public, those of XXL_JOB_DATABASE_URL in other"):
        restore(replace(installation, database_url=url.render_as_string(hide_password=False)), made.path)
    assert token.read_text() == "another token of 16"


def test_an_older_schema_is_restored_and_upgraded(installation: Config, tmp_path: Path) -> None:
    make_log(make_job())
    execute(
        installation,
        "DROP TABLE xxl_job_channel",
        "DROP TABLE xxl_job_channel_scope",
        "UPDATE alembic_version SET version_num = '0005_security'",
    )
    made = make_backup(installation, tmp_path / "one.backup")
    assert made.manifest.schema == "0005_security"
    restore(installation, made.path)
    preconditions.check_schema(create_engine(installation.database_url, poolclass=NullPool))
    assert len(all_rows(JobLog)) == 1


@pytest.mark.databases("mariadb", "postgresql")
def test_a_user_who_may_not_create_databases_gets_a_backup_that_says_so(
    installation: Config, tmp_path: Path
) -> None:
    url = make_url(installation.database_url)
    if url.get_backend_name() == "mysql":
        execute(
            installation,
            "DROP USER IF EXISTS keeper@'127.0.0.1'",
            "CREATE USER keeper@'127.0.0.1' IDENTIFIED BY 'a\"#b''c\\\\d # e'",
            f"GRANT ALL ON {url.database}.* TO keeper@'127.0.0.1'",
        )
        url = url.set(username="keeper", password="a\"#b'c\\d # e")
    else:
        execute(
            installation,
            "DROP OWNED BY keeper" if _has_role(installation) else "SELECT 1",
            "DROP ROLE IF EXISTS keeper",
            "CREATE ROLE keeper LOGIN",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO keeper",
            "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO keeper",
        )
        url = url.set(username="keeper")
    keeper = replace(installation, database_url=url.render_as_string(hide_password=False))
    made = make_backup(keeper, tmp_path / "one.backup")
    assert not made.manifest.verified
    assert "may not create a scratch database" in made.unverified
    assert ("GRANT ALL ON" in made.unverified) or ("CREATEDB" in made.unverified)
    assert check_archive(made.path).rows["xxl_job_lock"] == 1


def _has_role(config: Config) -> bool:
    with read_scope() as session:
        return session.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = 'keeper'")) is not None


@pytest.mark.databases("mariadb", "postgresql")
def test_an_absent_dump_program_is_named_with_its_package(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotConfigured, match=r"is not installed.* install \w+-client"):
        make_backup(installation, tmp_path / "one.backup")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.databases("sqlite")
def test_no_secret_is_in_a_command_line(tmp_path: Path) -> None:
    for url in ("mysql+pymysql://u:s3cret@h:1/d", "postgresql+psycopg://u:s3cret@h:1/d?sslmode=require"):
        dump = programs.dump_command(make_url(url), ["t"], "public", tmp_path)
        load = programs.load_command(make_url(url), tmp_path)
        assert "s3cret" not in " ".join([*dump.arguments, *load.arguments])
    assert (dump.environ["PGPASSWORD"], dump.environ["PGSSLMODE"]) == ("s3cret", "require")
    options = tmp_path / "client.cnf"
    assert 'password="s3cret"' in options.read_text()
    assert stat.S_IMODE(options.stat().st_mode) == 0o600


@pytest.mark.databases("sqlite")
def test_a_full_disk_leaves_no_file(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_add", full)
    with pytest.raises(NotConfigured, match=r"one.backup: cannot be written: No space left on device"):
        make_backup(installation, tmp_path / "one.backup")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.databases("sqlite")
def test_secrets_that_are_settings_are_named_and_needed_for_the_restore(
    installation: Config, tmp_path: Path
) -> None:
    key = (installation.home / SECRET_KEY_FILE).read_text().strip()
    set_by_hand = replace(installation, secret_key=key, access_tokens=("0123456789abcdef",))
    made = make_backup(set_by_hand, tmp_path / "one.backup")
    assert made.manifest.secrets == {"secret_key": "setting", "access_token": "setting"}
    assert list(made.manifest.files) == ["database.sqlite"]
    with pytest.raises(NotConfigured, match="XXL_JOB_SECRET_KEY: the backup was made with this setting"):
        restore(installation, made.path)
    restore(set_by_hand, made.path)


@pytest.mark.databases("sqlite")
def test_replaced_files_are_kept(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    token = installation.home / "access_token"
    token.write_text("another token of 16")
    elsewhere = replace(installation, database_url=f"sqlite:///{tmp_path}/new/xxl_job.db")
    with pytest.raises(NotConfigured, match="access_token: not that of the backup"):
        restore_backup(elsewhere, made.path, Options(), clock=lambda: LATER)
    for _ in range(2):
        kept = restore_backup(elsewhere, made.path, REPLACE, clock=lambda: LATER).old_files
    assert [path.name for path in kept] == ["xxl_job.db.replaced-1"]
    assert token.with_name("access_token.replaced-1").read_text() == "another token of 16"
    place = tmp_path / "new" / "xxl_job.db"
    assert (stat.S_IMODE(place.stat().st_mode), place.stat().st_nlink) == (0o600, 1)


@pytest.mark.databases("sqlite")
def test_a_link_to_the_database_stays(installation: Config, tmp_path: Path) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    link, place = tmp_path / "xxl_job.db", tmp_path / "on_another_disk.db"
    link.symlink_to(place)
    elsewhere = replace(installation, database_url=f"sqlite:///{link}")
    for _ in range(2):
        kept = restore_backup(elsewhere, made.path, REPLACE, clock=lambda: LATER).old_files
    assert (link.readlink(), kept) == (place, [tmp_path / "on_another_disk.db.replaced-1"])


@pytest.mark.databases("sqlite")
def test_the_initial_password_of_another_installation_is_set_aside(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    first = installation.home / PASSWORD_FILE
    first.write_text("first-one\n")
    assert first.with_name("admin_password.replaced-1") in restore(installation, made.path).old_files
    assert not first.exists()
    first.write_text("first-one\n")
    restore(installation, make_backup(installation, tmp_path / "two.backup").path)
    assert first.read_text() == "first-one\n"


@pytest.mark.databases("sqlite")
def test_broken_off_while_the_file_is_put_in_place_the_earlier_one_is_there(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    make_job()

    def killed(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(installation, made.path)
    assert only_row(Job).id


@pytest.mark.databases("sqlite")
def test_the_journal_of_a_file_that_was_removed_is_not_taken_for_that_of_the_new_one(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    unbind_engine()
    place = sqlite_file(installation.database_url)
    assert place is not None
    journal = place.with_name(f"{place.name}-wal")
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE of_the_damaged_file (id INT)")
        left = journal.read_bytes()
    place.unlink()
    journal.write_bytes(left)
    restored = restore(installation, made.path)
    assert [path.name for path in restored.old_files] == [f"{journal.name}.replaced-1"]
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        named = "SELECT 1 FROM sqlite_master WHERE name = 'of_the_damaged_file'"
        assert connection.execute(named).fetchone() is None


@pytest.mark.databases("sqlite")
def test_a_disk_that_is_full_while_the_database_is_copied_is_one_line(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(dumps, "copy_file", full)
    with pytest.raises(NotConfigured, match=f"{tmp_path}: .* database or disk is full"):
        make_backup(installation, tmp_path / "one.backup")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.databases("mariadb", "postgresql")
def test_a_database_that_a_program_without_a_heartbeat_uses_is_not_replaced(
    installation: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    monkeypatch.setattr("app.services.backups.restore.CLOSING_S", 0.5)
    engine = create_engine(installation.database_url, poolclass=NullPool)
    with engine.connect(), pytest.raises(NotConfigured, match=r"has other connections to the database \(1\)"):
        restore(installation, made.path)


@pytest.mark.databases("sqlite")
def test_a_backup_of_this_installation_that_was_changed_is_refused(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    assert restore(installation, made.path).is_own
    changed = tmp_path / "changed.backup"
    manifest = replace(made.manifest, files={}, made_ms=MADE - 1)
    for code in (manifest.code, "", "0" * 64):
        archive.write_archive(changed, replace(manifest, code=code), {})
        with pytest.raises(NotConfigured, match="was changed: .* restore another backup"):
            restore(installation, changed)
        changed.unlink()


@pytest.mark.databases("sqlite")
def test_the_origin_of_a_backup_of_another_installation_is_not_proven(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    elsewhere = replace(installation, home=tmp_path / "elsewhere")
    assert not restore(elsewhere, made.path).is_own
    assert restore(elsewhere, made.path).is_own, "it has the key now"


@pytest.mark.databases("sqlite")
def test_an_unproven_backup_replaces_tables_only_if_that_is_accepted(
    installation: Config, tmp_path: Path
) -> None:
    made = make_backup(installation, tmp_path / "one.backup")
    job, notes = make_job(job_desc="earlier"), list[str]()
    archive.extract(made.path, made.manifest, "database.sqlite", copy := tmp_path / "database.sqlite")
    files = {"database.sqlite": made.manifest.files["database.sqlite"]}
    alterations: list[dict[str, Any]] = [{"format": 2}, {"key_fingerprint": "", "secrets": {}}]
    for number, alteration in enumerate(alterations):
        manifest = replace(made.manifest, files=files, **alteration)
        archive.write_archive(path := tmp_path / f"{number}.backup", manifest, {copy.name: copy})
        options = Options(replace_all=True, notify=notes.append)
        with pytest.raises(NotConfigured, match="cannot be proven.*: --accept-unproven"):
            restore(installation, path, options)
        assert (only_row(Job).id, notes) == (job.id, [UNPROVEN])
        notes.clear()
    assert not restore(installation, path, replace(options, accepts_unproven=True)).is_own
    assert (all_rows(Job), notes) == ([], [UNPROVEN])
