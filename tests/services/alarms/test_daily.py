"""Daily message: once a day from 08:00 on to the channels that ask for it, about the jobs they are for."""

from collections import Counter
from datetime import date
from zoneinfo import ZoneInfo

import pytest

from app.clock import DAY_MS, HOUR_MS, Millis
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.completeness.days import latest_report_day
from app.domain.completeness.equation import Tally
from app.models.channel import AlarmChannel
from app.models.completeness import WATERMARK_JOB, JobDay
from app.models.job import Job
from app.services.alarms import channel_setup, daily
from app.services.alarms.channel_setup import ChannelDraft
from app.services.alarms.channels import MessageType
from app.services.alarms.deliveries import LEASE_MS, RETRY_MS
from app.services.alarms.notifier import AlarmNotifier
from app.services.completeness.report import JobTally
from app.settings.config import Config
from tests.support.alarms import messages, notifying
from tests.support.eventually import eventually
from tests.support.factories import make_job, only_row, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.migrated_databases import TIME_ZONE
from tests.support.plan import every_database

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("database")]

ZONE = ZoneInfo(TIME_ZONE)
#: 08:00 of 3 May 2024 in Shanghai
EIGHT: Millis = 1_714_694_400_000
MIDNIGHT: Millis = EIGHT - 8 * HOUR_MS


@pytest.mark.parametrize(
    ("at_ms", "day"),
    [(EIGHT - 1_000, 1), (EIGHT, 2), (EIGHT + 15 * HOUR_MS, 2), (EIGHT + DAY_MS - 1_000, 2)],
)
def test_a_message_is_due_from_eight_on(at_ms: Millis, day: int) -> None:
    assert latest_report_day(at_ms, ZONE) == date(2024, 5, day)


def add(server: FakeExecutor, *, now_ms: Millis = EIGHT - DAY_MS, **scope: object) -> int:
    settings = {"url": server.address}
    draft = ChannelDraft("hook", ChannelKind.WEBHOOK, settings, for_all=not scope, daily=True, **scope)
    with session_scope() as session:
        return channel_setup.add_channel(session, draft, actor=system_actor("ann"), now_ms=now_ms)


@pytest.fixture
def job(database: str) -> Job:
    """A job with a day of numbers, as they were counted."""
    made = make_job(job_desc="nightly report")
    counted = {"expected": 48, "on_time": 45, "skipped": 2, "unexplained": 1, "finished": 45}
    reasons = '{"skipped": {"misfire": 2}}'
    save(JobDay(job_id=made.id, day="2024-05-02", group_id=made.job_group, reasons=reasons, **counted))
    save(JobDay(job_id=WATERMARK_JOB, day="", group_id=0, open_from_ms=MIDNIGHT))
    return made


@every_database
def test_each_channel_gets_one_message_a_day(config: Config, hook: FakeExecutor, job: Job) -> None:
    add(hook)
    with notifying(config) as notifier:
        notifier.tick(EIGHT - 1)
        notifier.tick(EIGHT + daily.PERIOD_MS)
        eventually(lambda: notifier.tick(EIGHT + daily.PERIOD_MS) and only_row(AlarmChannel).daily_day)
        eventually(
            lambda: notifier.tick(EIGHT + daily.PERIOD_MS) and not only_row(AlarmChannel).daily_attempts
        )
        with notifying(config, node="two") as other:
            other.tick(EIGHT + 5 * daily.PERIOD_MS)
        notifier.tick(EIGHT + 5 * daily.PERIOD_MS)
    (message,) = messages(hook)
    assert message["title"] == "[Duetime] 2024-05-02: 1 unexplained, 0 unexpected"
    assert (message["type"], message["state"], message["day"]) == ("failure", "daily", "2024-05-02")
    assert "Skipped: 2 (misfire 2)" in message["message"]
    assert f"Job {job.id} nightly report: 1 unexplained, 2 skipped" in message["message"]
    assert "https://jobs.example.com/admin/completeness?from=2024-05-02&to=2024-05-02" in message["message"]
    assert only_row(AlarmChannel).daily_day == "2024-05-02"


def try_at(notifier: AlarmNotifier, at_ms: Millis) -> None:
    """Send the message that is due, and wait for its outcome."""
    eventually(lambda: notifier.tick(at_ms) and only_row(AlarmChannel).daily_next_ms != at_ms + LEASE_MS)


def test_a_message_that_is_refused_is_sent_again_and_given_up_after_four_attempts(
    config: Config, hook: FakeExecutor, job: Job
) -> None:
    hook.respond("*", Answer(status=500))
    add(hook)
    at_ms = EIGHT
    with notifying(config) as notifier:
        for attempt in range(1, 5):
            try_at(notifier, at_ms)
            assert len(messages(hook)) == attempt
            at_ms += RETRY_MS * 2**attempt
        notifier.tick(at_ms)
    assert len(messages(hook)) == 4
    assert only_row(AlarmChannel).daily_day == "2024-05-02"


def test_a_channel_of_other_jobs_says_that_nothing_was_due(
    config: Config, hook: FakeExecutor, job: Job
) -> None:
    add(hook, job_ids=[make_job().id])
    with notifying(config) as notifier:
        notifier.tick(EIGHT)
        eventually(lambda: messages(hook))
    assert messages(hook)[0]["title"] == "[Duetime] 2024-05-02: nothing was due"


def test_a_channel_that_asks_for_it_later_begins_with_the_next_morning(
    config: Config, hook: FakeExecutor, job: Job
) -> None:
    add(hook, now_ms=EIGHT + HOUR_MS)
    with notifying(config) as notifier:
        notifier.tick(EIGHT + 2 * HOUR_MS)
    assert only_row(AlarmChannel).daily_day == "2024-05-02"
    assert messages(hook) == []


def test_many_jobs_are_counted_and_the_first_are_named(config: Config) -> None:
    rows = [JobTally(number, 1, Tally(expected=1, skipped=Counter(misfire=1))) for number in range(1, 31)]
    message = daily.compose(date(2024, 5, 2), rows, {1: "first"}, config)
    assert message.title == "[Duetime] 2024-05-02: all 30 due runs accounted for"
    assert message.type is MessageType.SUCCESS
    assert "Job 1 first: 1 skipped" in message.body
    assert message.body.endswith("… and 10 more jobs")
