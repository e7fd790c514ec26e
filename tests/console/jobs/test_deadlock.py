"""Deadlocks: a view whose transaction lost one runs again; after too many it fails."""

from unittest.mock import patch

import pytest
from sqlalchemy.exc import OperationalError

from app.database.engine import ATTEMPTS
from app.services.jobs import jobs
from tests.support.console import Console, add_group, add_job

DEADLOCK = OperationalError("UPDATE", {}, Exception(1213, "Deadlock found when trying to get lock"))


@pytest.mark.parametrize(("losses", "code"), [(1, 200), (ATTEMPTS - 1, 200), (ATTEMPTS, 500)])
def test_a_lost_deadlock_is_retried(admin: Console, losses: int, code: int) -> None:
    job_id = add_job(add_group(), start=True)
    stop = jobs.stop_job
    left = [DEADLOCK] * losses

    def losing(*arguments: object, **options: object) -> None:
        if left:
            raise left.pop()
        stop(*arguments, **options)  # type: ignore[arg-type]

    with patch.object(jobs, "stop_job", losing):
        assert admin.call("/jobinfo/stop", id=job_id)["code"] == code
