"""Alarm notifier: targets, grouping of alarms, channels that fail or hang, notices of a node."""

import json
import logging
import threading

import pytest

from app.clock import Millis
from app.database.engine import session_scope
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.base import use_zone
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.pipeline.clocks.guard import ClockNews
from app.runtime.logging import QUIET, SILENT
from app.runtime.metrics import ALARMS_ENDED
from app.services.alarms import targets
from app.services.alarms.channels import OK, Message
from app.services.alarms.deliveries import (
    ATTEMPTS_MAX,
    DELIVERY_MS,
    GROUP_MS,
    LEASE_MS,
    NOT_TRIED_MS,
    RETRY_MS,
)
from app.services.alarms.notifier import AlarmNotifier
from app.services.alarms.texts import compose_clock
from app.settings.config import Config, MailConfig
from tests.pipeline.steps import call_back, unresolve
from tests.support.alarms import (
    MINUTE,
    WRONG,
    fail_run,
    job_with_an_alarm_for_one_of_two,
    job_with_channels,
    messages,
    notifying,
    results,
    states,
    tick_until,
    url_of,
)
from tests.support.eventually import eventually
from tests.support.factories import BERLIN_SECOND_TWO, T0, all_rows, make_group, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_the_alarm_of_a_failed_run_has_reason_and_link(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook, job_desc="Nightly report")
    run = fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
    (message,) = messages(hook)
    assert message["title"] == f"[Duetime] Nightly report (job {job.id}): 1 run failed"
    assert "disk full" in message["message"]
    assert f"https://jobs.example.com/admin/joblog/logDetailPage?id={run.id}" in message["message"]
    assert only_row(JobLog).alarm_status == 2
    assert results(only_row(Alarm)) == {"1 json://…": "ok"}


