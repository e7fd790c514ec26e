"""Executors that were restarted, or refuse connections: the runs they had accepted are looked at at once."""

from dataclasses import replace
from typing import Any

import pytest

from app.db import transact
from app.domain.evidence import Fate
from app.models.fire import Fire
from tests.factories import SECOND, T0, all_rows, make_fire, make_job, only_row
from tests.pipeline.steps import claim_one, record_sent, sent
from tests.pipeline.test_resolve import GONE, open_run, register


@pytest.mark.parametrize(
    ("state", "changes", "brought_forward"),
    [
        ("ACCEPTED", {}, True),
        ("ACCEPTED", {"boot_id": "boot-1"}, True),
        ("ACCEPTED", {"boot_id": "boot-2"}, False),
        ("ACCEPTED", {"probe_count": 1}, False),
        ("ACCEPTED", {"where": SECOND}, False),
        ("UNKNOWN", {}, False),
        ("SENDING", {}, False),
    ],
)
def test_a_new_boot_brings_the_first_looks_forward(database: str, state: str, changes: dict[str, Any], brought_forward: bool) -> None:
    register(GONE, "boot-1")
    columns = {name: value for name, value in changes.items() if name != "where"}
    open_run(changes.get("where", GONE), state, **{"deadline_ms": T0 + 9_000, **columns})
    register(GONE, "boot-1", now_ms=T0 + 1_000)
    assert only_row(Fire).deadline_ms == T0 + 9_000, "the same boot"
    register(GONE, "boot-2", now_ms=T0 + 2_000)
    assert only_row(Fire).deadline_ms == (T0 + 2_000 if brought_forward else T0 + 9_000)


def test_whoever_registers_anew_has_been_restarted_too(database: str) -> None:
    open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000)
    register(GONE, "", now_ms=T0 + 1_000)
    assert only_row(Fire).deadline_ms == T0 + 1_000
    transact(lambda session: session.query(Fire).update({"deadline_ms": T0 + 9_000}))
    register(GONE, "", now_ms=T0 + 2_000)
    assert only_row(Fire).deadline_ms == T0 + 9_000, "a heartbeat of a foreign executor"


def test_a_refused_connection_brings_the_first_looks_forward(database: str) -> None:
    job = make_job(addresses=GONE)
    make_fire(job)
    claimed = claim_one()
    waiting = open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000)
    looked_at = open_run(GONE, "ACCEPTED", deadline_ms=T0 + 9_000, probe_count=2)
    elsewhere = open_run(SECOND, "ACCEPTED", deadline_ms=T0 + 9_000)
    record_sent(replace(sent(claimed, Fate.REFUSED), unreachable=(GONE,)), now_ms=T0 + 100)
    looks = {fire.log_id: fire.deadline_ms - T0 for fire in all_rows(Fire)}
    assert looks == {waiting.id: 100, looked_at.id: 9_000, elsewhere.id: 9_000}
