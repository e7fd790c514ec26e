"""Locks, nodes and the clock of the database."""

import threading

import pytest
from sqlalchemy import text

from app.clock import DAY_MS, Millis, now_ms
from app.database.engine import read_scope, session_scope, transact
from app.domain.enums import NodeKind
from app.models.node import NODE_DEAD_MS, SCAN_MAX_MS
from app.pipeline.clocks.guard import PERIOD_MS, SKEW_MAX_MS, ClockGuard
from app.store.base import locks
from app.store.nodes import nodes
from app.store.nodes.nodes import database_now_ms
from tests.support.factories import T0, make_job


def start(name: str, at_ms: Millis = T0, kind: NodeKind = NodeKind.WORKERS, zone: str = "") -> int:
    return transact(
        lambda session: nodes.start_node(
            session, name, kind, version="1", token_fingerprint="f", now_ms=at_ms, time_zone=zone
        )
    )


def end(name: str, kind: NodeKind = NodeKind.WORKERS) -> None:
    transact(lambda session: nodes.end_node(session, name, kind))


def last_zone() -> str:
    with read_scope() as session:
        return nodes.find_last_zone(session.connection())


def live(at_ms: Millis) -> list[tuple[str, str]]:
    with read_scope() as session:
        return [(node.kind, node.name) for node in nodes.find_live(session, now_ms=at_ms)]


def test_each_start_of_a_node_increases_its_epoch(database: str) -> None:
    assert [start("one"), start("one", T0 + 5), start("two"), start("one", kind=NodeKind.CONSOLE)] == [
        1,
        2,
        1,
        1,
    ]


def test_a_node_is_alive_while_its_heartbeats_continue(database: str) -> None:
    start("one")
    start("one", kind=NodeKind.CONSOLE)
    start("two", T0 - 1)
    assert live(T0 + NODE_DEAD_MS) == [("console", "one"), ("workers", "one")]
    assert nodes.beat("two", NodeKind.WORKERS, now_ms=T0 + 100)
    assert ("workers", "two") in live(T0 + NODE_DEAD_MS)
    nodes.beat("two", NodeKind.WORKERS, now_ms=T0 + 100, skew_ms=-5_000)
    with read_scope() as session:
        assert [node.skew_ms for node in nodes.find_live(session, now_ms=T0)] == [0, 0, -5_000]
    assert not nodes.beat("three", NodeKind.WORKERS, now_ms=T0)
    end("one")
    assert ("workers", "one") not in live(T0)
    with read_scope() as session:
        assert nodes.find_dead(session, NodeKind.WORKERS, now_ms=T0 + 100) == ["one"]
        assert nodes.count_live(session, NodeKind.CONSOLE, now_ms=T0) == 1


def test_the_heartbeat_of_a_wrong_clock_is_judged_by_the_clock_of_the_database(database: str) -> None:
    for name, clock_ms in (("behind", T0 - 4_000), ("ahead", T0 + DAY_MS), ("killed", T0 - 60_000 + DAY_MS)):
        start(name, clock_ms)
        real_ms = T0 - 60_000 if name == "killed" else T0
        nodes.beat(name, NodeKind.WORKERS, now_ms=clock_ms, skew_ms=clock_ms - real_ms)
    assert live(T0 + NODE_DEAD_MS) == [("workers", "ahead"), ("workers", "behind")]
    with read_scope() as session:
        assert nodes.find_dead(session, NodeKind.WORKERS, now_ms=T0 + NODE_DEAD_MS) == ["killed"]


def test_the_schedule_lock_blocks_a_second_scheduler(database: str) -> None:
    order: list[str] = []
    holding = threading.Event()

    def second() -> None:
        holding.wait(10)
        with session_scope() as session:
            locks.take_schedule_lock(session)
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with session_scope() as session:
        locks.take_schedule_lock(session)
        holding.set()
        thread.join(0.15)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_jobs_are_locked_in_id_order(database: str) -> None:
    ids = [make_job().id for _ in range(3)]
    with session_scope() as session:
        assert [job.id for job in locks.lock_jobs(session, [ids[2], 4711, ids[0]])] == [ids[0], ids[2]]


def test_the_clock_of_the_server_matches_this_host(database: str, database_kind: str) -> None:
    with read_scope() as session:
        server_ms = database_now_ms(session)
    if database_kind == "sqlite":
        assert server_ms is None
    else:
        assert server_ms is not None
        assert abs(server_ms - now_ms()) < 5_000


def test_a_node_whose_clock_is_years_behind_is_listed_until_it_ends(database: str) -> None:
    """Hosts without a battery-backed clock start in 1970; the list must show why nothing fires."""
    start("board", at_ms=5_000)
    nodes.beat("board", NodeKind.WORKERS, now_ms=6_000, skew_ms=6_000 - T0)

    def seen() -> list[str]:
        with read_scope() as session:
            return [node.name for node in nodes.find_nodes(session, seen_after_ms=T0 - 1_000)]

    assert seen() == ["board"]
    end("board")
    assert seen() == []


