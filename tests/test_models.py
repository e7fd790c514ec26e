"""Time columns, and values that models derive from their columns."""

import pytest
from sqlalchemy import text

from app.clock import DAY_MS, Millis
from app.database.engine import read_scope, session_scope
from app.models.base import as_stored, local_datetime, lower_bound, upper_bound, use_zone, zone_name
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.node import NODE_DEAD_MS, SKEW_MAX_MS, Node
from app.store.runs.recent import find_newest_of_jobs
from tests.support.factories import BERLIN_FIRST_TWO, BERLIN_SECOND_TWO, T0, make_job, make_log, only_row


@pytest.mark.parametrize(
    ("zone", "millis", "stored", "read"),
    [
        ("Asia/Shanghai", T0, "2024-05-01 11:04:05", T0),
        ("Asia/Shanghai", T0 + 999, "2024-05-01 11:04:05", T0),
        ("UTC", T0 - 1, "2024-05-01 03:04:04", T0 - 1000),
        ("America/New_York", T0, "2024-04-30 23:04:05", T0),
        ("UTC", 1_714_607_999_999, "2024-05-01 23:59:59", 1_714_607_999_000),
        ("Europe/Berlin", BERLIN_FIRST_TWO, "2024-10-27 02:00:00", BERLIN_FIRST_TWO),
        (
            "Europe/Berlin",
            BERLIN_SECOND_TWO,
            "2024-10-27 02:00:00",
            BERLIN_FIRST_TWO,
        ),  # the first of two equal local times
        ("UTC", 0, "1970-01-01 00:00:00", 0),
    ],
)
def test_a_datetime_column_holds_local_time_in_whole_seconds(
    database: str, zone: str, millis: Millis, stored: str, read: Millis
) -> None:
    use_zone(zone)
    assert zone_name() == zone
    make_log(make_job(), trigger_time=millis)
    with read_scope() as session:
        raw = session.execute(text("SELECT trigger_time FROM xxl_job_log")).scalar_one()
    assert str(raw)[:19] == stored
    assert only_row(JobLog).trigger_time == read
    assert str(local_datetime(millis)) == stored
    assert as_stored(millis) == read


@pytest.mark.parametrize(
    ("zone", "back", "length"),
    [("Europe/Berlin", BERLIN_SECOND_TWO, 3_600_000), ("Australia/Lord_Howe", 1_712_415_600_000, 1_800_000)],
)
def test_bounds_leave_out_no_time_that_occurs_twice(
    database: str, zone: str, back: Millis, length: Millis
) -> None:
    use_zone(zone)
    start, end = back - length, back - 1_000
    assert [lower_bound(at_ms) for at_ms in (start - 1, start, end, back)] == [start - 1, back, back, back]
    assert [upper_bound(at_ms) for at_ms in (end, back, end + length, back + length)] == [
        *(end, end, end),
        back + length,
    ]


MINUTE, FIRST, SECOND = 60_000, BERLIN_FIRST_TWO, BERLIN_SECOND_TWO


@pytest.mark.parametrize(
    ("due_ms", "triggered_ms", "ended_ms", "duration_ms", "read"),
    [
        (SECOND + 500, SECOND, SECOND + MINUTE, MINUTE, (SECOND, SECOND + MINUTE)),
        (SECOND - 1, SECOND, SECOND + 90 * MINUTE, None, (SECOND, SECOND + 90 * MINUTE)),
        (FIRST, FIRST, SECOND + MINUTE, 61 * MINUTE, (FIRST, SECOND + MINUTE)),
        (FIRST, FIRST + MINUTE, SECOND, None, (FIRST + MINUTE, SECOND)),
        (None, SECOND, SECOND + MINUTE, MINUTE, (FIRST, FIRST + MINUTE)),  # nothing tells the two apart
        (None, FIRST + MINUTE, FIRST, 40, (FIRST + MINUTE, FIRST)),  # clocks of two nodes
        (T0 + 500, T0, T0 + MINUTE, MINUTE, (T0, T0 + MINUTE)),
        (T0, None, None, None, (None, None)),
    ],
)
def test_the_times_of_a_run_in_the_hour_that_occurs_twice_are_those_that_fit(
    database: str,
    due_ms: Millis | None,
    triggered_ms: Millis | None,
    ended_ms: Millis | None,
    duration_ms: Millis | None,
    read: tuple[Millis | None, Millis | None],
) -> None:
    use_zone("Europe/Berlin")
    times = {"fire_time": due_ms, "trigger_time": triggered_ms, "handle_time": ended_ms}
    make_log(make_job(), **times, duration_ms=duration_ms)
    log = only_row(JobLog)
    assert (log.started_ms, log.ended_ms) == read


