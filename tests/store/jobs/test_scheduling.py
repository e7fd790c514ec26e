"""Jobs that start runs by themselves."""

from app.database.engine import read_scope
from app.store.jobs import shared_schedules as schedules
from tests.support.factories import make_job


def test_schedules_of_enabled_jobs_are_grouped(database: str) -> None:
    nightly = {
        "schedule_type": "CRON",
        "schedule_conf": "0 0 3 * * ?",
        "time_zone": "UTC",
        "not_before_ms": 5,
        "not_after_ms": 9,
    }
    rate = make_job(schedule_type="FIX_RATE", schedule_conf="60", trigger_status=1, trigger_next_time=77)
    later = make_job(schedule_type="FIX_RATE", schedule_conf="60", trigger_status=1, trigger_next_time=78)
    first_job, second_job = (
        make_job(**nightly, job_group=later.job_group, trigger_status=1, trigger_next_time=next_ms)
        for next_ms in (1, 2)
    )
    make_job(**nightly)
    make_job(schedule_type="NONE", trigger_status=1)
    with read_scope() as session:
        found = schedules.find_scheduled(session, None, limit=9)
        assert found == [
            (later.job_group, "CRON", "0 0 3 * * ?", "UTC", 5, 9, None, 0, 2, first_job.id),
            (rate.job_group, "FIX_RATE", "60", "", 0, 0, None, 77, 1, rate.id),
            (later.job_group, "FIX_RATE", "60", "", 0, 0, None, 78, 1, later.id),
        ]
        assert schedules.find_scheduled(session, None, limit=1) == found[:1]
        assert schedules.find_scheduled(session, [rate.job_group], limit=9) == [found[1]]
        assert schedules.find_scheduled(session, [], limit=9) == []
        assert schedules.find_of_schedule(session, None, found[0], limit=9) == [
            first_job.id,
            second_job.id,
        ]
        assert schedules.find_of_schedule(session, None, found[0], limit=1) == [first_job.id]
        assert schedules.find_of_schedule(session, [rate.job_group], found[0], limit=9) == []
        assert schedules.find_of_schedule(session, None, found[2], limit=9) == [later.id]
        assert (
            schedules.count_scheduled(session, None),
            schedules.count_scheduled(session, []),
        ) == (4, 0)
