"""Databases that have lost their last commits: noticed by the ids that were sent, settled once."""

import os
from pathlib import Path

import pytest
from sqlalchemy import delete, select, text

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.access.permissions import system_actor
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.lock import Lock
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline.sent_log_ids import SentLogIds, read_highest
from app.services.backups.lost_commits import CONFIRM_MS, CommitWatch, settle_lost
from app.services.backups.reconcile import IDS_A_SECOND, IDS_MIN
from app.settings.config import Config
from app.store.copies import whole_tables
from app.store.fires import queue as fires
from tests.support.factories import (
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    make_log,
    make_run,
    only_row,
)
from tests.support.plan import every_database

MINUTE: Millis = 60_000


class Node:
    """The watch of a node, with a clock of its own."""

    def __init__(self, home: Path, name: str = "node-1") -> None:
        self.now = 0
        self.sent = SentLogIds()
        config = Config(home=home, node_name=name)
        self.watch = CommitWatch(config, self.sent, lambda: self.now)

    def check(self, *, after_ms: Millis = 0) -> bool:
        self.now += after_ms
        return self.watch.check(lambda: T0)


def lose_commits(count: int) -> None:
    """Take the newest runs back, as a standby that was promoted lacks them."""
    with session_scope() as session:
        newest = select(JobLog.id).order_by(JobLog.id.desc()).limit(count)
        ids = list(session.scalars(newest))
        session.execute(delete(JobLog).where(JobLog.id.in_(ids)))
        last = min(ids) - 1
        if session.get_bind().dialect.name == "sqlite":
            session.execute(text(f"UPDATE sqlite_sequence SET seq = {last} WHERE name = 'xxl_job_log'"))
        elif session.get_bind().dialect.name == "postgresql":
            session.execute(text(f"SELECT setval(pg_get_serial_sequence('xxl_job_log', 'id'), {last})"))
        else:
            session.execute(text(f"ALTER TABLE xxl_job_log AUTO_INCREMENT = {last + 1}"))


def send_runs(node: Node, job: Job, count: int) -> list[int]:
    """Commit and send runs; return their ids."""
    ids = [make_log(job).id for _ in range(count)]
    assert node.sent.admit(ids, ids)
    return ids


def next_id() -> int:
    return make_log(make_job()).id


@pytest.mark.usefixtures("database")
def test_a_database_with_all_runs_is_left_alone(tmp_path: Path) -> None:
    job = make_due_job(T0 - MINUTE)
    run = make_run(job)
    node = Node(tmp_path)
    assert not node.sent.is_ahead
    assert node.check()
    assert node.sent.is_ahead
    assert Node(tmp_path).check(after_ms=CONFIRM_MS)
    assert (all_rows(Skip), len(all_rows(Fire)), next_id()) == ([], 1, run.id + 1)


@every_database
@pytest.mark.usefixtures("database")
def test_a_database_that_is_behind_at_the_start_is_settled_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = make_due_job(T0 - MINUTE, conf="60")
    run = make_run(job)
    lost = [make_log(job).id for _ in range(3)]
    assert Node(tmp_path).check()
    lose_commits(3)
    first, second = Node(tmp_path), Node(tmp_path, "node-2")
    assert not first.check()
    assert not second.check()
    assert all_rows(Skip) == []
    assert not first.check(after_ms=CONFIRM_MS)
    assert not first.sent.is_ahead
    assert second.check(after_ms=CONFIRM_MS)
    assert first.check()
    assert first.sent.is_ahead
    skip = only_row(Skip)
    assert (skip.job_id, skip.from_ms, skip.to_ms, skip.reason) == (job.id, T0 - MINUTE, T0, "lost")
    assert only_row(Job).trigger_next_time == T0 + MINUTE
    assert [(log.id, log.trigger_code) for log in all_rows(JobLog)] == [(run.id, 504)]
    assert next_id() > max(lost) + IDS_MIN
    assert (only_row(AuditEntry).action, caplog.text.count("commits settled newest_sent=")) == (
        "node.settled",
        1,
    )


@pytest.mark.usefixtures("database")
def test_a_database_that_is_behind_for_a_moment_is_not_settled(tmp_path: Path) -> None:
    first = make_log(make_job())
    node = Node(tmp_path)
    node.sent.note(first.id)
    assert node.check()
    node.sent.note(first.id + 1)
    assert not node.check()
    next_id()
    assert node.check(after_ms=CONFIRM_MS)
    assert all_rows(AuditEntry) == []


@pytest.mark.usefixtures("database")
def test_cleared_runs_are_not_lost(tmp_path: Path) -> None:
    logs = [make_log(make_job()) for _ in range(3)]
    assert Node(tmp_path).check()
    with session_scope() as session:
        session.execute(delete(JobLog))
    assert Node(tmp_path).check()
    assert next_id() == logs[-1].id + 1


@pytest.mark.usefixtures("database")
def test_another_database_under_an_old_home_is_not_behind(tmp_path: Path) -> None:
    make_log(make_job(), id=5_000)
    assert Node(tmp_path).check()
    with session_scope() as session:
        session.execute(delete(Lock).where(Lock.lock_name.startswith("database_id:")))
    lose_commits(1)
    assert Node(tmp_path).check()
    assert next_id() == 5_000


