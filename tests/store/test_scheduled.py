"""Which jobs start runs by themselves."""

from app.db import read_scope
from app.store import jobs
from tests.factories import make_job


def test_enabled_jobs_with_a_schedule_by_group(database: str) -> None:
    cron = make_job(schedule_type="CRON", schedule_conf="0 0 3 * * ?", trigger_status=1, time_zone="UTC", not_before_ms=5, not_after_ms=9)
    rate = make_job(schedule_type="FIX_RATE", schedule_conf="60", trigger_status=1, trigger_next_time=77)
    make_job(schedule_type="CRON", schedule_conf="0 0 3 * * ?", trigger_status=0)
    make_job(schedule_type="NONE", trigger_status=1)
    with read_scope() as session:
        found = jobs.find_scheduled(session, None, limit=9)
        assert [job.id for job in found] == [cron.id, rate.id]
        assert found[0][1:6] == ("CRON", "0 0 3 * * ?", "UTC", 5, 9)
        assert found[1][1:] == ("FIX_RATE", "60", "", 0, 0, 77)
        assert [job.id for job in jobs.find_scheduled(session, None, limit=1)] == [cron.id]
        assert [job.id for job in jobs.find_scheduled(session, [rate.job_group], limit=9)] == [rate.id]
        assert jobs.find_scheduled(session, [], limit=9) == []
        assert jobs.count_scheduled(session, None) == 2
        assert jobs.count_scheduled(session, []) == 0
