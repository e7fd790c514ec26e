"""Pages of alarms: inbox, health of channels, mutes; rights, filters, tabs, and the way to a repair."""

import json
import re
from collections.abc import Callable

import pytest

from app.clock import MINUTE_MS, now_ms
from app.console.alarms.sections import HEIGHT, BarPart, day_bars
from app.domain.access.permissions import Right
from app.domain.alarms.channel_health import DayCount
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.channel import AlarmChannel
from app.models.job import Job
from app.models.mute import Mute
from app.services.alarms.deliveries import LEASE_MS
from app.services.alarms.targets import destinations_of
from tests.console.pages import path_after, submit, text_of
from tests.support.console import CONTEXT, Console, add_group, add_job
from tests.support.factories import all_rows, make_log, only_row, save
from tests.support.fake_executor import FakeExecutor

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

VIEWER = frozenset({Right.VIEW})
OPERATOR = VIEWER | {Right.OPERATE}


def channel(name: str, url: str = "http://127.0.0.1:1/") -> tuple[AlarmChannel, str]:
    row = save(AlarmChannel(name=name, kind="webhook", settings=json.dumps({"url": url}), for_all=1))
    return row, next(iter(destinations_of(row)))


def alarm(job_id: int, group_id: int, minutes: int, state: str, outcome: dict[str, str]) -> Alarm:
    at_ms = now_ms() - minutes * MINUTE_MS
    job = Job(id=job_id, job_group=group_id, executor_handler="h", executor_fail_retry_count=0)
    log = make_log(job, trigger_time=at_ms, handle_code=500, handle_msg="HTTP 429")
    row = {"job_id": job_id, "log_id": log.id, "reason": "failed", "created_ms": at_ms, "state": state}
    return save(Alarm(**row, lease_until=at_ms + LEASE_MS, outcome=json.dumps(outcome)))


def test_the_inbox_shows_what_each_channel_answered(admin: Console) -> None:
    group_id = add_group()
    job_id, (_chat, chat), (pager, broken) = (
        add_job(group_id),
        channel("chat"),
        channel("pager", "http://127.0.0.1:1/p"),
    )
    for minutes in (60, 30):
        alarm(job_id, group_id, minutes, "PARTLY", {chat: "ok", broken: "HTTP 500"})
    alarm(job_id, group_id, 20, "MUTED", {"muted": "by ann until unmuted"})
    alarm(job_id, group_id, 90, "CLOSED", {chat: "ok"})
    page = admin.get("/alarms")
    text = text_of(page)
    assert "All 4 Sent 3 Failed 2 Held back 1" in text
    assert "Failed HTTP 429 sent: chat failed: pager HTTP 500" in text
    assert "held back, muted" in text
    assert text.count(f"{job_id} nightly report recovered since") == 1
    assert "1 broken" in text
    assert re.search(r"pager Broken since \S+( \S+)? Test HTTP 500 · 2 messages lost ·", text)
    failed = text_of(admin.get(f"/alarms?result=failed&channel={pager.id}"))
    assert failed.count("Failed HTTP 429") == 2
    assert "held back, muted" not in failed


