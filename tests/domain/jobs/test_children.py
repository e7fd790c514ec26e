"""Child jobs: how they are entered, and that none leads back to its parent."""

from collections.abc import Collection

import pytest

from app.domain.jobs.children import child_ids_text, leads_to, parse_child_ids
from app.errors import InvalidInput
from tests.support.truth_table import truth_table

FAMILY = {1: [2, 3], 2: [4], 3: [4, 5], 4: [], 5: [6], 6: [5], 7: [7, 99]}


def children_of(job_ids: Collection[int]) -> dict[int, list[int]]:
    return {job_id: FAMILY[job_id] for job_id in job_ids if job_id in FAMILY}


def parents_of(job_ids: Collection[int]) -> dict[int, list[int]]:
    return {
        job_id: [parent for parent, children in FAMILY.items() if job_id in children] for job_id in job_ids
    }


@truth_table(
    "text, ids",
    [("", []), (" ", []), (",,", []), ("12,15", [12, 15]), ("12,", [12]), ("-1,3,,", [-1, 3])],
)
def test_child_ids_are_parsed(text: str, ids: list[int]) -> None:
    assert parse_child_ids(text) == ids
    assert child_ids_text(ids) == ",".join(map(str, ids))


@truth_table("text", ["a", "1, 2", "1,,2", "1;2", "12345678901", "１"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_child_ids(text)
    assert refused.value.field == "childJobId"


@truth_table(
    "start, job_id, leads",
    [
        (1, 1, True),
        (2, 1, False),
        (1, 6, True),
        (5, 6, True),
        (6, 6, True),
        (4, 1, False),
        (5, 1, False),
        (7, 8, False),
        (7, 99, True),
    ],
)
def test_a_cycle_through_children_is_found(start: int, job_id: int, leads: bool) -> None:
    assert leads_to(start, job_id, children_of) is leads
    assert leads_to(start, job_id, children_of, parents_of) is leads


def test_the_search_stops_at_its_shorter_side() -> None:
    queried: list[Collection[int]] = []

    def chain(job_ids: Collection[int]) -> dict[int, list[int]]:
        queried.append(job_ids)
        return {job_id: [job_id + 1] for job_id in job_ids if job_id < 1_000}

    assert not leads_to(1, 5_000, chain, lambda job_ids: {job_id: [] for job_id in job_ids})
    assert len(queried) == 1
    assert leads_to(1, 1_000, chain, lambda job_ids: {job_id: [job_id - 1] for job_id in job_ids})
