"""What earlier runs give to later ones: the parent of a run through its retries."""

import pytest

from app.database.engine import read_scope
from app.store.fires import earlier_runs
from tests.support.factories import make_job, make_log
from tests.support.plan import every_database

pytestmark = every_database


def test_a_chain_of_retries_is_followed_to_its_parent_but_not_for_ever(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    parent = make_log(job)
    runs = [make_log(job, trigger_type="PARENT", source_log_id=parent.id)]
    for _ in range(3):
        runs.append(make_log(job, trigger_type="RETRY", source_log_id=runs[-1].id))
    ids = [run.id for run in runs]
    with read_scope() as session:
        assert earlier_runs.find_parents(session, ids) == dict.fromkeys(ids, parent.id)
        monkeypatch.setattr(earlier_runs, "RETRIES_FOLLOWED", 2)
        assert earlier_runs.find_parents(session, ids) == dict.fromkeys(ids[:3], parent.id)
