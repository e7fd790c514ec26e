"""scan(): due jobs become fires, skips and next times, exactly once under concurrency."""

import threading

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DataError

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.skip import Skip
from app.pipeline import scan as scan_module
from app.pipeline.scan import PAGE, PLANNING_MAX_MS, scan
from app.store.base import locks
from tests.support.factories import T0, all_rows, make_due_job, make_group, make_job, only_row, save
from tests.support.narrowed import changed_column
from tests.support.plan import every_database

pytestmark = every_database

ZONE = "Asia/Shanghai"


def scan_at(now_ms: Millis = T0, node: str = "one") -> list[tuple[int, int, Millis]]:
    """Scan and return the fires for the time ring, as plain values."""
    return [(fire.id, fire.job_id, fire.due_time) for fire in scan(node=node, zone=ZONE, now_ms=now_ms)]


def due_times(job: Job) -> list[Millis]:
    return [fire.due_time for fire in all_rows(Fire, job_id=job.id)]


def test_a_due_job_gets_its_fires_and_next_time_in_one_transaction(database: str) -> None:
    job = make_due_job(T0, conf="2")
    written = scan_at()
    fires = all_rows(Fire)
    assert written == [(fire.id, job.id, fire.due_time) for fire in fires]
    assert [fire.due_time for fire in fires] == [T0, T0 + 2000, T0 + 4000]
    assert [fire.fire_key for fire in fires] == [f"cron:{job.id}:{T0 + late}" for late in (0, 2000, 4000)]
    assert {
        (fire.state, fire.owner, fire.trigger_type, fire.log_id, fire.fail_retry_count) for fire in fires
    } == {("PENDING", "one", "CRON", None, -1)}
    after = only_row(Job)
    assert (after.trigger_next_time, after.trigger_last_time, after.last_fire_ms) == (
        T0 + 6000,
        T0 + 4000,
        T0 + 4000,
    )
    assert after.trigger_status == 1
    assert all_rows(Skip) == []


def test_a_second_scan_of_the_same_moment_writes_nothing(database: str) -> None:
    make_due_job(T0)
    assert len(scan_at()) == 1
    assert scan_at() == scan_at(node="two") == []
    assert len(all_rows(Fire)) == 1


@pytest.mark.parametrize(
    "overrides",
    [
        {"trigger_status": 0},
        {"trigger_next_time": T0 + 5001},
        {"trigger_next_time": AFTER_THE_CURRENT_RUN, "schedule_type": "FIX_DELAY"},
    ],
)
def test_jobs_that_are_not_due_are_left_alone(database: str, overrides: dict[str, object]) -> None:
    make_due_job(T0, **overrides)
    assert scan_at() == []
    assert all_rows(Fire) == []


def test_misfires_follow_each_strategy(database: str) -> None:
    skipping = make_due_job(T0 - 60_000)
    firing_once = make_due_job(T0 - 60_000, misfire_strategy="FIRE_ONCE_NOW")
    unknown = make_due_job(T0 - 60_000, misfire_strategy="WHATEVER")
    assert [(job_id, due_ms) for _, job_id, due_ms in scan_at()] == [(firing_once.id, T0)]
    fire = only_row(Fire)
    assert (fire.fire_key, fire.trigger_type, fire.due_time) == (
        f"misfire:{firing_once.id}:{T0}",
        "MISFIRE",
        T0,
    )
    skips = {
        skip.job_id: (skip.from_ms, skip.to_ms, skip.skipped, skip.reason, skip.recorded_ms)
        for skip in all_rows(Skip)
    }
    assert skips == {
        skipping.id: (T0 - 60_000, T0, 7, "misfire", T0),
        firing_once.id: (T0 - 60_000, T0 - 10_000, 6, "misfire", T0),
        unknown.id: (T0 - 60_000, T0, 7, "misfire", T0),
    }
    assert {(job.trigger_next_time, job.last_fire_ms) for job in all_rows(Job)} == {(T0 + 10_000, T0)}


