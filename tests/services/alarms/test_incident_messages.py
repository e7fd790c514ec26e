"""Messages about incidents: one for each step, to the right targets, with what services of incidents need."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.database.engine import session_scope
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.alarms.muting import MuteSpan
from app.domain.promises.promise import promise_of
from app.models.alarm import Alarm
from app.models.job import Job
from app.models.promise import Incident, IncidentMessage, JobPromise
from app.services.alarms import channel_setup
from app.services.alarms.channel_setup import ChannelDraft
from app.services.alarms.channels import Message, MessageType, _keys_of, _name_incident, _plugin
from app.services.alarms.deliveries import GROUP_MS, RETRY_MS
from app.services.alarms.incident_messages import AT_ONCE, MUTED_MS
from app.services.alarms.incident_texts import breach_text, duration_text
from app.services.alarms.notifier import AlarmNotifier
from app.services.promises.incidents import Breach, acknowledge, end_incidents, open_incidents
from app.settings.config import Config
from tests.pipeline.steps import call_back
from tests.support.alarms import job_with_channels, messages, mute, notifying
from tests.support.console import ACTOR
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_run, only_row, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.truth_table import truth_table

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("database")]

STARTS = {"kind": "starts_within", "s": 60}
Tick = Callable[[Millis], Any]


def promise_row(job: Job, **changes: Any) -> JobPromise:
    values = {
        "kind": "starts_within",
        "definition": json.dumps(STARTS),
        "since_ms": 0,
        "planned_until_ms": T0,
    }
    return save(JobPromise(job_id=job.id, number=1, **values | changes))


def break_promise(job: Job, number: int = 0, now_ms: Millis = T0, log_ids: tuple[int, ...] = ()) -> Incident:
    """Open the incident of an instant."""
    instant = T0 + number * MINUTE_MS
    breach = Breach(f"i:{job.id}:{instant}", job.id, 1, json.dumps(STARTS), instant, log_ids)
    with session_scope() as session:
        open_incidents(session, [breach], now_ms=now_ms)
    return only_row(Incident, incident_key=breach.key)


def keep_again(row: JobPromise, now_ms: Millis) -> None:
    with session_scope() as session:
        session.get_one(JobPromise, row.id).kept_ms = now_ms
    with session_scope() as session:
        end_incidents(session, now_ms=now_ms)


def states() -> dict[str, str]:
    return {message.step: message.state for message in all_rows(IncidentMessage)}


def outcomes() -> list[str]:
    return sorted(message.state for message in all_rows(IncidentMessage))


def until(notifier: AlarmNotifier, now_ms: Millis, **wanted: str) -> None:
    eventually(
        lambda: notifier.tick(now_ms) and states() == wanted, message=lambda: f"{states()}, not {wanted}"
    )


def tried(notifier: AlarmNotifier, now_ms: Millis, attempts: int) -> None:
    """Wait until the only message waits for another attempt."""

    def is_waiting() -> bool:
        notifier.tick(now_ms)
        message = only_row(IncidentMessage)
        return (message.state, message.attempts) == ("PENDING", attempts)

    eventually(is_waiting)


def test_a_broken_promise_is_reported_once_and_so_is_that_it_is_kept_again(
    config: Config, hook: FakeExecutor
) -> None:
    job = job_with_channels(hook, job_desc="Nightly report")
    row = promise_row(job)
    incident = break_promise(job)
    with notifying(config) as notifier, notifying(config, "two") as other:
        until(notifier, T0, opened="SENT")
        other.tick(T0)
        break_promise(job)
        notifier.tick(T0 + 1_000)
        keep_again(row, T0 + 90_000)
        until(other, T0 + 90_000, opened="SENT", kept_again="SENT")
        notifier.tick(T0 + 91_000)
    first, second = messages(hook)
    assert first["title"] == f"[Duetime] Nightly report (job {job.id}): not started within 1 min"
    assert f"Incident: https://jobs.example.com/admin/incidents/{incident.id}" in first["message"]
    assert second["title"] == f"[Duetime] Nightly report (job {job.id}): kept again after 90 s"


def test_a_target_that_fails_is_tried_again(config: Config, hook: FakeExecutor) -> None:
    hook.respond("*", Answer(status=500), Answer())
    promise_row(job := job_with_channels(hook))
    break_promise(job)
    with notifying(config) as notifier:
        eventually(lambda: notifier.tick(T0) and only_row(IncidentMessage).outcome)
        until(notifier, T0 + RETRY_MS, opened="SENT")
    assert len(hook.requests) == 2


def test_that_it_is_kept_again_waits_for_the_first_message(config: Config, hook: FakeExecutor) -> None:
    hook.respond("*", Answer(status=500), Answer())
    row = promise_row(job := job_with_channels(hook))
    break_promise(job)
    with notifying(config) as notifier:
        eventually(lambda: notifier.tick(T0) and all_rows(IncidentMessage)[0].outcome)
        keep_again(row, T0 + 1_000)
        notifier.tick(T0 + 1_000)
        assert states() == {"opened": "PENDING", "kept_again": "PENDING"}
        until(notifier, T0 + RETRY_MS, opened="SENT", kept_again="PENDING")
        until(notifier, T0 + RETRY_MS + 5_000, opened="SENT", kept_again="SENT")
    assert ["kept again" in message["title"] for message in messages(hook)] == [False, False, True]


def channel(name: str, server: FakeExecutor, **scope: Any) -> None:
    draft = ChannelDraft(name, ChannelKind.WEBHOOK, {"url": server.address}, **scope)
    with session_scope() as session:
        channel_setup.add_channel(session, draft, actor=ACTOR, now_ms=T0)


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_what_is_not_acknowledged_is_escalated(
    config: Config, hook: FakeExecutor, is_acknowledged: bool
) -> None:
    with FakeExecutor() as on_call:
        escalation = json.dumps({"channel": "on call", "after_minutes": 5})
        job = job_with_channels(hook, escalation=escalation)
        channel("on call", on_call, for_all=False, group_ids=(make_group().id,))
        promise_row(job)
        incident = break_promise(job)
        with notifying(config) as notifier:
            until(notifier, T0, opened="SENT", escalated="PENDING")
            if is_acknowledged:
                with session_scope() as session:
                    acknowledge(session, incident.id, actor=ACTOR, now_ms=T0)
            notifier.tick(T0 + 5 * MINUTE_MS - 1)
            assert states()["escalated"] == "PENDING"
            expected = "SILENT" if is_acknowledged else "SENT"
            until(notifier, T0 + 5 * MINUTE_MS, opened="SENT", escalated=expected)
        assert len(hook.requests) == 1
        titles = [message["title"] for message in messages(on_call)]
        assert titles == ([] if is_acknowledged else [f"{messages(hook)[0]['title']}, not acknowledged"])


@pytest.mark.parametrize("is_reported", [False, True])
def test_the_channel_of_an_escalation_gets_that_it_is_kept_again(
    config: Config, hook: FakeExecutor, is_reported: bool
) -> None:
    with FakeExecutor() as on_call:
        job = job_with_channels(hook, escalation=json.dumps({"channel": "on call", "after_minutes": 5}))
        channel("on call", on_call, for_all=False, group_ids=(make_group().id,))
        row = promise_row(job)
        break_promise(job)
        first = "SILENT" if is_reported else "SENT"
        if is_reported:
            with session_scope() as session:
                session.get_one(IncidentMessage, all_rows(IncidentMessage)[0].id).state = first
        with notifying(config) as notifier:
            until(notifier, T0 + 5 * MINUTE_MS, opened=first, escalated="SENT")
            keep_again(row, T0 + HOUR_MS)
            until(notifier, T0 + HOUR_MS, opened=first, escalated="SENT", kept_again="SENT")
        assert len(hook.requests) == (0 if is_reported else 2)
        titles = [message["title"] for message in messages(on_call)]
        assert ["kept again" in title for title in titles] == [False, True]


def test_that_it_is_kept_again_does_not_wait_for_an_escalation(config: Config, hook: FakeExecutor) -> None:
    with FakeExecutor() as on_call:
        escalation = json.dumps({"channel": "on call", "after_minutes": 600})
        job = job_with_channels(hook, escalation=escalation)
        channel("on call", on_call, for_all=False, group_ids=(make_group().id,))
        row = promise_row(job)
        break_promise(job)
        with notifying(config) as notifier:
            until(notifier, T0, opened="SENT", escalated="PENDING")
            keep_again(row, T0 + MINUTE_MS)
            until(notifier, T0 + MINUTE_MS, opened="SENT", escalated="PENDING", kept_again="SENT")
            until(notifier, T0 + 601 * MINUTE_MS, opened="SENT", escalated="SILENT", kept_again="SENT")
        assert on_call.requests == []


def test_a_muted_job_is_silent_until_the_mute_ends(config: Config, hook: FakeExecutor) -> None:
    row = promise_row(job := job_with_channels(hook))
    mute(job, span=MuteSpan.HOUR)
    break_promise(job)
    break_promise(job, 1)
    with notifying(config) as notifier:
        notifier.tick(T0)
        assert [message.next_ms for message in all_rows(IncidentMessage)] == [T0 + MUTED_MS] * 2
        keep_again(row, T0 + MINUTE_MS)
        notifier.tick(T0 + MINUTE_MS)
        times = itertools.count(T0 + 61 * MINUTE_MS, 3_000)
        eventually(
            lambda: notifier.tick(next(times)) and outcomes() == ["SENT", "SILENT", "SILENT"],
            message=outcomes,
        )
    assert len(hook.requests) == 1


def test_many_incidents_of_a_job_are_put_together(config: Config, hook: FakeExecutor) -> None:
    promise_row(job := job_with_channels(hook))
    for number in range(AT_ONCE + 20):
        break_promise(job, number)
    with notifying(config) as notifier:
        until(notifier, T0, opened="SENT")
        eventually(lambda: notifier.tick(T0) and len(hook.requests) == AT_ONCE + 1)
        break_promise(job, 100, T0 + MINUTE_MS)
        notifier.tick(T0 + MINUTE_MS)
        assert len(hook.requests) == AT_ONCE + 1
        eventually(lambda: notifier.tick(T0 + GROUP_MS) and len(hook.requests) == AT_ONCE + 2)
    # Several are sent at a time, so any of them may arrive first.
    titles = [message["title"] for message in messages(hook)]
    assert sum(title.endswith(": 20 incidents") for title in titles) == 1


def test_many_incidents_that_are_kept_again_are_put_together(config: Config, hook: FakeExecutor) -> None:
    row = promise_row(job := job_with_channels(hook))
    for number in range(AT_ONCE + 20):
        break_promise(job, number)
    with notifying(config) as notifier:
        until(notifier, T0, opened="SENT")
        keep_again(row, T0 + HOUR_MS)
        until(notifier, T0 + HOUR_MS, opened="SENT", kept_again="SENT")
    titles = [message["title"] for message in messages(hook) if "kept again" in message["title"]]
    assert len(titles) == AT_ONCE + 1
    assert f"[Duetime] {job.job_desc} (job {job.id}): 20 incidents kept again" in titles


def test_many_escalations_are_put_together(config: Config, hook: FakeExecutor) -> None:
    with FakeExecutor() as on_call:
        escalation = json.dumps({"channel": "on call", "after_minutes": 5})
        job = job_with_channels(hook, escalation=escalation)
        channel("on call", on_call, for_all=False, group_ids=(make_group().id,))
        promise_row(job)
        for number in range(AT_ONCE + 20):
            break_promise(job, number)
        with notifying(config) as notifier:
            until(notifier, T0 + HOUR_MS, opened="SENT", escalated="SENT")
        assert len(on_call.requests) == AT_ONCE + 1


def test_incidents_that_were_put_together_are_tried_again_together(
    config: Config, hook: FakeExecutor
) -> None:
    hook.respond("*", *[Answer(status=500)] * (AT_ONCE + 1), Answer())
    promise_row(job := job_with_channels(hook))
    for number in range(AT_ONCE + 20):
        break_promise(job, number)
    with notifying(config) as notifier:
        eventually(lambda: notifier.tick(T0) and all(row.outcome for row in all_rows(IncidentMessage)))
        until(notifier, T0 + RETRY_MS, opened="SENT")
    assert len(hook.requests) <= 2 * (AT_ONCE + 1)


def test_what_some_have_got_is_not_dropped_when_it_is_kept_again(config: Config, hook: FakeExecutor) -> None:
    with FakeExecutor() as webhook:
        webhook.respond("*", *[Answer(status=500)] * 2, Answer())
        row = promise_row(job := job_with_channels(hook))
        channel("all", webhook, for_all=True)
        break_promise(job)
        with notifying(config) as notifier:
            tried(notifier, T0, attempts=1)
            tried(notifier, T0 + RETRY_MS, attempts=2)
            keep_again(row, T0 + RETRY_MS)
            times = itertools.count(T0 + RETRY_MS * 3, 3_000)
            eventually(
                lambda: notifier.tick(next(times)) and states() == {"opened": "SENT", "kept_again": "SENT"},
                message=lambda: f"{states()}",
            )
    assert ["kept again" in message["title"] for message in messages(hook)] == [False, True]


def test_a_failure_of_a_reported_instant_is_an_update_of_its_incident(
    config: Config, hook: FakeExecutor
) -> None:
    with FakeExecutor() as webhook:
        promise_row(job := job_with_channels(hook))
        channel("all", webhook, for_all=True)
        run = make_run(job, log={"fire_time": T0, "trigger_type": "CRON"})
        incident = break_promise(job, log_ids=(run.id,))
        with notifying(config) as notifier:
            until(notifier, T0, opened="SENT")
            assert call_back(run.id, 500, "disk full", now_ms=T0 + 1_000)
            eventually(lambda: notifier.tick(T0 + 1_000) and only_row(Alarm).state == "SENT")
        first, second = (request.json for request in webhook.requests)
        key = f"duetime:{incident.incident_key}"
        assert (first["state"], first["incident"], first["dedup_key"]) == ("opened", incident.id, key)
        assert (second["state"], second["incident"], second["dedup_key"]) == ("failed", incident.id, key)
        assert f"/incidents/{incident.id}" in messages(hook)[1]["message"]


def test_services_of_incidents_get_the_key() -> None:
    """Their plugins send it to servers of their own, which a test cannot stand in for."""
    message = Message("title", "text", MessageType.FAILURE, {"dedup_key": "duetime:i:1:2"})
    pager, _reason = _plugin("pagerduty://" + "a" * 32 + "@" + "b" * 20)
    _name_incident(pager, *_keys_of(pager, message))
    assert (pager.dedup, pager.action) == ("duetime:i:1:2", "map")
    genie, _reason = _plugin("opsgenie://" + "a" * 36)
    _name_incident(genie, *_keys_of(genie, message))
    assert genie.alias == "duetime:i:1:2"
    _name_incident(pager, *_keys_of(pager, Message("title", "text")))
    assert pager.dedup == "duetime:i:1:2"
    several = {"dedup_key": "duetime:i:1:2", "dedup_keys": ["duetime:i:1:2", "duetime:i:1:3"]}
    ended = Message("title", "text", MessageType.SUCCESS, several)
    assert _keys_of(pager, ended) == several["dedup_keys"]
    assert _keys_of(genie, ended) == [several["dedup_key"]]


@truth_table(
    "members, text",
    [
        ({"kind": "starts_within", "s": 90}, "not started within 90 s"),
        ({"kind": "finishes_within", "s": 120}, "not succeeded within 2 min"),
        ({"kind": "finishes_by", "at": "06:00+1d"}, "not succeeded by 06:00+1d"),
        ({"kind": "succeeds_every", "s": 86_400}, "no success for 24 h"),
        ({"kind": "takes_at_most", "s": 5}, "takes longer than 5 s"),
        ({"kind": "takes_at_least", "s": 5}, "took less than 5 s"),
        ({"kind": "takes_usual_times", "times": 2.5}, "takes over 2.5 times as long as usual"),
        ({"kind": "fails_at_most", "n": 0}, "failed"),
        ({"kind": "fails_at_most", "n": 1}, "failed more than once in a row"),
        ({"kind": "fails_at_most", "n": 2}, "failed more than 2 times in a row"),
    ],
)
def test_what_is_wrong_in_words(members: dict[str, Any], text: str) -> None:
    assert breach_text(promise_of(members)) == text


@truth_table("ms, text", [(0, "0 s"), (-5, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_200_000, "2 h")])
def test_a_duration_in_words(ms: int, text: str) -> None:
    assert duration_text(ms) == text
