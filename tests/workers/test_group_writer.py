"""The writing thread: groups, what one bad item does to them, and a database that goes away between two of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.executors.gateway import Peer
from app.models.fire import Fire
from tests.factories import T0, make_fire, make_job
from tests.pipeline.steps import TOKEN, claim_one, sent
from workers.group_writer import GroupWriter


def write(items: Sequence[int], work: Any, answers: list[Any], **more: Any) -> None:
    """Write one group."""
    writer = GroupWriter()
    try:
        asyncio.run(_write(writer, items, work, answers, more))
    finally:
        writer.close()


async def _write(
    writer: GroupWriter, items: Sequence[int], work: Any, answers: list[Any], more: dict[str, Any]
) -> None:
    await writer.write(items, work, into=answers, **more)


def test_a_bad_item_spoils_only_itself(database: str) -> None:
    def work(session: Session, group: Sequence[int]) -> list[int]:
        if 5 in group:
            raise ValueError("five")
        return list(group)

    answers: list[list[int]] = []
    spoilt: list[int] = []
    write(range(8), work, answers, spoilt=spoilt.append)
    assert (answers, spoilt) == ([[0, 1, 2, 3], [4], [6, 7]], [5])


def test_what_was_committed_before_the_database_went_away_is_known(database: str) -> None:
    def work(session: Session, group: Sequence[int]) -> list[int]:
        if len(group) == 4:
            raise ValueError("one of them")
        if 3 in group:
            raise OperationalError("INSERT", {}, Exception("away"))
        session.get(Fire, 1)
        return list(group)

    answers: list[list[int]] = []
    with pytest.raises(OperationalError):
        write([1, 2, 3, 4], work, answers)
    assert answers == [[1, 2]]


def test_what_a_log_says_of_a_run_keeps_its_secrets(database: str) -> None:
    make_fire(make_job(executor_param="param-of-the-run", glue_source="source-of-the-run"))
    claimed = claim_one(now_ms=T0)
    text = repr(sent(claimed)) + repr(Peer("http://127.0.0.1:9/", "demo", TOKEN))
    assert f"log_id={claimed.log_id}" in text
    for secret in (TOKEN, "param-of-the-run", "source-of-the-run"):
        assert secret not in text
