"""Heartbeats of the console: they say how wrong its clock is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest
from sqlalchemy import text, update

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.models.node import Node
from app.services.installation import nodes
from app.services.installation.nodes import Heartbeat
from app.settings.config import Config
from app.store.nodes import nodes as node_store
from tests.support.eventually import eventually
from tests.support.factories import T0, only_row, remove, save
from tests.support.plan import every_database

pytestmark = every_database


@contextmanager
def beating(config: Config) -> Iterator[Callable[[], int]]:
    """Run a console's heartbeat; yields what returns the clock difference of its row, in ms."""
    nodes.start(config, NodeKind.CONSOLE, now_ms=now_ms())
    heartbeat = Heartbeat(config, NodeKind.CONSOLE)
    heartbeat.start()
    try:
        yield lambda: only_row(Node).skew_ms
    finally:
        heartbeat.stop()


def test_a_console_reports_that_its_clock_is_wrong(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.services.installation.nodes.NODE_BEAT_MS", 20)
    monkeypatch.setattr("app.pipeline.clocks.guard.PERIOD_MS", 20)
    monkeypatch.setattr("app.pipeline.clocks.guard.STEADY_MS", 20)
    monkeypatch.setattr("app.pipeline.clocks.guard.database_now_ms", lambda _session: now_ms() - 600_000)
    with beating(config) as skew_ms:
        eventually(lambda: 599_000 < skew_ms() < 601_000)
        monkeypatch.setattr("app.pipeline.clocks.guard.database_now_ms", lambda _session: now_ms())
        eventually(lambda: abs(skew_ms()) < 1_000 and "clock correct again" in caplog.text)
    assert caplog.text.count("clock off, changes of jobs get wrong next times") == 1
    assert caplog.text.count("clock correct again") == 1


@pytest.mark.databases("sqlite")
def test_without_a_clock_to_compare_with_nothing_is_reported(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heartbeat = Heartbeat(config, NodeKind.CONSOLE)
    monkeypatch.setattr("app.services.installation.nodes.ClockGuard.look", lambda _guard: False)
    heartbeat._guard.compares, heartbeat._guard.skew_ms = False, 600_000
    assert heartbeat._compare_clocks() == 0
    assert caplog.text == ""


@pytest.mark.parametrize(("zone", "refused"), [("America/New_York", True), ("Etc/UTC", False), ("", False)])
def test_a_node_in_another_zone_than_a_live_one_refuses_to_start(
    database: str, config: Config, zone: str, refused: bool
) -> None:
    config = replace(config, time_zone="UTC")
    nodes.start(config, NodeKind.CONSOLE, now_ms=T0)
    with session_scope() as session:
        session.execute(update(Node).values(time_zone=zone))
    second = replace(config, node_name="two")
    with pytest.raises(NotConfigured) if refused else nullcontext() as caught:
        nodes.start(second, NodeKind.WORKERS, now_ms=T0)
    if caught is not None:
        assert "uses the time zone America/New_York, this one UTC" in str(caught.value)
    with pytest.raises(NotConfigured) if refused else nullcontext():
        nodes.require_same_zone(config, now_ms=T0)
    nodes.start(second, NodeKind.WORKERS, now_ms=T0 + 5_000)  # the other one has ended


@pytest.mark.parametrize(("zone", "refused"), [("America/New_York", True), ("Etc/UTC", False), ("", False)])
def test_a_program_in_another_zone_than_the_stopped_nodes_is_refused(
    database: str, config: Config, zone: str, refused: bool
) -> None:
    config = replace(config, time_zone="UTC")
    nodes.require_same_zone(config, now_ms=T0)
    nodes.start(replace(config, time_zone=zone), NodeKind.WORKERS, now_ms=T0)
    nodes.end(config, NodeKind.WORKERS)
    with pytest.raises(NotConfigured) if refused else nullcontext() as caught:
        nodes.require_same_zone(config, now_ms=T0)
    if caught is not None:
        assert "last used the time zone America/New_York, this program uses UTC" in str(caught.value)


@pytest.mark.parametrize(("zone", "expected_count"), [("America/New_York", 1), ("Etc/UTC", 0), ("", 0)])
def test_a_node_in_another_zone_than_the_stopped_nodes_says_so(
    database: str, config: Config, caplog: pytest.LogCaptureFixture, zone: str, expected_count: int
) -> None:
    config = replace(config, time_zone="UTC")
    nodes.start(replace(config, time_zone=zone), NodeKind.WORKERS, now_ms=T0)
    nodes.end(config, NodeKind.WORKERS)
    nodes.start(config, NodeKind.CONSOLE, now_ms=T0 + 5_000)
    nodes.start(config, NodeKind.WORKERS, now_ms=T0 + 5_000)
    assert caplog.text.count("time zone changed from=America/New_York to=UTC") == expected_count


def test_a_node_in_another_zone_that_starts_at_the_same_time_is_noticed(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(config, time_zone="UTC")
    other = Node(
        name="two", kind="workers", started_ms=T0, heartbeat_ms=T0, version="1", time_zone="Asia/Tokyo"
    )
    monkeypatch.setattr(nodes.sealed_tokens, "check", lambda _config: save(other))  # after the first look
    with pytest.raises(NotConfigured, match="uses the time zone Asia/Tokyo, this one UTC"):
        nodes.start(config, NodeKind.CONSOLE, now_ms=T0)
    with read_scope() as session:
        assert [node.name for node in node_store.find_live(session, now_ms=T0)] == ["two"]


@pytest.mark.databases("sqlite")
def test_a_node_that_stops_without_its_database_logs_a_line(
    database: str, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    nodes.start(config, NodeKind.WORKERS, now_ms=T0)
    with session_scope() as session:  # the pool gives out the same connection again
        session.execute(text("PRAGMA query_only=ON"))
    nodes.end(config, NodeKind.WORKERS)
    expected = "node not deregistered database_error=attempt to write a readonly database"
    assert [record.getMessage() for record in caplog.records] == [expected]


def test_a_node_whose_row_is_gone_registers_again(database: str, config: Config) -> None:
    nodes.start(config, NodeKind.CONSOLE, now_ms=T0)
    remove(only_row(Node))
    nodes.beat(config, NodeKind.CONSOLE, now_ms=T0 + 1_000)
    assert (only_row(Node).kind, only_row(Node).heartbeat_ms) == (NodeKind.CONSOLE, T0 + 1_000)