def test_a_cron_uses_the_zone_of_the_job_or_the_configured_one(database: str) -> None:
    # 2024-05-01 11:04:05 in Shanghai, 05:04:05 in Berlin
    shanghai = make_due_job(T0, "CRON", "5 4 11 * * ?")
    berlin = make_due_job(T0, "CRON", "5 4 5 * * ?", time_zone="Europe/Berlin")
    scan_at()
    assert due_times(shanghai) == due_times(berlin) == [T0]
    assert {job.trigger_next_time for job in all_rows(Job)} == {T0 + 86_400_000}


def test_a_schedule_without_a_next_time_fires_and_then_stops(database: str) -> None:
    at = make_due_job(T0, "AT", "2024-05-01 11:04:05")
    ended = make_due_job(T0, conf="2", not_after_ms=T0 + 2500)
    scan_at()
    assert due_times(at) == [T0]
    assert due_times(ended) == [T0, T0 + 2000]
    for job in all_rows(Job):
        assert (job.trigger_status, job.trigger_next_time, job.trigger_last_time) == (0, 0, 0)
        assert job.last_fire_ms >= T0, "the last fired instant is kept for the next start"


def test_a_job_that_stops_by_itself_is_audited(database: str) -> None:
    ended = make_due_job(T0, "AT", "2024-05-01 11:04:05")
    broken = make_due_job(T0, "CRON", "every day")
    make_due_job(T0)
    scan_at(T0)
    entries = {entry.object_id: entry for entry in all_rows(AuditEntry)}
    assert set(entries) == {ended.id, broken.id}
    assert {(entry.action, entry.object_type, entry.user_id, entry.at_ms) for entry in entries.values()} == {
        ("job.ended", "job", None, T0)
    }
    assert "no next time" in (entries[ended.id].changes or "")
    assert "every day" in (entries[broken.id].changes or "")


def test_a_fixed_delay_fires_once_and_waits_for_its_result(database: str) -> None:
    job = make_due_job(T0 + 3000, "FIX_DELAY", "7")
    scan_at()
    assert due_times(job) == [T0 + 3000]
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN
    assert scan_at(T0 + 3_600_000) == []


@pytest.mark.parametrize(
    ("schedule_type", "conf", "zone"),
    [
        ("CRON", "no cron at all", ""),
        ("CRON", "", ""),
        ("CRON", None, ""),
        ("CRON", "0 0 0 * * *", ""),
        ("CRON", "0 * * * * ?", "Mars/Olympus"),
        ("FIX_RATE", "0", ""),
        ("FIX_RATE", "ten", ""),
        ("FIX_RATE", "-5", ""),
        ("FIX_RATE", None, ""),
        ("FIX_DELAY", "soon", ""),
        ("AT", "tomorrow", ""),
        ("BOGUS", "1", ""),
        ("NONE", "", ""),
    ],
)
def test_a_broken_schedule_stops_only_its_own_job(
    database: str, caplog: pytest.LogCaptureFixture, schedule_type: str, conf: str | None, zone: str
) -> None:
    before = make_due_job(T0 - 2)
    broken = make_due_job(T0 - 1, schedule_type, conf, time_zone=zone)
    after = make_due_job(T0)
    scan_at()
    assert due_times(before) == [T0 - 2]
    assert due_times(after) == [T0]
    stopped = only_row(Job, id=broken.id)
    assert (stopped.trigger_status, stopped.trigger_next_time) == (0, 0)
    if schedule_type in ("BOGUS", "NONE"):  # NONE is not a broken schedule: it has no next time
        return
    skip = only_row(Skip)
    assert (skip.job_id, skip.from_ms, skip.to_ms, skip.skipped, skip.reason) == (
        broken.id,
        T0 - 1,
        T0 - 1,
        1,
        "invalid",
    )
    assert due_times(broken) == []
    assert f"job stopped job_id={broken.id}" in caplog.text