def test_no_time_is_null(database: str) -> None:
    make_log(make_job(), trigger_time=None)
    assert only_row(JobLog).trigger_time is None


@pytest.mark.databases("mariadb")
@pytest.mark.parametrize("zero", ["0000-00-00 00:00:00", "2024-00-00 00:00:00"])
def test_a_date_of_mysql_that_is_none_is_null(database: str, zero: str) -> None:
    job = make_job()
    log = make_log(job, trigger_time=T0, handle_code=200)
    with session_scope() as session:
        session.execute(text("SET SESSION sql_mode = ''"))  # which MySQL's default would refuse
        session.execute(text("UPDATE xxl_job_log SET handle_time = :zero"), {"zero": zero})
        session.execute(text("UPDATE xxl_job_info SET add_time = :zero"), {"zero": zero})
        assert session.execute(text("SELECT CAST(:zero AS DATETIME)"), {"zero": zero}).scalar() is None
    assert only_row(JobLog).handle_time is None
    assert only_row(Job).add_time is None
    with read_scope() as session:
        newest = find_newest_of_jobs(session, [job.id], group_ids=None, limit=1)
    assert [(run.id, run.handle_time) for run in newest[job.id]] == [(log.id, None)]


def test_times_are_compared_as_stored(database: str) -> None:
    make_log(make_job(), trigger_time=T0 + 700)
    with read_scope() as session:
        found = (
            session.query(JobLog)
            .filter(JobLog.trigger_time <= T0 + 100, JobLog.trigger_time >= T0 + 900)
            .count()
        )
    assert found == 1


@pytest.mark.parametrize(
    ("text_", "addresses"), [(None, []), ("", []), (" , ", []), ("a,b", ["a", "b"]), (" a , ,b,", ["a", "b"])]
)
def test_the_addresses_of_a_group(text_: str | None, addresses: list[str]) -> None:
    assert Group(address_list=text_).addresses == addresses


@pytest.mark.parametrize(("text_", "ids"), [(None, []), ("", []), ("7,8", [7, 8]), ("x,-1, 7,７,8", [8])])
def test_the_children_of_a_job(text_: str | None, ids: list[int]) -> None:
    assert Job(child_jobid=text_).child_ids == ids


@pytest.mark.parametrize(
    ("heartbeat_ms", "skew_ms", "alive"),
    [
        (T0, 0, True),
        (T0 - NODE_DEAD_MS, 0, True),
        (T0 - NODE_DEAD_MS - 1, 0, False),
        (T0 - DAY_MS, -DAY_MS, True),  # its clock is behind
        (T0 + DAY_MS, DAY_MS, True),
        (T0, DAY_MS, True),  # this host's clock is ahead as much
        (T0 + DAY_MS - NODE_DEAD_MS - 1, DAY_MS, False),  # killed, its clock was ahead
        (T0 + SKEW_MAX_MS, 10_000, True),  # the database's is behind, this host's nearly right
        (0, 0, False),  # stopped in order
    ],
)
def test_whether_a_node_is_alive(heartbeat_ms: Millis, skew_ms: Millis, alive: bool) -> None:
    assert Node(heartbeat_ms=heartbeat_ms, skew_ms=skew_ms).is_alive(T0) == alive
