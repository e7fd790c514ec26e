"""With what the misfire strategy RUN_ALL goes."""

from dataclasses import replace
from typing import Any

from app.domain.jobs.fields import DEFAULTS
from app.domain.jobs.misfires import check_misfire
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


@truth_table(
    "values, fields",
    [
        ({"schedule_type": "CRON"}, []),
        ({"schedule_type": "FIX_RATE", "max_running": 2}, []),
        ({"schedule_type": "AT"}, []),
        ({"schedule_type": "FIX_DELAY"}, ["misfireStrategy"]),
        ({"when_full": "skip"}, ["whenFull"]),
        ({"when_full": "newest", "readable_by_java": True}, ["misfireStrategy", "whenFull"]),
        ({"when_full": "replace", "misfire_strategy": "FIRE_ONCE_NOW"}, []),
    ],
)
def test_what_all_that_was_missed_needs(values: dict[str, Any], fields: list[str]) -> None:
    draft = replace(DEFAULTS, **{"misfire_strategy": "RUN_ALL", "schedule_type": "CRON", **values})
    found: list[str] = []
    try:
        check_misfire(draft)
    except InvalidInput as exc:
        found = [error.field for error in exc.errors]
    assert found == fields
