"""Results of messages that cannot be stored at first: stored later, and no message is sent again for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy.exc import DataError, OperationalError

from app.clock import Millis
from app.database.engine import transact
from app.models.audit import AuditEntry
from app.models.mute import Mute
from app.services.alarms import deliveries
from app.services.alarms import notifier as alarm_service
from app.services.alarms.deliveries import ATTEMPTS_MAX, LEASE_MS
from app.services.alarms.notifier import AlarmNotifier
from app.services.alarms.texts import compose_clock
from app.settings.config import Config
from tests.support.alarms import (
    HOUR,
    MINUTE,
    WRONG,
    fail_run,
    hold_alarm,
    job_with_channels,
    mute,
    notifying,
    states,
    url_of,
)
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows
from tests.support.fake_executor import Answer, FakeExecutor

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Outage:
    """Lets the transactions of the notifier fail while the database is away."""

    is_away = True

    def transact(self, work: Callable[..., Any]) -> Any:
        if self.is_away:
            raise OperationalError("UPDATE", None, ConnectionError("away"))
        return transact(work)

    def fails(self, notifier: AlarmNotifier, now_ms: Millis) -> bool:
        """Run a round; return whether it met the outage."""
        try:
            notifier.tick(now_ms)
        except OperationalError:
            return True
        return False


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    outage = Outage()
    for module in (alarm_service, deliveries):
        monkeypatch.setattr(module, "transact", outage.transact)
    return outage


def audited() -> list[str]:
    return [entry.action for entry in all_rows(AuditEntry)]


def test_the_summary_of_a_mute_is_sent_once(
    database: str, config: Config, hook: FakeExecutor, outage: Outage
) -> None:
    job = job_with_channels(hook)
    mute(job)
    hold_alarm(job)
    with notifying(config) as notifier:
        eventually(lambda: outage.fails(notifier, T0 + HOUR))
        outage.is_away = False
        for second in range(2):
            notifier.tick(T0 + HOUR + LEASE_MS + second * 1_000 + 1)
        assert (all_rows(Mute), notifier._deliveries) == ([], [])
    assert len(hook.requests) == 1
    assert states() == ["SENT"]


def test_an_alarm_is_sent_once(database: str, config: Config, hook: FakeExecutor, outage: Outage) -> None:
    outage.is_away = False
    fail_run(job_with_channels(hook))
    with notifying(config) as notifier:
        notifier.tick(T0)
        (delivery,) = notifier._deliveries
        eventually(lambda: all(result.done() for result in delivery.pending.values()))
        outage.is_away = True
        assert outage.fails(notifier, T0)
        outage.is_away = False
        notifier.tick(T0 + LEASE_MS + 1)
        assert states() == ["SENT"]
    assert len(hook.requests) == 1


def test_a_notice_is_audited_before_it_is_sent(
    database: str, config: Config, hook: FakeExecutor, outage: Outage
) -> None:
    with notifying(config, alarm_urls=(url_of(hook),)) as notifier:
        notifier.announce(compose_clock("one", WRONG, config), T0)
        assert [outage.fails(notifier, T0) for _ in range(2)] == [True] * 2
        assert hook.requests == []
        outage.is_away = False
        eventually(lambda: notifier.tick(T0) and hook.requests and not notifier._deliveries)
        notifier.tick(T0 + HOUR)
    assert audited() == ["node.notice"]
    assert len(hook.requests) == 1


def test_a_notice_that_is_given_up_is_audited_once(
    database: str, config: Config, hook: FakeExecutor, outage: Outage
) -> None:
    outage.is_away = False
    hook.respond("*", Answer(status=404))
    with notifying(config, alarm_urls=(url_of(hook),)) as notifier:
        notifier.announce(compose_clock("one", WRONG, config), T0)
        for attempt in range(1, ATTEMPTS_MAX):
            at_ms = T0 + attempt * MINUTE * 5
            notifier.tick(at_ms)
            eventually(lambda at=at_ms: notifier.tick(at) and not notifier._deliveries)
        notifier.tick(T0 + HOUR)
        outage.is_away = True
        eventually(lambda: outage.fails(notifier, T0 + HOUR))
        assert outage.fails(notifier, T0 + HOUR)
        outage.is_away = False
        for minute in range(3):
            notifier.tick(T0 + HOUR + minute * MINUTE)
    assert audited() == ["node.notice", "alarm.failed"]
    assert len(hook.requests) == ATTEMPTS_MAX


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_result_whose_text_is_refused_holds_back_no_other_alarm(
    database: str,
    config: Config,
    hook: FakeExecutor,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_dropped: bool,
) -> None:
    def refuse(work: Callable[..., Any]) -> Any:
        results = work.keywords["outcome"].results if isinstance(work, partial) else {}
        if any(text != "ok" and (is_dropped or text != "failed") for text in results.values()):
            raise DataError("UPDATE", None, ValueError("incorrect string value"))
        return transact(work)

    def refusals() -> int:
        return caplog.text.count("result not stored object=job object_id=")

    expected = (["SENDING", "SENT"], 2) if is_dropped else (["PENDING", "SENT"], 1)
    monkeypatch.setattr(deliveries, "transact", refuse)
    with FakeExecutor() as broken, notifying(config) as notifier:
        broken.respond("*", Answer(status=500))
        fail_run(job_with_channels(broken))
        fail_run(job_with_channels(hook))
        eventually(lambda: notifier.tick(T0) and (states(), refusals()) == expected)
        for _ in range(2):
            notifier.tick(T0)
    assert (states(), refusals()) == expected