def test_users_see_only_alarms_mutes_and_channels_of_their_groups(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, secret = add_group("own-app"), add_group("secret-app")
    newcomer, norman = normal_user(username="newcomer"), normal_user(own, rights={own: VIEWER})
    for path in ("/alarms", "/alarmchannels", "/alarms/mutes"):
        assert "You may view no executor group yet" in text_of(newcomer.get(path))
    own_job, secret_job = add_job(own), add_job(secret, job_desc="secret job")
    _row, name = channel("chat")
    alarm(own_job, own, 5, "SENT", {name: "ok"})
    alarm(secret_job, secret, 4, "FAILED", {name: "secret error"})
    save(Mute(job_id=secret_job, since_ms=1, until_ms=now_ms() + MINUTE_MS, reason="secret"))
    save(AlarmChannel(name="secret channel", kind="webhook", settings="{}", for_all=0))
    for path in ("/alarms", "/alarmchannels", "/alarms/mutes"):
        page = norman.get(path)
        assert page.status_code == 200
        assert "secret" not in page.text, path
    assert "chat Webhook Healthy" in text_of(norman.get("/alarmchannels"))
    assert "/edit" not in norman.get("/alarmchannels").text
    assert norman.get(f"/alarms?jobId={secret_job}").status_code == 404
    assert "secret error" in admin.get("/alarms").text


def test_a_repaired_channel_stops_being_broken_with_a_test(admin: Console, hook: FakeExecutor) -> None:
    group_id = add_group()
    job_id, (row, name) = add_job(group_id), channel("pager", hook.address + "p")
    for minutes in (60, 30):
        alarm(job_id, group_id, minutes, "FAILED", {name: "HTTP 500"})
    assert "Broken since" in text_of(admin.get("/alarmchannels"))
    assert "pager Sent" in text_of(submit(admin, f"/alarmchannels/{row.id}/test"))
    assert [entry.changes for entry in all_rows(AuditEntry) if entry.action == "channel.test"] == [None]
    page = text_of(admin.get("/alarmchannels"))
    assert "Healthy Last delivery just now" in page
    assert "Broken since" not in page


def test_mutes_are_listed_with_their_end_and_ended_there(normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    norman = normal_user(group_id, rights={group_id: OPERATOR})
    job_id = add_job(group_id)
    values = {"since_ms": now_ms(), "username": "ann"}
    save(Mute(job_id=job_id, until_ms=now_ms() + 60 * MINUTE_MS, reason="OPS-2214", **values))
    page = norman.get("/alarms/mutes")
    assert f"{job_id} nightly report in 60 minutes OPS-2214 ann just now Unmute" in text_of(page)
    assert "Mutes 1" in text_of(page)
    done = submit(norman, f"/jobinfo/{job_id}/unmute", next=f"{CONTEXT}/alarms/mutes")
    assert path_after(done).startswith("/alarms/mutes")
    assert only_row(Mute).until_ms <= now_ms()
    assert "Nothing is muted" in text_of(norman.get("/alarms/mutes"))


def test_who_may_only_view_ends_no_mute(normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    norman = normal_user(group_id, rights={group_id: VIEWER})
    save(Mute(job_id=add_job(group_id), since_ms=1, until_ms=now_ms() + MINUTE_MS))
    assert "Unmute" not in text_of(norman.get("/alarms/mutes"))


def test_a_search_text_is_a_job_or_filters(admin: Console) -> None:
    job_id = add_job(add_group(), job_desc="nightly")
    pager, _destination = channel("On call")
    for typed, expected in (
        ("nightly", f"jobId={job_id}"),
        (f"#{job_id} result:failed", f"result=failed&jobId={job_id}"),
        ("channel:on-call", f"channel={pager.id}"),
        ("result:held-back", "result=held"),
        ("period:yesterday", "range=yesterday"),
    ):
        address = admin.get("/alarms", query_string={"q": typed}).headers.get("Location", "")
        assert address.endswith(f"/alarms?{expected}"), typed
    assert "No job matches “weekly”." in text_of(admin.get("/alarms?q=weekly"))
    page = text_of(admin.get(f"/alarms?jobId={job_id}&channel={pager.id}&range=week"))
    assert f"Job: {job_id} nightly remove Channel: On call remove" in page
    assert "Time: Last week" not in page, "the period that the list has without a filter is none"


def test_values_of_the_url_that_mean_nothing_are_ignored(admin: Console) -> None:
    for query in ("result=x", "channel=x", "channel=9", "before=-1", "before=x", "range=x", "jobId=x"):
        assert admin.get(f"/alarms?{query}").status_code == 200, query
    for query in ("after=x", "after=1-", "after=-1", "after=99999999999999999999-1", "after=1-999999999999"):
        assert admin.get(f"/alarms/mutes?{query}").status_code == 200, query


def test_the_bars_of_a_channel_share_one_scale() -> None:
    days = [f"2024-05-0{number}" for number in range(1, 5)]
    bars = day_bars([DayCount(), DayCount(11, 0), DayCount(1, 1), DayCount(0, 22)], days)
    assert [bar.x for bar in bars] == [0, 14, 28, 42]
    assert bars[0].parts == [BarPart(HEIGHT - 2, 2, "none")]
    assert bars[1].parts == [BarPart(HEIGHT - 11, 11, "ok")]
    assert bars[2].parts == [BarPart(HEIGHT - 2, 2, "ok"), BarPart(HEIGHT - 4, 2, "fail")]
    assert bars[3].parts == [BarPart(2, 22, "fail")]
    assert bars[3].title == "2024-05-04: 0 sent, 22 failed"
