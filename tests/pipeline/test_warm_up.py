"""warm_up(): runs the whole pipeline once and leaves no trace."""

from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.warm_up import warm_up
from tests.pipeline.steps import claimer
from tests.support.factories import T0, all_rows, make_job, make_run
from tests.support.plan import every_database

pytestmark = every_database


def test_a_warm_up_leaves_nothing_behind(database: str) -> None:
    run = make_run(make_job())
    warm_up(claimer(), now_ms=T0)
    assert all_rows(Alarm) == []
    assert [log.id for log in all_rows(JobLog)] == [run.id]
    assert [len(all_rows(model)) for model in (Fire, Group, Job)] == [1, 1, 1]
