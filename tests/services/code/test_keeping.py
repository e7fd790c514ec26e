"""What is archived and how long it is kept, in jobs as code."""

import pytest

from app.domain.archive.kinds import KEEPING
from app.models.group import Group
from app.models.job import Job
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, shown
from tests.support.code import drift
from tests.support.factories import only_row

pytestmark = pytest.mark.usefixtures("database")

KEPT = {"log_archive": "all", "log_days": 7, "run_days": 3}
DOCUMENT = {
    "groups": {"sample": {"title": "Sample", "log_archive": "failed", "log_days": 90, "run_days": 365}},
    "jobs": {"sample/close": {**CLOSE, **NIGHTLY, **KEPT}},
}


def test_what_is_kept_is_applied_to_jobs_and_groups() -> None:
    apply(DOCUMENT)
    assert (shown(plan(DOCUMENT)), drift()) == ([], [])
    job, group = only_row(Job), only_row(Group)
    assert {name: getattr(job, name) for name in KEEPING} == KEPT
    assert (group.log_archive, group.log_days, group.run_days) == ("failed", 90, 365)
