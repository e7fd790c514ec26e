"""Restarts: runs of restarted or unreachable executors are probed at once, runs of dead nodes are freed."""

from typing import Any

import pytest

from app.database.engine import transact
from app.domain.enums import NodeKind
from app.domain.runs.evidence import Fate
from app.models.fire import Fire
from app.pipeline.resolve import LEASE_ROWS, expire_leases
from app.settings.config import Config
from app.store.fires import open as open_fires
from tests.pipeline.steps import GONE, claim_one, open_run, record_sent, register, sent, start_node
from tests.support.factories import SECOND, T0, all_rows, make_fire, make_job, only_row
from tests.support.plan import every_database

pytestmark = every_database


@pytest.mark.parametrize(
    ("state", "changes", "brought_forward"),
    [
        ("ACCEPTED", {}, True),
        ("ACCEPTED", {"boot_id": "boot-1"}, True),
        ("ACCEPTED", {"boot_id": "boot-2"}, False),
        ("ACCEPTED", {"probe_count": 1}, False),
        ("ACCEPTED", {"where": GONE.rstrip("/")}, True),
        ("ACCEPTED", {"where": SECOND}, False),
        ("UNKNOWN", {}, False),
        ("SENDING", {}, False),
    ],
)
def test_a_new_boot_id_brings_the_first_probes_forward(
    database: str, state: str, changes: dict[str, Any], brought_forward: bool
) -> None:
    register(GONE, "boot-1")
    columns = {name: value for name, value in changes.items() if name != "where"}
    open_run(changes.get("where", GONE), state, **{"deadline_ms": T0 + 9_000, **columns})
    register(GONE, "boot-1", now_ms=T0 + 1_000)
    assert only_row(Fire).deadline_ms == T0 + 9_000, "the same boot id"
    register(GONE, "boot-2", now_ms=T0 + 2_000)
    assert only_row(Fire).deadline_ms == (T0 + 2_000 if brought_forward else T0 + 9_000)


def test_a_new_registration_counts_as_a_restart(database: str) -> None:
    open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000)
    register(GONE, "", now_ms=T0 + 1_000)
    assert only_row(Fire).deadline_ms == T0 + 1_000
    transact(lambda session: session.query(Fire).update({"deadline_ms": T0 + 9_000}))
    register(GONE, "", now_ms=T0 + 2_000)
    assert only_row(Fire).deadline_ms == T0 + 9_000, "a heartbeat of a foreign executor"


def test_a_refused_connection_brings_the_first_probes_forward(database: str) -> None:
    job = make_job(addresses=GONE)
    make_fire(job)
    claimed = claim_one()
    waiting = open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000)
    probed = open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000, probe_count=2)
    elsewhere = open_run(SECOND, "ACCEPTED", deadline_ms=T0 + 9_000)
    record_sent(sent(claimed, Fate.REFUSED)._replace(unreachable=(GONE,)), now_ms=T0 + 100)
    deadlines = {fire.log_id: fire.deadline_ms - T0 for fire in all_rows(Fire)}
    assert deadlines == {waiting.id: 100, probed.id: 9_000, elsewhere.id: 9_000}


def test_of_very_many_runs_the_oldest_are_probed_first(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_fires, "SOON_MAX", 2)
    job = make_job(addresses=GONE)
    runs = [open_run(GONE, "ACCEPTED", job, deadline_ms=T0 + 9_000) for _ in range(3)]
    register(GONE, "boot-1", now_ms=T0 + 1_000)
    deadlines = {fire.log_id: fire.deadline_ms - T0 for fire in all_rows(Fire)}
    assert deadlines == {runs[0].id: 1_000, runs[1].id: 1_000, runs[2].id: 9_000}


def test_expired_leases_and_rows_of_a_dead_node_are_freed_at_once(database: str, config: Config) -> None:
    start_node("dead", NodeKind.WORKERS, T0 - 2_600)
    start_node("alive", NodeKind.WORKERS, T0)
    start_node("asking", NodeKind.WORKERS, T0 - 2_600)
    job = make_job()
    sending_row = {"job": job, "state": "SENDING", "deadline_ms": 0, "sent_ms": T0 - 1_000}
    of_dead = open_run(GONE, **sending_row, owner="dead", lease_until=T0 + 4_000)
    expired = open_run(GONE, **sending_row, owner="alive", lease_until=T0 - 1)
    sending = open_run(GONE, **sending_row, owner="alive", lease_until=T0)
    own_run = open_run(GONE, **sending_row, owner="asking", lease_until=T0 + 4_000)
    routing = make_fire(
        job, state="ROUTING", owner="dead", lease_until=T0 + 4_000, attempt=1, log_id=of_dead.id + 100
    )
    assert expire_leases(node="asking", now_ms=T0) == 3
    found = {fire.log_id: (fire.state, fire.attempt) for fire in all_rows(Fire)}
    assert found[of_dead.id] == found[expired.id] == ("UNKNOWN", 1)
    assert found[sending.id] == ("SENDING", 1)
    assert found[own_run.id] == ("SENDING", 1), "its heartbeats are late, but it is alive"
    assert found[routing.log_id or 0] == ("PENDING", 0)
    assert expire_leases(node="asking", now_ms=T0) == 0
    assert LEASE_ROWS >= 100
