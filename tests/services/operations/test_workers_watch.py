"""Watch of the workers: which notices a console sends, and when."""

from dataclasses import replace

import pytest

from app.clock import DAY_MS
from app.database.engine import session_scope
from app.domain.enums import NodeKind
from app.models.node import Node
from app.services.alarms.channels import Message
from app.services.operations.workers_watch import DEAD_AFTER_MS, PERIOD_MS, SILENT_AFTER_MS, WorkersWatch
from app.settings.config import Config
from tests.support.factories import T0, save

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def watch(config: Config) -> WorkersWatch:
    return WorkersWatch(replace(config, node_name="b"), lambda: True)


def start(name: str, kind: NodeKind = NodeKind.WORKERS) -> int:
    return save(Node(name=name, kind=kind, version="1", started_ms=T0, heartbeat_ms=T0, scanned_ms=T0)).id


def set_node(node_id: int, **times: int) -> None:
    with session_scope() as session:
        for name, value in times.items():
            setattr(session.get_one(Node, node_id), name, value)


def news(watch: WorkersWatch, from_ms: int, until_ms: int, *alive: int) -> list[tuple[int, str]]:
    """Look every period, while the nodes ``alive`` beat and scan; return time and title of each message."""
    messages: list[tuple[int, Message | None]] = []
    for at_ms in range(T0 + from_ms, T0 + until_ms, PERIOD_MS):
        for node_id in alive:
            set_node(node_id, heartbeat_ms=at_ms, scanned_ms=at_ms)
        messages.append((at_ms - T0, watch.find_news(at_ms)))
    return [(at_ms, message.title.removeprefix("[Duetime] ")) for at_ms, message in messages if message]


def test_workers_that_have_all_died_are_one_notice_and_so_is_their_return(watch: WorkersWatch) -> None:
    one = start("one")
    assert news(watch, 0, 600_000) == [(2 * PERIOD_MS + SILENT_AFTER_MS, "no scheduler is running")]
    assert news(watch, 600_000, 700_000, one) == [(600_000, "workers are running again")]


def test_scheduling_that_others_take_over_is_news_though_a_node_stays_dead(watch: WorkersWatch) -> None:
    start("one")
    assert len(news(watch, 0, 100_000)) == 1
    two = start("two")
    assert news(watch, 100_000, 300_000, two) == [(100_000, "workers are running again")]


def test_workers_that_die_beside_others_are_named(watch: WorkersWatch) -> None:
    start("one")
    two = start("two")
    died_ms = PERIOD_MS + DEAD_AFTER_MS
    assert news(watch, 0, 600_000, two) == [(died_ms, "one: workers have died")]


def test_workers_that_are_gone_for_good_are_forgotten_in_silence(watch: WorkersWatch) -> None:
    one, two = start("one"), start("two")
    assert [title for _, title in news(watch, 0, 200_000, two)] == ["one: workers have died"]
    set_node(one, heartbeat_ms=T0 - DAY_MS)
    assert news(watch, 200_000, 300_000, two) == []


def test_a_restart_is_no_news(watch: WorkersWatch) -> None:
    one = start("one")
    assert news(watch, 0, 60_000) == []
    assert news(watch, 60_000, 200_000, one) == []


def test_a_stop_of_all_workers_is_news_since_nothing_is_fired(watch: WorkersWatch) -> None:
    set_node(start("one"), heartbeat_ms=0)
    assert [title for _, title in news(watch, 0, 200_000)] == ["no scheduler is running"]


def test_an_installation_that_has_had_no_workers_yet_is_no_news(watch: WorkersWatch) -> None:
    assert news(watch, 0, 200_000) == []


def test_the_time_without_a_database_does_not_count(watch: WorkersWatch) -> None:
    start("one")
    assert news(watch, 0, 60_000) == []
    assert news(watch, 200_000, 250_000) == []


def test_the_first_console_that_is_alive_sends_the_notice(watch: WorkersWatch) -> None:
    start("one")
    first = start("a", NodeKind.CONSOLE)
    for at_ms in range(0, 300_000, PERIOD_MS):
        set_node(first, heartbeat_ms=T0 + at_ms)
        assert watch.find_news(T0 + at_ms) is None
    assert [title for _, title in news(watch, 300_000, 400_000)] == ["no scheduler is running"]


def test_with_a_wrong_clock_nothing_is_looked_at(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = WorkersWatch(config, lambda: False)
    monkeypatch.setattr(watch, "find_news", lambda _at_ms: pytest.fail("it looked"))
    watch.tick(T0)
