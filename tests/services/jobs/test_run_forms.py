"""Run once by a form: sent again, it leads to the run it has queued."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from app.database.engine import transact
from app.domain.access.permissions import system_actor
from app.domain.runs.trigger_keys import Trigger
from app.errors import InvalidInput
from app.models.fire import Fire
from app.services.jobs.run_forms import KEPT_MS, trigger_by_form
from tests.support.factories import T0, all_rows, make_group, make_job, save
from tests.support.plan import every_database

pytestmark = every_database

ACTOR = system_actor("test")


@pytest.fixture
def job_id(database: str) -> int:
    group = save(make_group())
    return save(make_job(job_group=group.id)).id


def send(job_id: int, **changes: Any) -> tuple[Trigger, bool]:
    """Send the form of a job."""
    form = {"form_key": "k", "executor_param": "day=1", "address_list": "", "actor": ACTOR, "now_ms": T0}
    return transact(partial(trigger_by_form, job_id=job_id, **(form | changes)))


def test_a_form_sent_again_leads_to_its_run(job_id: int) -> None:
    first, is_new = send(job_id)
    assert is_new
    assert send(job_id, now_ms=T0 + KEPT_MS) == (first, False)
    assert len(all_rows(Fire)) == 1
    assert send(job_id, now_ms=T0 + KEPT_MS + 1)[1]


@pytest.mark.parametrize(
    "change",
    [{"form_key": "l"}, {"executor_param": "day=2"}, {"actor": replace(ACTOR, user_id=7)}, {"repeats": 1}],
    ids=["form", "parameter", "user", "checkpoint"],
)
def test_another_form_makes_another_run(job_id: int, change: dict[str, Any]) -> None:
    first, _is_new = send(job_id)
    other, is_new = send(job_id, **change)
    assert is_new
    assert other != first
    assert len(all_rows(Fire)) == 2


def test_a_form_that_was_refused_is_sent_again_corrected_or_not(job_id: int) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput):
            send(job_id, address_list="not an address")
    assert send(job_id)[1]
