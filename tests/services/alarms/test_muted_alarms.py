"""Muted jobs and groups: no alarms, nothing else changes, one summary at the end."""

import json
from email import message_from_bytes

import pytest

from app.clock import Millis
from app.database.engine import session_scope
from app.domain.alarms.muting import MuteSpan
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.services.alarms import muted_alarms, mutes
from app.services.alarms.deliveries import ATTEMPTS_MAX, GROUP_MS, LEASE_MS, RETRY_MS
from app.services.alarms.muted_alarms import EndedMute
from app.services.alarms.notifier import PERIOD_MS
from app.services.alarms.texts import compose_mute_end
from app.settings.config import Config, MailConfig
from app.store.alarms.alarms import HeldAlarms
from tests.pipeline.steps import call_back, unresolve
from tests.support.alarms import (
    HOUR,
    fail_run,
    job_with_channels,
    mail_server,
    messages,
    move_as_java_does,
    mute,
    notifying,
    states,
    take,
    tick_until,
    url_of,
)
from tests.support.console import ACTOR
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.plan import every_database

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), every_database]


def unmute(job: Job, now_ms: Millis) -> None:
    with session_scope() as session:
        mutes.unmute(session, job_id=job.id, actor=ACTOR, now_ms=now_ms)


def test_a_muted_job_sends_no_alarm_and_one_summary_at_the_end(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook, job_desc="Nightly report", executor_fail_retry_count=2)
    mute(job, reason="disks are\nbeing replaced")
    first = make_run(job, log={"executor_fail_retry_count": 2})
    assert call_back(first.id, 500, "disk full")
    with notifying(config) as notifier, notifying(config, "two") as second:
        tick_until(notifier, T0, "MUTED")
        assert hook.requests == []
        alarm = only_row(Alarm)
        assert (
            json.loads(alarm.outcome or "")["muted"]
            == "by test until 2024-05-01 12:04:05 Asia/Shanghai: disks are being replaced"
        )
        assert (only_row(JobLog).handle_code, only_row(JobLog).alarm_status) == (500, 1)
        assert [fire.trigger_type for fire in all_rows(Fire)] == ["RETRY"], "retries are not affected"
        last = make_run(job)
        assert unresolve(last.id)
        tick_until(second, T0 + 5_000, "MUTED", "MUTED")
        notifier.tick(T0 + HOUR - 1)
        assert len(all_rows(Mute)) == 1
        eventually(lambda: second.tick(T0 + HOUR) and notifier.tick(T0 + HOUR) and all_rows(Mute) == [])
        for later_ms in range(T0 + HOUR, T0 + HOUR + 60_000, 10_000):
            notifier.tick(later_ms)
    (message,) = messages(hook)
    assert message["title"] == f"[Duetime] Nightly report (job {job.id}): no longer muted, still failing"
    assert f"Held back: 2 alarms (1 unresolved), runs {first.id} to {last.id}" in message["message"]
    assert "Reason: disks are being replaced" in message["message"]
    assert f"https://jobs.example.com/admin/joblog?jobId={job.id}" in message["message"]
    assert states() == ["MUTED", "SENT"]
    assert {row.mute_id for row in all_rows(Alarm)} == {None}


def test_a_job_that_has_recovered_is_not_in_the_summary(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    mute(job)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "MUTED")
        assert call_back(make_run(job).id, 200, now_ms=T0 + 1_000)
        eventually(lambda: notifier.tick(T0 + HOUR) and all_rows(Mute) == [])
        notifier.tick(T0 + HOUR + 10_000)
    assert (states(), hook.requests) == (["MUTED"], [])