def test_an_evaluator_that_fails_stops_only_its_own_job(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy, broken = make_due_job(T0), make_due_job(T0, "CRON", "0 0 0 1 1 ?")
    real = scan_module.next_after_ms

    def evaluate(schedule: scan_module.Schedule, after_ms: Millis) -> Millis | None:
        if schedule.type == "CRON":
            raise RecursionError("poison")
        return real(schedule, after_ms)

    monkeypatch.setattr(scan_module, "next_after_ms", evaluate)
    scan_at()
    assert due_times(healthy) == [T0]
    assert only_row(Skip).job_id == broken.id
    assert only_row(Job, id=broken.id).trigger_status == 0


@pytest.mark.databases("mariadb", "postgresql")
def test_a_job_whose_fires_cannot_be_written_stops_only_itself(database: str) -> None:
    with changed_column("xxl_job_fire", "fire_key", "varchar(22)", back="varchar(120)"):
        healthy, last, refused = make_due_job(T0), make_due_job(T0), make_due_job(T0, id=1_000_007)
        scan_at()
        assert (due_times(healthy), due_times(refused), due_times(last)) == ([T0], [], [T0])
    assert (only_row(Job, id=refused.id).trigger_status, only_row(Skip).reason) == (0, "invalid")
    assert "too long" in (only_row(AuditEntry).changes or "").lower()


def test_a_job_that_cannot_be_stopped_either_is_logged_once_a_minute(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_work: object) -> None:
        raise DataError("UPDATE", None, ValueError("too long"))

    job, clock_ms = make_due_job(T0), [0]
    monkeypatch.setattr(scan_module, "transact", refuse)
    monkeypatch.setattr(scan_module, "monotonic_ms", lambda: clock_ms[0])
    monkeypatch.setattr(scan_module, "_logged_ms", {}, raising=False)
    for clock_ms[0], count in ((0, 1), (1_000, 1), (60_000, 2)):
        scan_at()
        assert caplog.messages == [f"job not planned job_id={job.id}"] * count


def test_more_jobs_than_a_page_are_all_scanned(database: str) -> None:
    group = make_group()
    template = make_due_job(T0, job_group=group.id)
    count = 2 * PAGE + 1
    with session_scope() as session:
        columns = [column.name for column in Job.__table__.columns if column.name != "id"]
        row = {name: getattr(template, name) for name in columns}
        session.execute(Job.__table__.insert(), [row for _ in range(count - 1)])
    written = scan_at()
    assert len(written) == count
    assert len({job_id for _, job_id, _ in written}) == count
    with read_scope() as session:
        assert session.execute(text("SELECT COUNT(*) FROM xxl_job_fire")).scalar() == count
        assert (
            session.execute(
                text(f"SELECT COUNT(*) FROM xxl_job_info WHERE trigger_next_time = {T0 + 10_000}")
            ).scalar()
            == count
        )
    assert scan_at() == []


def test_a_page_that_takes_long_to_plan_is_written_and_the_next_scan_continues(database: str) -> None:
    """After a long outage a round of all schedules might outlast the watchdog's patience."""
    jobs = [make_due_job(T0 + late) for late in range(5)]
    ticks = iter(range(0, 100_000, PLANNING_MAX_MS // 2))  # half of it for each job
    scanned = [
        [fire.job_id for fire in scan(node="one", zone=ZONE, now_ms=T0, monotonic=lambda: next(ticks))]
        for _ in range(4)
    ]
    assert scanned == [[jobs[0].id, jobs[1].id], [jobs[2].id, jobs[3].id], [jobs[4].id], []]


def change_while_locked(database: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a change of the job between the scan's read and its lock."""
    real = locks.take_schedule_lock

    def before_the_lock(session: object) -> None:
        monkeypatch.setattr(locks, "take_schedule_lock", real)
        with session_scope() as other:
            other.execute(text(change))
        real(session)  # type: ignore[arg-type]

    if database.startswith(
        "sqlite"
    ):  # SQLite: the scan holds the whole database by then; change it as late as possible
        real_plan = scan_module._plan

        def late(job: object, zone: str, now_ms: Millis) -> object:
            monkeypatch.setattr(scan_module, "_plan", real_plan)
            with session_scope() as other:
                other.execute(text(change))
            return real_plan(job, zone, now_ms)  # type: ignore[arg-type]

        monkeypatch.setattr(scan_module, "_plan", late)
    else:
        monkeypatch.setattr(locks, "take_schedule_lock", before_the_lock)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE xxl_job_info SET trigger_status = 0, trigger_next_time = 0",
        f"UPDATE xxl_job_info SET trigger_next_time = {T0 + 3_600_000}",
        "UPDATE xxl_job_info SET schedule_conf = '3600'",
        "UPDATE xxl_job_info SET misfire_strategy = 'FIRE_ONCE_NOW'",
        "UPDATE xxl_job_info SET time_zone = 'Europe/Berlin'",
        f"UPDATE xxl_job_info SET not_after_ms = {T0 - 1}",
        "DELETE FROM xxl_job_info",
    ],
)
def test_a_job_changed_between_read_and_lock_is_left_alone(
    database: str, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    make_due_job(T0)
    change_while_locked(database, change, monkeypatch)
    assert scan_at() == []
    assert all_rows(Fire) == all_rows(Skip) == []
    for job in all_rows(Job):
        assert job.last_fire_ms == 0


def test_an_unrelated_change_does_not_void_the_plan(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = make_due_job(T0)
    change_while_locked(
        database, "UPDATE xxl_job_info SET job_desc = 'renamed', executor_param = 'x'", monkeypatch
    )
    scan_at()
    assert due_times(job) == [T0]
    assert only_row(Job).job_desc == "renamed"


def test_concurrent_scans_never_double(database: str) -> None:
    group = make_group()
    jobs = [make_due_job(T0 - 3000, conf="1", job_group=group.id) for _ in range(20)]
    late = [
        make_due_job(T0 - 50_000, conf="1", misfire_strategy="FIRE_ONCE_NOW", job_group=group.id)
        for _ in range(5)
    ]
    start = threading.Barrier(2)
    written: dict[str, list[tuple[int, int, Millis]]] = {}

    def work(node: str) -> None:
        start.wait()
        written[node] = [fire for step in range(3) for fire in scan_at(T0 + step * 1000, node)]

    threads = [threading.Thread(target=work, args=(node,)) for node in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for job in jobs:
        assert due_times(job) == list(range(T0 - 3000, T0 + 7001, 1000))
    for job in late:
        assert due_times(job) == list(range(T0, T0 + 7001, 1000))
        assert [skip.job_id for skip in all_rows(Skip, job_id=job.id)] == [job.id]
    handed_out = [fire_id for fires in written.values() for fire_id, _, _ in fires]
    assert sorted(handed_out) == [fire.id for fire in all_rows(Fire)], (
        "each fire is timed by exactly one node"
    )


def test_an_existing_fire_key_is_not_written_again(database: str) -> None:
    """A start was set back to before a fire still in progress: the instant keeps its row."""
    job = make_due_job(T0)
    save(
        Fire(
            job_id=job.id,
            fire_key=f"cron:{job.id}:{T0}",
            due_time=T0,
            trigger_type="CRON",
            state="ACCEPTED",
            log_id=1,
        )
    )
    assert scan_at() == []
    assert only_row(Job).trigger_next_time == T0 + 10_000
    assert only_row(Fire).state == "ACCEPTED"


def test_a_scan_without_due_jobs_takes_no_lock(database: str) -> None:
    make_job()
    with session_scope() as session:
        locks.take_schedule_lock(session)
        assert scan_at() == []


def test_the_lock_row_is_created_if_missing(database: str) -> None:
    with session_scope() as session:
        session.execute(text("DELETE FROM xxl_job_lock"))
    job = make_due_job(T0)
    scan_at()
    assert due_times(job) == [T0]
    with read_scope() as session:
        assert session.execute(text("SELECT lock_name FROM xxl_job_lock")).scalars().all() == [
            "schedule_lock"
        ]


def test_a_page_needs_few_statements(database: str) -> None:
    group = make_group()
    for _ in range(30):
        make_due_job(T0 - 30_000, misfire_strategy="FIRE_ONCE_NOW", job_group=group.id)
    statements: list[str] = []
    with session_scope() as session:
        engine = session.get_bind().engine

    def note(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        statements.append(sql)

    event.listen(engine, "before_cursor_execute", note)
    scan_at()
    event.remove(engine, "before_cursor_execute", note)
    assert len(all_rows(Fire)) == 30
    assert len([sql for sql in statements if not sql.startswith("BEGIN")]) <= 9, statements
