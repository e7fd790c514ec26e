"""Paths between jobs, and cycles of them."""

from collections.abc import Collection, Mapping

import pytest

from app.domain.rounds.cycles import FollowersOf, find_cycles, find_path, reachable

LINKS: dict[int, tuple[int, ...]] = {1: (2, 3), 2: (4,), 3: (4, 9), 4: (5,), 5: (4,), 7: (7,), 9: (99,)}


def of(links: Mapping[int, Collection[int]]) -> FollowersOf:
    return lambda ids: {job_id: links[job_id] for job_id in ids if job_id in links}


@pytest.mark.parametrize(
    ("start", "goal", "path"),
    [
        (1, 1, [1]),
        (1, 4, [1, 2, 4]),
        (1, 99, [1, 3, 9, 99]),
        (4, 1, []),
        (5, 4, [5, 4]),
        (8, 1, []),
        (7, 7, [7]),
    ],
)
def test_the_shortest_path_leads_from_one_job_to_another(start: int, goal: int, path: list[int]) -> None:
    assert find_path(start, goal, of(LINKS)) == path


@pytest.mark.parametrize(
    ("starts", "most", "found", "is_cut"),
    [
        ([1], 100, {1, 2, 3, 4, 5, 9, 99}, False),
        ([4], 100, {4, 5}, False),
        ([1], 3, {1, 2, 3}, True),
        ([1], 7, {1, 2, 3, 4, 5, 9, 99}, False),
        ([1, 7], 1, {1, 7}, True),
        ([8], 1, {8}, False),
    ],
)
def test_all_that_follow_are_found_up_to_a_number(
    starts: list[int], most: int, found: set[int], is_cut: bool
) -> None:
    assert reachable(starts, of(LINKS), most=most) == (found, is_cut)


@pytest.mark.parametrize(
    ("links", "cycles"),
    [
        (LINKS, [[4, 5], [7]]),
        ({1: (2,), 2: (3,), 3: ()}, []),
        ({1: (2,), 2: (3,), 3: (1, 4), 4: (1,)}, [[1, 2, 3]]),
        ({8: (6,), 6: (8, 5), 5: (1,)}, [[6, 8]]),
    ],
)
def test_each_cycle_is_found_once(links: dict[int, tuple[int, ...]], cycles: list[list[int]]) -> None:
    assert find_cycles(links, most=10) == cycles


def test_the_search_for_cycles_is_quick_and_ends() -> None:
    chain = {number: (number + 1,) for number in range(20_000)} | {20_000: (19_999,)}
    assert find_cycles(chain, most=10) == [[19_999, 20_000]]
    assert len(find_cycles({number: (number,) for number in range(30)}, most=10)) == 10