def test_the_recovery_of_a_muted_job_is_reported_after_the_mute(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        mute(job, now_ms=T0 + 1_000)
        fail_run(job, T0 + 2_000)
        tick_until(notifier, T0 + 2_000, "SENT", "MUTED")
        assert call_back(make_run(job).id, 200, now_ms=T0 + 3_000)
        notifier.tick(T0 + 20_000)
        assert len(hook.requests) == 1, "a muted job sends nothing"
        unmute(job, T0 + 30_000)
        notifier.tick(T0 + 30_000)
        tick_until(notifier, T0 + 40_000, "CLOSED", "MUTED")
        eventually(lambda: len(hook.requests) == 2)
    assert messages(hook)[1]["title"].endswith("recovered")


def test_after_the_summary_recoveries_are_sent_and_failures_collected(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    mute(job)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "MUTED")
        unmute(job, T0 + 1_000)
        tick_until(notifier, T0 + 1_000, "SENT")
        fail_run(job, T0 + 2_000)
        tick_until(notifier, T0 + 2_000, "SENT", "PENDING")
        assert all_rows(Alarm)[1].next_ms == T0 + 1_000 + GROUP_MS
        assert call_back(make_run(job).id, 200, now_ms=T0 + 3_000)
        tick_until(notifier, T0 + 20_000, "CLOSED", "PENDING")
        eventually(lambda: notifier.tick(T0 + 20_000) and len(hook.requests) == 2)
    assert [entry.action for entry in all_rows(AuditEntry)] == ["alarm.mute", "alarm.unmute"]


def test_a_muted_group_is_summed_up_in_one_message_for_all_its_jobs(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    group = make_group(title="Shop orders", app_name="shop-orders", alarm_urls=url_of(hook))
    failing, broken, fine, moved = (
        make_job(job_group=group.id, job_desc=name) for name in ("failing", "broken", "fine", "secret")
    )
    other = job_with_channels(hook)
    mute(group_id=group.id)
    for job in (failing, failing, broken, fine, moved, other):
        fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, *["MUTED"] * 5, "SENT")
        assert len(hook.requests) == 1, "other groups are not affected"
        call_back(make_run(fine).id, 200, now_ms=T0 + 1_000)
        move_as_java_does(moved, make_group(app_name="elsewhere").id)
        eventually(lambda: notifier.tick(T0 + HOUR) and all_rows(Mute) == [])
    assert (
        messages(hook)[1]["title"]
        == "[Duetime] Shop orders (shop-orders): no longer muted, 3 jobs still failing"
    )
    text = messages(hook)[1]["message"]
    assert "Held back: 5 alarms, runs" in text
    assert f"failing (job {failing.id}): 2 alarms, runs" in text
    assert f"Recovered meanwhile: fine (job {fine.id})" in text
    assert f"job {moved.id}, moved to another executor group: 1 alarm" in text
    assert "secret" not in text
    assert states() == ["MUTED", "SENT", "SENT", "MUTED", "SENT", "SENT"]


def test_a_job_muted_twice_is_summed_up_when_the_last_mute_ends(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    mute(job, span=MuteSpan.HOUR)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "MUTED")
        mute(group_id=job.job_group, span=MuteSpan.EIGHT_HOURS)
        fail_run(job, T0 + 1_000)
        tick_until(notifier, T0 + 1_000, "MUTED", "MUTED")
        eventually(lambda: notifier.tick(T0 + HOUR) and len(all_rows(Mute)) == 1)
        assert hook.requests == []
        eventually(lambda: notifier.tick(T0 + 8 * HOUR) and all_rows(Mute) == [])
    (message,) = messages(hook)
    assert "Held back: 2 alarms" in message["message"]


def test_the_summary_is_retried_for_failed_targets_and_finally_given_up(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as broken, notifying(config) as notifier:
        broken.respond("*", Answer(status=500))
        job = job_with_channels(hook, broken)
        mute(job)
        fail_run(job)
        tick_until(notifier, T0, "MUTED")
        now_ms = T0 + HOUR
        for attempt in range(1, ATTEMPTS_MAX):
            wait_ms = RETRY_MS * 2 ** (attempt - 1)
            eventually(
                lambda at=now_ms, wait=wait_ms: notifier.tick(at) and only_row(Mute).next_ms == at + wait
            )
            now_ms += wait_ms
        eventually(lambda at=now_ms: notifier.tick(at) and all_rows(Mute) == [])
        assert (len(hook.requests), len(broken.requests)) == (1, ATTEMPTS_MAX)
    assert states() == ["SENT"], "notified targets get the recovery"
    assert [entry.action for entry in all_rows(AuditEntry)] == ["alarm.mute", "alarm.failed"], (
        "a failed delivery is audited even while muted"
    )


def test_the_summary_of_a_dead_notifier_is_taken_over_and_muting_again_cancels_it(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook)
    mute(job)
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "MUTED")
        (lost,) = take("dead", T0 + HOUR)
        notifier.tick(T0 + HOUR + PERIOD_MS)
        assert hook.requests == []
        mute(job, now_ms=T0 + HOUR + 1_000)
        with session_scope() as session:
            muted_alarms.finish(session, lost, is_sent=False, outcome="{}", lease_until=0)
        assert (only_row(Alarm).mute_id, only_row(Mute).since_ms) == (only_row(Mute).id, T0), (
            "its lease has expired"
        )
        (lost,) = take("dead", T0 + 3 * HOUR)
        eventually(lambda: notifier.tick(T0 + 3 * HOUR + LEASE_MS) and all_rows(Mute) == [])
    assert len(hook.requests) == 1


def test_a_mute_whose_summary_is_being_sent_holds_nothing(database: str, hook: FakeExecutor) -> None:
    job = job_with_channels(hook, alarm_email="ops@example.com, ,dev@example.com")
    mute(job)
    fail_run(job)
    with session_scope() as session:
        assert set(muted_alarms.lock_mutes(session, [job], now_ms=T0)) == {job.id}
        muted_alarms.hold(
            session,
            [session.merge(only_row(Alarm))],
            muted_alarms.find_mutes(session, [job], now_ms=T0)[job.id],
        )
    (ended,) = take("one", T0 + HOUR)
    assert ended.mails == ["ops@example.com", "dev@example.com"]
    with session_scope() as session:
        assert muted_alarms.lock_mutes(session, [job], now_ms=T0) == {}, (
            "not even for a node whose clock is behind"
        )


def test_no_mute_ends_while_a_node_holds_alarms_back_under_it(database: str, hook: FakeExecutor) -> None:
    if database.startswith("sqlite"):
        pytest.skip("SQLite has one writer at a time")
    job = job_with_channels(hook)
    mute(job)
    fail_run(job)
    with session_scope() as session:
        found = muted_alarms.lock_mutes(session, [job], now_ms=T0 + HOUR - 1)
        assert take("another", T0 + HOUR) == []
        muted_alarms.hold(session, [session.merge(only_row(Alarm))], found[job.id])
    (ended,) = take("another", T0 + HOUR)
    assert [part.count for part in ended.alarms] == [1]


def test_the_summary_names_a_limited_number_of_jobs(config: Config) -> None:
    held_alarms = [HeldAlarms(number, 2, 1, number, number + 100) for number in range(1, 51)]
    of_jobs = {
        part.job_id: Job(id=part.job_id, job_desc=f"job-{part.job_id}", job_group=7) for part in held_alarms
    }
    muted = Mute(job_id=0, group_id=7, username="ann", reason="", since_ms=T0, until_ms=T0 + HOUR)
    failing = frozenset(range(1, 26))
    message = compose_mute_end(
        EndedMute(muted, Group(id=7, title="Shop", app_name="shop"), of_jobs, held_alarms, failing), config
    )
    assert message.title == "[Duetime] Shop (shop): no longer muted, 25 jobs still failing"
    assert "Held back: 100 alarms (50 unresolved), runs 1 to 150" in message.body
    assert "Reason" not in message.body
    assert message.body.count("… and 5 more jobs") == 2
    assert ("job-20 " in message.body, "job-21 " in message.body, "job-46 " in message.body) == (
        True,
        False,
        False,
    )


def test_a_mail_address_gets_only_its_own_jobs(config: Config) -> None:
    mails = {
        1: "ann@example.com",
        2: "bob@example.com, ann@example.com",
        3: "bob@example.com",
        4: "eve@example.com",
        5: "",
    }
    of_jobs = {
        number: Job(id=number, job_desc=f"job-{number}", job_group=8 if number == 4 else 7, alarm_email=text)
        for number, text in mails.items()
    }
    held_alarms = [HeldAlarms(number, 1, 0, number, number) for number in mails]
    muted = Mute(job_id=0, group_id=7, username="ann", reason="", since_ms=T0, until_ms=T0 + HOUR)
    shop = Group(id=7, title="Shop", app_name="shop")
    ended = EndedMute(muted, shop, of_jobs, held_alarms, frozenset({1, 2, 4, 5}))
    assert ended.mails == ["ann@example.com", "bob@example.com", "ann@example.com"], (
        "job 4 has left the group"
    )
    messages_to = {
        mail: compose_mute_end(ended.part(ended.jobs_of_mail(mail)), config) for mail in ended.mails
    }
    named = {
        mail: [number for number in mails if f"job-{number} " in message.body]
        for mail, message in messages_to.items()
    }
    assert named == {"ann@example.com": [1, 2], "bob@example.com": [2, 3]}
    assert messages_to["bob@example.com"].title == "[Duetime] Shop (shop): no longer muted, still failing"
    assert "Held back: 2 alarms, runs 2 to 3" in messages_to["bob@example.com"].body


def test_mails_list_their_own_jobs_and_the_channel_lists_all(
    database: str, config: Config, hook: FakeExecutor
) -> None:
    group = make_group(alarm_urls=url_of(hook))
    server = mail_server()
    with (
        server as (inbox, port),
        notifying(
            config, mail=MailConfig("127.0.0.1", port, sender="jobs@example.com", security="none")
        ) as notifier,
    ):
        mute(group_id=group.id)
        for name in ("ann", "bob"):
            fail_run(make_job(job_group=group.id, job_desc=f"of-{name}", alarm_email=f"{name}@example.com"))
        tick_until(notifier, T0, "MUTED", "MUTED")
        tick_until(notifier, T0 + HOUR, "SENT", "SENT")
    bodies = {
        envelope.rcpt_tos[0]: message_from_bytes(envelope.content or b"").get_payload(decode=True).decode()
        for envelope, _ in inbox.mails
    }
    bodies["hook"] = messages(hook)[0]["message"]
    named = {to: [name for name in ("of-ann", "of-bob") if name in body] for to, body in bodies.items()}
    assert named == {
        "ann@example.com": ["of-ann"],
        "bob@example.com": ["of-bob"],
        "hook": ["of-ann", "of-bob"],
    }
