"""Watch of the backfills: at which of them it looks."""

import pytest

from app.services.backfills.watch import LOOKS, Looks
from tests.services.backfills.backfill_steps import draft, minutely, start, states
from tests.services.backfills.test_steps import end_next
from tests.support.factories import T0
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")


@every_database
def test_a_backfill_is_looked_at_when_something_of_it_has_changed() -> None:
    looks = Looks(lambda: T0)
    backfill_ids = [start(minutely(), draft(3, 1)) for _ in range(2)]
    looks.look()
    with statements() as executed:
        looks.look()
    assert len(executed) == 1
    assert end_next()
    looks.look()
    assert [states(each) for each in backfill_ids] == [["succeeded", "running", "waiting"]] * 2


def test_all_backfills_are_looked_at_now_and_then() -> None:
    looks = Looks(lambda: T0)
    start(minutely(), draft(3, 1))
    for _ in range(LOOKS - 1):
        looks.look()
    with statements() as executed:
        looks.look()
    assert len(executed) > 1
