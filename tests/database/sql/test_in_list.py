"""The values of one parameter: found like those of an IN, whatever they contain."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from app.database.engine import read_scope
from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.models.fire import Fire
from app.store.fires import queue as fires
from tests.support.factories import make_fire, make_job
from tests.support.store_runs import plan

KEYS = ["cron:1:0", "it's", 'a "quote"', "100%", "%s :wanted ?", "back\\slash", "行 \U0001f600", "[1, 2]"]
_BY_KEY = select(Fire.fire_key).where(among(Fire.fire_key))
_BY_ID = select(Fire.id).where(among(Fire.id)).order_by(Fire.id)


@pytest.mark.parametrize("wanted", [[], ["none"], KEYS[:1], KEYS])
def test_texts_are_found_exactly(database: str, wanted: Sequence[str]) -> None:
    job = make_job()
    for key in KEYS:
        make_fire(job, fire_key=key)
    with read_scope() as session:
        found = {row.fire_key for row in bulk.read_rows(session, _BY_KEY, {WANTED: wanted})}
    assert found == set(wanted) & set(KEYS)


@pytest.mark.parametrize("count", [0, 1, 3, 2_000])
def test_ids_are_found(database: str, count: int) -> None:
    job = make_job()
    ids = [make_fire(job, fire_key=f"cron:{number}:0").id for number in range(3)]
    with read_scope() as session:
        wanted = [*ids, *range(10**6, 10**6 + 2_000)][:count]
        found = [row.id for row in bulk.read_rows(session, _BY_ID, {WANTED: wanted})]
    assert found == ids[:count]


@pytest.mark.databases("sqlite")
def test_a_claim_finds_its_fires_by_id(database: str) -> None:
    """Found by their state, each claim read all fires of the next seconds."""
    with read_scope() as session:
        steps = "; ".join(plan(session, lambda session: fires.lock_pending(session, [1, 2])))
    assert "PRIMARY KEY" in steps
    assert "ix_xxl_job_fire" not in steps