def test_the_alarm_of_an_unresolved_run_says_unknown(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    assert unresolve(make_run(job_with_channels(hook)).id)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
    assert "unknown whether it ran" in messages(hook)[0]["message"]


def test_channels_of_the_installation_are_notified_too_each_once(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    fail_run(job_with_channels(hook, hook))
    with (
        FakeExecutor() as everywhere,
        notifying(config, alarm_urls=(url_of(everywhere), url_of(hook))) as notifier,
    ):
        tick_until(notifier, T0, "SENT")
        assert (len(hook.requests), len(everywhere.requests)) == (1, 1)


def test_without_a_channel_the_alarm_is_silent_and_counted(database: str, config: Config) -> None:
    fail_run(make_job(alarm_email="ops@example.com"))
    before = ALARMS_ENDED.values.get(("silent",), 0)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SILENT")
    assert ALARMS_ENDED.values["silent",] == before + 1
    assert only_row(JobLog).alarm_status == 1


def test_alarms_of_a_job_become_one_message_within_five_minutes(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job, other = job_with_channels(hook), job_with_channels(hook)
    fail_run(job)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT", "SENT")
        assert messages(hook)[0]["title"].endswith("2 runs failed")
        for minute in (1, 2, 3):
            fail_run(job, T0 + minute * MINUTE)
            tick_until(notifier, T0 + minute * MINUTE, "SENT", "SENT", *["PENDING"] * minute)
        assert len(hook.requests) == 1
        assert {alarm.next_ms for alarm in all_rows(Alarm, state="PENDING")} == {T0 + GROUP_MS}
        fail_run(other, T0 + 4 * MINUTE)
        tick_until(notifier, T0 + 4 * MINUTE, "SENT", "SENT", "PENDING", "PENDING", "PENDING", "SENT")
        assert len(hook.requests) == 2, "another job does not wait"
        tick_until(notifier, T0 + GROUP_MS, *["SENT"] * 6)
    assert messages(hook)[2]["title"].endswith("3 runs failed")
    assert {log.alarm_status for log in all_rows(JobLog)} == {2}


def test_only_the_target_that_failed_is_retried(database: str, config: Config, hook: FakeExecutor) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        fail_run(job_with_channels(hook, broken))
        tick_until(notifier, T0, "PENDING")
        eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
        assert results(only_row(Alarm)) == {
            "1 json://…": "ok",
            "2 json://…": "the channel refused the message or did not answer",
        }
        assert (only_row(Alarm).next_ms, only_row(JobLog).alarm_status) == (T0 + RETRY_MS, -1)
        tick_until(notifier, T0 + RETRY_MS, "SENT")
        assert (len(hook.requests), len(broken.requests)) == (1, 2)


def test_a_target_that_keeps_failing_is_given_up_and_audited(
    database: str, config: Config, hook: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    hook.respond("*", Answer(status=404))
    fail_run(job_with_channels(hook))
    now_ms = T0
    with notifying(config) as notifier:
        for attempt in range(1, ATTEMPTS_MAX):
            eventually(lambda at=now_ms, number=attempt: notifier.tick(at) and len(hook.requests) == number)
            tick_until(notifier, now_ms, "PENDING")
            now_ms = only_row(Alarm).next_ms
        tick_until(notifier, now_ms, "FAILED")
    assert now_ms == T0 + 7 * RETRY_MS, "30, 60 and 120 s"
    assert only_row(JobLog).alarm_status == 3
    assert "refused the message" in (only_row(Alarm).outcome or "")
    assert "alarm not delivered" in caplog.text
    entry = only_row(AuditEntry)
    assert (entry.action, entry.object_type, entry.object_id) == ("alarm.failed", "job", only_row(Job).id), (
        "the job's page shows it"
    )
    assert json.loads(entry.changes or "") == {
        "1 json://…": "the channel refused the message or did not answer"
    }


def test_a_broken_channel_is_audited_once(database: str, config: Config, hook: FakeExecutor) -> None:
    hook.respond("*", Answer(status=404))
    job = job_with_channels(hook)
    with notifying(config) as notifier:
        for round_number in range(1, 3):
            now_ms = T0 + round_number * 1_000_000
            fail_run(job, now_ms)
            for attempt in range(ATTEMPTS_MAX):
                expected_states = "PENDING" if attempt < ATTEMPTS_MAX - 1 else "FAILED"
                eventually(
                    lambda at=now_ms, state=expected_states, number=attempt + 1: (
                        notifier.tick(at)
                        and [all_rows(Alarm)[-1].state, all_rows(Alarm)[-1].attempts] == [state, number]
                    )
                )
                now_ms = all_rows(Alarm)[-1].next_ms
    assert states() == ["FAILED", "FAILED"]
    assert only_row(AuditEntry).action == "alarm.failed"


def test_a_retry_does_not_reach_targets_that_were_notified(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        job = job_with_an_alarm_for_one_of_two(notifier, hook, broken)
        fail_run(job, T0 + 1000)
        for at in range(T0 + 1000, T0 + GROUP_MS, 10_000):
            notifier.tick(at)
        assert len(hook.requests) == 1


def test_a_hanging_channel_delays_no_other(database: str, config: Config, hook: FakeExecutor) -> None:
    release = threading.Event()
    with FakeExecutor() as hanging, notifying(config) as notifier:
        hanging.respond("*", Answer(wait=release))
        for _ in range(5):
            fail_run(job_with_channels(hanging, hook))
        fail_run(job_with_channels(hook))
        tick_until(notifier, T0, *["SENDING"] * 5, "SENT")
        assert len(hook.requests) == 6
        fail_run(job_with_channels(hook), T0 + 1000)
        tick_until(notifier, T0 + 1000, *["SENDING"] * 5, "SENT", "SENT")
        tick_until(notifier, T0 + DELIVERY_MS, *["PENDING"] * 5, "SENT", "SENT")
        answers = [results(alarm) for alarm in all_rows(Alarm)[:5]]
        release.set()
    assert {answer["2 json://…"] for answer in answers} == {"ok"}
    assert "no answer in 30 s" in {answer["1 json://…"] for answer in answers}
    assert len(hanging.requests) <= 5, "queued messages are cancelled"


def test_a_recovery_is_reported_once(database: str, config: Config, hook: FakeExecutor) -> None:
    job = job_with_channels(hook, job_desc="Nightly report")
    fail_run(job)
    with notifying(config) as notifier, notifying(config, "two") as second:
        tick_until(notifier, T0, "SENT")
        assert call_back(make_run(job).id, 200, now_ms=T0 + 1000)
        tick_until(notifier, T0 + 10_000, "CLOSED")
        second.tick(T0 + 10_000)
        notifier.tick(T0 + 20_000)
        both = (notifier, second)
        eventually(lambda: [each.tick(T0 + 20_000) for each in both] and states(recovered=True) == ["CLOSED"])
        second.tick(T0 + 30_000)
        notifier.tick(T0 + 40_000)
    assert len(hook.requests) == 2
    assert [message["title"] for message in messages(hook)][
        1
    ] == f"[Duetime] Nightly report (job {job.id}): recovered"


def test_a_recovery_is_retried_for_the_targets_that_failed(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as flaky, notifying(config) as notifier:
        flaky.respond("*", Answer(), Answer(status=503), Answer())
        job = job_with_channels(hook, flaky)
        fail_run(job)
        tick_until(notifier, T0, "SENT")
        assert call_back(make_run(job).id, 200, now_ms=T0 + 1000)
        at = T0 + 10_000
        eventually(lambda: notifier.tick(at) and states(recovered=True) == ["PENDING"] and _is_tried(at))
        eventually(lambda: notifier.tick(at + RETRY_MS) and states(recovered=True) == ["CLOSED"])
        notifier.tick(at + 2 * GROUP_MS)
        assert states() == ["CLOSED"]
        assert ["recovered" in message["title"] for message in messages(flaky)] == [False, True, True]
    assert len(hook.requests) == 2


def _is_tried(at_ms: Millis) -> bool:
    return all_rows(Alarm)[-1].next_ms == at_ms + RETRY_MS


def test_a_recovery_is_not_sent_after_a_later_failure(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    hook.respond("*", Answer(), Answer(status=503), Answer())
    job = job_with_channels(hook)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        assert call_back(make_run(job).id, 200, now_ms=T0 + 1000)
        at = T0 + 10_000
        eventually(lambda: notifier.tick(at) and states(recovered=True) == ["PENDING"] and _is_tried(at))
        fail_run(job, at + 1000)
        tick_until(notifier, at + RETRY_MS, "CLOSED", "PENDING")
        assert states(recovered=True) == []
        tick_until(notifier, at + 2 * GROUP_MS, "CLOSED", "SENT")
    assert [message["title"].rpartition(": ")[2] for message in messages(hook)] == [
        "1 run failed",
        "recovered",
        "1 run failed",
    ]


def test_a_late_success_waits_for_the_alarm_of_its_run(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    release = threading.Event()
    hook.respond("*", Answer(), Answer(wait=release), Answer())
    job = job_with_channels(hook)
    fail_run(job)
    run = make_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        unresolve(run.id)
        at = T0 + GROUP_MS
        eventually(lambda: notifier.tick(at) and len(hook.requests) == 2)
        assert call_back(run.id, 200, now_ms=at)
        notifier.tick(at + 10_000)
        assert states() == ["SENT", "SENDING"]
        release.set()
        await_results(notifier, at + 10_000)
        eventually(lambda: notifier.tick(at + 20_000) and states(recovered=True) == ["CLOSED"])
        await_results(notifier, at + 40_000)
    assert len(hook.requests) == 3


def test_a_recovery_reaches_the_targets_that_have_the_alarm(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        broken.respond("*", Answer(status=404))
        job = job_with_channels(hook, broken)
        fail_run(job)
        now_ms = T0
        for state in ["PENDING"] * (ATTEMPTS_MAX - 1) + ["PARTLY"]:
            before = all_rows(Alarm)[0].next_ms
            eventually(
                lambda at=now_ms, known=before, state=state: (
                    notifier.tick(at)
                    and states() == [state]
                    and (state == "PARTLY" or all_rows(Alarm)[0].next_ms > known)
                )
            )
            now_ms = all_rows(Alarm)[0].next_ms
        assert only_row(JobLog).alarm_status == 3
        assert only_row(AuditEntry).action == "alarm.failed"
        assert call_back(make_run(job).id, 200, now_ms=now_ms)
        eventually(lambda: notifier.tick(now_ms + 10_000) and len(hook.requests) == 2)
    assert states() == ["CLOSED"]
    assert messages(hook)[1]["title"].endswith("recovered")


@pytest.mark.parametrize("edited", ["removed", "replaced", "on top"])
def test_a_retry_follows_an_edited_list_of_urls(
    database: str, config: Config, hook: FakeExecutor, edited: str
) -> None:
    with FakeExecutor() as broken, FakeExecutor() as new, notifying(config) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        job = job_with_channels(hook, broken)
        fail_run(job)
        eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
        urls = {"removed": [broken], "replaced": [hook, new], "on top": [new, hook, broken]}[edited]
        with session_scope() as session:
            session.get_one(Group, job.job_group).alarm_urls = "\n".join(map(url_of, urls))
        tick_until(notifier, T0 + RETRY_MS, "SENT")
        assert [len(server.requests) for server in (hook, broken, new)] == {
            "removed": [1, 2, 0],
            "replaced": [1, 1, 1],
            "on top": [1, 2, 1],
        }[edited]


def test_messages_whose_turn_has_not_come_are_not_given_up(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [threading.Event() for _ in range(5)]
    started, sent = list[str](), list[str]()

    def take_turns(_config: MailConfig, _address: str, message: Message) -> str:
        turn = turns[len(started)]
        started.append(message.title)
        assert turn.wait(30)
        sent.append(message.title)
        return OK

    monkeypatch.setattr(targets, "send_mail", take_turns)
    for _ in range(5):
        fail_run(make_job(alarm_email="ops@example.com"))
    with notifying(config, mail=MailConfig("mail.example", sender="a@example.com")) as notifier:

        def tick_sorted(at_ms: Millis, *expected: str) -> None:
            eventually(lambda: notifier.tick(at_ms) and sorted(states()) == list(expected))

        def end(*numbers: int) -> None:
            for number in numbers:
                turns[number].set()

        notifier.tick(T0)
        eventually(lambda: len(started) == 2)
        notifier.tick(T0 + DELIVERY_MS - 1_000)
        end(0, 1)
        eventually(lambda: len(started) == 4)
        tick_sorted(T0 + DELIVERY_MS - 1, "SENDING", "SENDING", "SENDING", "SENT", "SENT")
        tick_sorted(T0 + DELIVERY_MS, "PENDING", "SENDING", "SENDING", "SENT", "SENT")
        end(2, 3)
        tick_sorted(T0 + DELIVERY_MS + 1, "PENDING", "SENT", "SENT", "SENT", "SENT")
        notifier.tick(T0 + DELIVERY_MS + NOT_TRIED_MS)
        end(4)
        tick_sorted(T0 + DELIVERY_MS + NOT_TRIED_MS, *["SENT"] * 5)
    assert len(sent) == len(set(sent)) == 5
    assert {alarm.attempts for alarm in all_rows(Alarm)} == {1}


def test_a_success_before_the_failure_is_no_recovery(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    call_back(make_run(job).id, 200)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        notifier.tick(T0 + 10_000)
    assert states() == ["SENT"]


def test_a_later_run_that_succeeded_before_the_failure_is_no_recovery(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    failing, quick = make_run(job), make_run(job)
    assert call_back(quick.id, 200, now_ms=T0 + 1_000)
    assert call_back(failing.id, 500, "disk full", now_ms=T0 + MINUTE + 1)
    with notifying(config) as notifier:
        tick_until(notifier, T0 + MINUTE + 1, "SENT")
        notifier.tick(T0 + MINUTE + 20_000)
        assert states() == ["SENT"]
        assert call_back(make_run(job).id, 200, now_ms=T0 + MINUTE + 500), "times are in whole seconds"
        tick_until(notifier, T0 + MINUTE + 40_000, "CLOSED")


def test_a_success_after_the_failure_is_a_recovery_whatever_run_succeeded_before_it(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    unresolved, quick = make_run(job), make_run(job, log={"trigger_time": T0 + 1_000})
    assert call_back(quick.id, 200, now_ms=T0 + 2_000)
    unresolve(unresolved.id, now_ms=T0 + MINUTE)
    with notifying(config) as notifier:
        tick_until(notifier, T0 + MINUTE, "SENT")
        assert call_back(unresolved.id, 200, now_ms=T0 + 2 * MINUTE)
        eventually(lambda: notifier.tick(T0 + 2 * MINUTE) and states(recovered=True) == ["CLOSED"])
    assert f"Run {unresolved.id}" in messages(hook)[1]["message"]


def test_another_shard_of_a_broadcast_that_failed_is_no_recovery(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    failing, other = (
        make_run(job, log={"fire_time": T0, "executor_sharding_param": shard}) for shard in ("0/2", "1/2")
    )
    assert call_back(failing.id, 500, "disk full", now_ms=T0 + 1_000)
    with notifying(config) as notifier:
        tick_until(notifier, T0 + 1_000, "SENT")
        assert call_back(other.id, 200, now_ms=T0 + 5_000)
        notifier.tick(T0 + 20_000)
        assert states() == ["SENT"]
        next_instant = {"fire_time": T0 + MINUTE, "trigger_time": T0 + MINUTE}
        next_run = make_run(job, log={**next_instant, "executor_sharding_param": "0/2"})
        assert call_back(next_run.id, 200, now_ms=T0 + MINUTE)
        tick_until(notifier, T0 + MINUTE, "CLOSED")


def test_in_an_hour_that_occurs_twice_a_success_of_a_later_run_is_a_recovery(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    use_zone("Europe/Berlin")
    job = job_with_channels(hook)
    fail_run(job, BERLIN_SECOND_TWO)
    with notifying(config) as notifier:
        tick_until(notifier, BERLIN_SECOND_TWO, "SENT")
        assert call_back(make_run(job).id, 200, now_ms=BERLIN_SECOND_TWO + MINUTE)
        tick_until(notifier, BERLIN_SECOND_TWO + MINUTE, "CLOSED")


def test_a_late_result_of_an_unresolved_run_is_a_recovery(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    run = make_run(job_with_channels(hook))
    unresolve(run.id)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        assert call_back(run.id, 200, now_ms=T0 + 5000)
        eventually(lambda: notifier.tick(T0 + 10_000) and states(recovered=True) == ["CLOSED"])
    assert len(hook.requests) == 2
    assert states() == [], "the run has the recovery instead of the alarm"


def test_a_flapping_job_sends_one_alarm_in_five_minutes(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        call_back(make_run(job).id, 200)
        tick_until(notifier, T0 + 10_000, "CLOSED")
        eventually(lambda: notifier.tick(T0 + 10_000) and len(hook.requests) == 2)
        fail_run(job, T0 + 20_000)
        tick_until(notifier, T0 + 20_000, "CLOSED", "PENDING")
    assert len(hook.requests) == 2


def test_alarms_of_a_dead_notifier_are_taken_over(database: str, config: Config, hook: FakeExecutor) -> None:
    release = threading.Event()
    hook.respond("*", Answer(wait=release), Answer())
    fail_run(job_with_channels(hook))
    with notifying(config) as dead, notifying(config, "two") as other:
        tick_until(dead, T0, "SENDING")
        eventually(lambda: hook.requests, message="the first answer is for the dead one")
        other.tick(T0 + LEASE_MS)
        assert only_row(Alarm).owner == "one"
        tick_until(other, T0 + LEASE_MS + 1, "SENT")
        release.set()
    assert (only_row(Alarm).owner, only_row(Alarm).attempts) == ("two", 2)


def send_notice(
    notifier: AlarmNotifier, news: ClockNews, config: Config, now_ms: Millis, servers: dict[FakeExecutor, int]
) -> None:
    """Announce a notice and repeat the round until the webhooks have had this many requests."""
    notifier.announce(compose_clock("one", news, config), now_ms)
    eventually(
        lambda: (
            notifier.tick(now_ms) and all(len(server.requests) == count for server, count in servers.items())
        )
    )
    await_results(notifier, now_ms)


def await_results(notifier: AlarmNotifier, now_ms: Millis) -> None:
    """Wait until no message is on its way, before time passes quickly."""
    eventually(lambda: notifier.tick(now_ms) and not notifier._deliveries)


def test_a_wrong_clock_is_reported_to_the_installation_only(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as everywhere, notifying(config, alarm_urls=(url_of(everywhere),)) as notifier:
        job_with_channels(hook)
        send_notice(notifier, WRONG, config, T0, {everywhere: 1})
        send_notice(notifier, ClockNews(right=True, skew_ms=3), config, T0 + MINUTE, {everywhere: 2})
        for second in range(600):
            notifier.tick(T0 + MINUTE + second * 1_000)
    wrong, right = messages(everywhere)
    assert wrong["title"] == "[Duetime] one: clock wrong, scheduling stopped"
    assert (
        "5.2 s behind the database's. A node that is off by more than 1 s fires nothing." in wrong["message"]
    )
    assert right["title"] == "[Duetime] one: clock correct again, scheduling resumed"
    assert hook.requests == []
    assert [(entry.action, entry.username) for entry in all_rows(AuditEntry)] == [("node.notice", "one")] * 2
    assert "clock wrong" in (all_rows(AuditEntry)[0].changes or "")


def test_a_clock_without_comparison_is_reported_as_set_ahead(config: Config) -> None:
    hold_notice = compose_clock("one", ClockNews(right=False, skew_ms=600_000, is_compared=False), config)
    assert hold_notice.title == "[Duetime] one: clock set ahead, scheduling paused"
    assert "set 600.0 s ahead" in hold_notice.body
    steady = compose_clock("one", ClockNews(right=True, skew_ms=0, is_compared=False), config)
    assert steady.title == "[Duetime] one: clock steady again, scheduling resumed"


def test_without_a_channel_of_the_installation_the_groups_get_notices(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job_with_channels(hook)
    job_with_channels(hook)
    with notifying(config) as notifier:
        send_notice(notifier, WRONG, config, T0, {hook: 1})


def test_a_notice_without_any_channel_is_logged(
    database: str, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    with notifying(config) as notifier:
        notifier.announce(compose_clock("one", WRONG, config), T0)
        notifier.tick(T0)
        notifier.tick(T0 + 1000)
    assert (
        caplog.text.count("node notice not sent, no channel is set up title=[Duetime] one: clock wrong") == 1
    )


def test_a_notice_is_retried_for_the_targets_that_failed(
    database: str, config: Config, hook: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeExecutor() as broken, notifying(config, alarm_urls=(url_of(hook), url_of(broken))) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        send_notice(notifier, WRONG, config, T0, {hook: 1, broken: 1})
        eventually(lambda: notifier.tick(T0) and "alarm not delivered object=node object_id=0" in caplog.text)
        notifier.tick(T0 + RETRY_MS - 1)
        eventually(lambda: notifier.tick(T0 + RETRY_MS) and len(broken.requests) == 2)
        await_results(notifier, T0 + RETRY_MS)
        for second in range(600):
            notifier.tick(T0 + RETRY_MS + second * 1_000)
        assert (len(hook.requests), len(broken.requests)) == (1, 2)


def test_a_notice_that_always_fails_is_given_up_and_audited(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    hook.respond("*", Answer(status=404))
    with notifying(config, alarm_urls=(url_of(hook),)) as notifier:
        notifier.announce(compose_clock("one", WRONG, config), T0)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            at_ms = T0 + attempt * MINUTE * 5
            eventually(lambda at=at_ms, number=attempt: notifier.tick(at) and len(hook.requests) == number)
            eventually(lambda at=at_ms: notifier.tick(at) and not notifier._deliveries)
        notifier.tick(T0 + 60 * MINUTE)
    assert len(hook.requests) == ATTEMPTS_MAX
    assert [entry.action for entry in all_rows(AuditEntry)] == ["node.notice", "alarm.failed"]


def test_an_outdated_notice_is_not_retried(database: str, config: Config, hook: FakeExecutor) -> None:
    hook.respond("*", Answer(status=500), Answer())
    with notifying(config, alarm_urls=(url_of(hook),)) as notifier:
        send_notice(notifier, WRONG, config, T0, {hook: 1})
        send_notice(notifier, ClockNews(right=True, skew_ms=0), config, T0 + MINUTE, {hook: 2})
        for second in range(600):
            notifier.tick(T0 + MINUTE + second * 1_000)
    assert ["correct again" in message["title"] for message in messages(hook)] == [False, True]


def test_no_secret_of_a_channel_is_written_anywhere(
    database: str, config: Config, hook: FakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    hook.respond("*", Answer(status=403))
    caplog.set_level(logging.DEBUG)
    for name in (*QUIET, *SILENT):
        caplog.set_level(logging.CRITICAL if name in SILENT else logging.WARNING, logger=name)
    where = hook.address.removeprefix("http://")
    group = make_group(alarm_urls=f"json://robot:s3cret@{where}T0ken/?rto=2\nnonsense://s3cret")
    fail_run(make_job(job_group=group.id))
    with notifying(config, mail=MailConfig("127.0.0.1", 1, "robot", "s3cret")) as notifier:
        eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
    written = f"{only_row(Alarm).outcome} {caplog.text}"
    assert "Apprise does not recognise nonsense://…" in written
    assert "s3cret" not in written
    assert "T0ken" not in written
