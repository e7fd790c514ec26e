"""Backfills over all interleavings: each instant once in an attempt, in order, and nothing left at the end.

Source: docs/reference/backfills.md.
"""

from collections.abc import Callable

import pytest

from tests.services.backfills.backfill_world import World
from tests.support.plan import every_database

pytestmark = every_database


@pytest.mark.parametrize("seed", range(12))
def test_each_instant_has_its_run(database: str, seed: int) -> None:
    world = World(seed)
    steps: list[tuple[int, Callable[[], None]]] = [
        (6, world.make),
        (12, world.step),
        (4, world.step_all),
        (6, world.change),
        (10, world.pass_time),
        (20, world.claim),
        (5, world.record),
        (2, world.lose),
        (20, world.end),
        (2, world.kill),
        (4, world.unresolve),
        (2, world.end_late),
        (2, world.trigger),
        (2, world.edit),
        (1, world.switch),
        (1, world.black_out),
        (1, world.clear),
        (1, world.remove),
    ]
    for _ in range(160):
        world.random.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()
        world.check()
    world.settle()