def test_the_last_zone_is_that_of_the_node_last_seen_however_it_stopped(database: str) -> None:
    assert last_zone() == ""
    start("killed", T0, zone="UTC")
    nodes.beat("killed", NodeKind.WORKERS, now_ms=T0 + 100)
    start("stopped", T0 + 200, zone="Asia/Tokyo")
    end("stopped")
    start("older", T0 + 300)
    assert last_zone() == "Asia/Tokyo"
    start("killed", T0 + 400, zone="Asia/Shanghai")
    end("killed")
    assert last_zone() == "Asia/Shanghai"
    nodes.beat("stopped", NodeKind.WORKERS, now_ms=T0 + 500)
    assert last_zone() == "Asia/Tokyo"


#: time zone in MySQL's tables: Berlin with its transition of October 2024; the ids are unused otherwise
TWICE_S = (1_729_989_000, 1_729_992_600)
ZONE_ROWS = [
    "time_zone (Time_zone_id, Use_leap_seconds) VALUES (9001, 'N')",
    "time_zone_name (Name, Time_zone_id) VALUES ('Test/Berlin', 9001)",
    "time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST)"
    " VALUES (9001, 0, 7200, 1), (9001, 1, 3600, 0)",
    "time_zone_transition (Time_zone_id, Transition_time, Transition_type_id)"
    " VALUES (9001, 1711846800, 0), (9001, 1729990800, 1)",
]


def test_the_clock_of_a_server_is_right_in_the_repeated_hour(database: str, database_kind: str) -> None:
    """Its local time, half past two, occurs in summer time and again in winter time."""
    if database_kind not in ("mariadb", "mysql"):
        pytest.skip("about MySQL and MariaDB")
    with session_scope() as session:
        for row in ZONE_ROWS:
            session.execute(text(f"INSERT IGNORE INTO mysql.{row}"))
    with session_scope() as session:
        session.execute(text("SET time_zone = 'Test/Berlin'"))
        for instant_s in TWICE_S:
            session.execute(text(f"SET timestamp = {instant_s}"))
            assert session.scalar(text("SELECT CAST(NOW() AS CHAR)")) == "2024-10-27 02:30:00"
            assert database_now_ms(session) == instant_s * 1_000
        session.execute(text("SET timestamp = DEFAULT, time_zone = DEFAULT"))


@pytest.mark.parametrize(
    ("off_ms", "trusted"),
    [(0, True), (-SKEW_MAX_MS + 300, True), (SKEW_MAX_MS + 400, False), (-3_600_000, False)],
)
def test_a_wrong_clock_stops_scheduling(
    database: str, database_kind: str, off_ms: Millis, trusted: bool
) -> None:
    guard = ClockGuard(lambda: now_ms() + off_ms)
    assert guard.check() is (trusted or database_kind == "sqlite")


def test_a_corrected_clock_is_trusted_again(
    database: str, database_kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    if database_kind == "sqlite":
        pytest.skip("SQLite has no clock of its own")
    off, monotonic = [-5_000], [0]
    guard = ClockGuard(lambda: now_ms() + off[0], lambda: monotonic[0])
    assert not guard.check()
    off[0], monotonic[0] = 0, PERIOD_MS
    assert guard.check()
    assert "scheduling stopped" in caplog.text
    assert "scheduling resumed" in caplog.text


def test_a_jump_of_the_clock_is_compared_at_once(database: str, caplog: pytest.LogCaptureFixture) -> None:
    wall, monotonic = [now_ms()], [0]
    guard = ClockGuard(lambda: wall[0], lambda: monotonic[0])
    guard.check()
    wall[0], monotonic[0] = wall[0] + 60_000, 500
    guard.check()
    assert "clock jumped by_ms=59500" in caplog.text


def test_the_last_scan_is_that_of_any_node_by_a_clock_that_is_not_ahead(database: str) -> None:
    for name in ("one", "two", "ahead"):
        start(name)
    nodes.mark_scanned("one", now_ms=T0 + 1_000)
    nodes.mark_scanned("two", now_ms=T0 + 2_000)
    nodes.mark_scanned("ahead", now_ms=T0 + 900_000)
    with read_scope() as session:
        assert nodes.last_scan_ms(session, now_ms=T0) == T0 + 2_000
        assert nodes.last_scan_ms(session, now_ms=T0 - SCAN_MAX_MS) == 0


def test_whether_jobs_are_fired_is_judged_by_scans_and_not_by_heartbeats(database: str) -> None:
    """The monitor sends heartbeats, also while the scheduler hangs; it may hang itself."""

    def is_scheduling(at_ms: Millis) -> bool:
        with read_scope() as session:
            return nodes.is_scheduling(session, now_ms=at_ms)

    start("one")
    assert not is_scheduling(T0)
    nodes.mark_scanned("one", now_ms=T0)
    assert is_scheduling(T0 + SCAN_MAX_MS)
    nodes.beat("one", NodeKind.WORKERS, now_ms=T0 + SCAN_MAX_MS + 1)
    assert not is_scheduling(T0 + SCAN_MAX_MS + 1)