@pytest.mark.usefixtures("database")
def test_ids_given_again_while_running_stop_the_node_before_they_are_sent(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.check()
    assert node.sent.admit([7, 8], [7, 8])
    assert node.sent.admit([3, 9], [9]), "a run that was prepared or given back has an earlier id"
    assert not node.sent.admit([8], [8])
    assert not node.sent.is_ahead
    node.sent.trust(0)
    assert not node.sent.is_ahead, "the check began before"
    assert read_highest(tmp_path, node.sent.identity) == 9


@every_database
@pytest.mark.usefixtures("database")
def test_a_loss_that_a_claim_shows_is_settled_though_later_ids_are_stored(tmp_path: Path) -> None:
    """The claim gave more ids than were lost."""
    job = make_due_job(T0 - MINUTE, conf="60")
    node = Node(tmp_path)
    assert node.check()
    first, *lost = send_runs(node, job, 3)
    lose_commits(2)
    again = [make_run(job, state="PENDING").id for _ in range(4)]
    assert again[0] in range(first + 1, max(lost) + 1)
    assert again[-1] > max(lost)
    assert not node.sent.admit(again, again)
    assert not node.sent.admit([again[0]], []), "given back, it keeps its id"
    assert not node.check()
    assert not node.sent.is_ahead
    assert node.check()
    assert node.sent.is_ahead
    assert all_rows(Fire) == []
    assert next_id() > max(again) + IDS_MIN
    assert (only_row(AuditEntry).action, only_row(Skip).reason) == ("node.settled", "lost")


@every_database
@pytest.mark.usefixtures("database")
def test_a_loss_that_two_nodes_notice_is_settled_once(tmp_path: Path) -> None:
    job = make_job()
    nodes = [Node(tmp_path), Node(tmp_path / "other", "node-2")]
    for node in nodes:
        assert node.check()
        send_runs(node, job, 3)
    lose_commits(5)
    again = [make_run(job, state="PENDING").id for _ in range(4)]
    for node in nodes:
        assert not node.sent.admit(again, again)
    assert not nodes[0].check()
    assert nodes[0].check()
    make_run(job, state="PENDING", log={"id": max(again) + 1})  # committed after the settling
    new = make_run(job)
    assert not nodes[1].check()
    assert nodes[1].check()
    assert [fire.log_id for fire in all_rows(Fire)] == [new.id]
    assert only_row(AuditEntry).action == "node.settled"


@pytest.mark.databases("mariadb", "postgresql")
@pytest.mark.usefixtures("database")
def test_what_is_claimed_while_a_loss_is_settled_is_left_alone() -> None:
    job = make_job()
    old = make_run(job)
    in_claim, queued = (make_fire(job, trigger_type="MANUAL") for _ in range(2))
    new: list[JobLog] = []

    def claim_meanwhile() -> Millis:
        if not new:
            new.append(make_run(job))
        return T0

    with session_scope() as claim:
        fires.lock_pending(claim, [in_claim.id])
        done = settle_lost(actor=system_actor("test"), clock=claim_meanwhile, up_to_id=0)
    assert done is not None
    assert (done.fires.open_runs, done.fires.queued) == (1, 1)
    assert [fire.id for fire in all_rows(Fire) if fire.log_id in (None, new[0].id)] == [
        in_claim.id,
        only_row(Fire, log_id=new[0].id).id,
    ]
    assert all_rows(Fire, id=queued.id) == []
    assert [(log.id, log.trigger_code) for log in all_rows(JobLog)] == [(old.id, 504), (new[0].id, 200)]


def test_files_of_nodes_that_are_gone_for_long_are_removed_unless_they_have_the_highest_id(
    tmp_path: Path,
) -> None:
    for name, log_id in (("gone", 5), ("running", 6), ("highest", 9)):
        ids = SentLogIds()
        ids.open(tmp_path, name, "db")
        ids.note(log_id)
    files = sorted((tmp_path / "sent_log_ids").iterdir(), key=lambda path: path.read_text())
    for path in (files[0], files[2]):
        os.utime(path, (0, 0))
    SentLogIds().open(tmp_path, "new", "db")
    assert [path.exists() for path in files] == [False, True, True]
    assert read_highest(tmp_path, "db") == 9


@pytest.mark.usefixtures("database")
def test_a_home_that_cannot_be_written_costs_only_the_memory_of_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "sent_log_ids").touch()
    node = Node(tmp_path)
    assert node.check()
    assert node.sent.admit([7], [7])
    assert node.sent.highest == 7


@pytest.mark.usefixtures("database")
def test_settling_by_hand_leaves_out_the_ids_of_the_time() -> None:
    run = make_run(make_job())
    done = settle_lost(actor=system_actor("test"), clock=lambda: T0, up_to_id=0, since_ms=T0 - MINUTE)
    assert done is not None
    assert (done.fires.open_runs, only_row(JobLog).trigger_code) == (1, 504)
    assert next_id() == done.next_log_id == run.id + IDS_MIN + 60 * IDS_A_SECOND + 1


@every_database
@pytest.mark.usefixtures("database")
def test_ids_are_left_out_in_the_transaction() -> None:
    before = next_id()
    transact(lambda session: whole_tables.skip_log_ids(session.connection(), 100, beyond=before + 50))
    with read_scope() as session:
        assert whole_tables.last_log_id(session.connection()) == before + 150
    assert next_id() == before + 151
