"""Alarm channels of the console: which alarms reach them, as what, and how they are stored and audited."""

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.alarms.channel_kinds import ChannelKind
from app.errors import Conflict, InvalidInput, NotConfigured
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.channel import AlarmChannel, ChannelScope
from app.models.job import Job
from app.models.mute import Mute
from app.services.alarms import channel_setup
from app.services.alarms.channel_setup import ChannelDraft
from app.services.alarms.channels import OK, Message, MessageType, send_webhook
from app.services.alarms.deliveries import RETRY_MS
from app.services.installation import sealed_tokens
from app.services.jobs import jobs
from app.settings.config import Config, MailConfig
from app.settings.sealing import use_key
from app.store.alarms import channels
from tests.pipeline.steps import call_back
from tests.support.alarms import HOUR, fail_run, mail_server, messages, mute, notifying, results, tick_until
from tests.support.eventually import eventually
from tests.support.factories import T0, all_rows, make_group, make_job, make_run, only_row
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.plan import every_database
from tests.support.statements import statements

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("database")]

ACTOR = system_actor("ann")
MOVED = (("Location", "http://127.0.0.1:1/"),)
#: redirect whose body ends in the middle
CUT_REDIRECT = (
    b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Encoding: gzip\r\nContent-Length: 99999\r\n\r\n"
    + gzip.compress(random.Random(1).randbytes(60_000))[:50_000]
)


def webhook(server: FakeExecutor, path: str = "") -> dict[str, str]:
    return {"url": f"{server.address}{path}"}


def add(name: str, kind: str, settings: dict[str, str], **scope: Any) -> int:
    draft = ChannelDraft(name, ChannelKind(kind), settings, for_all=not scope, **scope)
    with session_scope() as session:
        return channel_setup.add_channel(session, draft, actor=ACTOR, now_ms=T0)


@every_database
def test_a_name_that_the_database_takes_for_another_one_is_refused(database_kind: str) -> None:
    """MySQL and MariaDB ignore accents."""
    first = add("Café 🔥", "webhook", {"url": "http://127.0.0.1:9/"})
    second = add("Bar", "webhook", {"url": "http://127.0.0.1:9/"})
    if database_kind not in ("mariadb", "mysql"):
        add("Cafe 🔥", "webhook", {"url": "http://127.0.0.1:9/"})
        return
    same = "Cafe 🔥"
    with pytest.raises(InvalidInput, match="is the name of another alarm channel"):
        add(same, "webhook", {"url": "http://127.0.0.1:9/"})
    draft = ChannelDraft(same, ChannelKind.WEBHOOK, {"url": "http://127.0.0.1:9/"})
    with (
        pytest.raises(InvalidInput, match="is the name of another alarm channel"),
        session_scope() as session,
    ):
        channel_setup.update_channel(session, second, draft, actor=ACTOR, now_ms=T0)
    with session_scope() as session:
        channel_setup.update_channel(session, first, draft, actor=ACTOR, now_ms=T0)
    assert [channel.name for channel in all_rows(AlarmChannel)] == [same, "Bar"]


@every_database
def test_alarms_reach_the_channels_for_all_for_the_group_and_for_the_job(
    config: Config, hook: FakeExecutor
) -> None:
    job, other = make_job(), make_job()
    add("all", "webhook", webhook(hook, "all"))
    add("group", "webhook", webhook(hook, "group"), group_ids=[job.job_group])
    add("job", "webhook", webhook(hook, "job"), job_ids=[job.id])
    add("both", "webhook", webhook(hook, "both"), job_ids=[job.id], group_ids=[job.job_group])
    add("other job", "webhook", webhook(hook, "other"), job_ids=[other.id], group_ids=[other.job_group])
    run = fail_run(job)
    with notifying(config) as notifier, statements() as executed:
        tick_until(notifier, T0, "SENT")
    assert sorted(request.target for request in hook.requests) == ["/all", "/both", "/group", "/job"]
    assert len([sql for sql in executed if "LEFT OUTER JOIN xxl_job_channel_scope" in sql]) == 1, (
        "one statement for a batch"
    )
    names = ("all", "both", "group", "job")
    assert results(only_row(Alarm)) == {f"channel {name}": OK for name in names}
    first = messages(hook)[0]
    assert first | {"title": "", "message": ""} == {
        "type": "failure",
        "job": job.id,
        "description": job.job_desc,
        "executor": "demo-executor",
        "run": run.id,
        "runs": 1,
        "state": "failed",
        "reason": "disk full",
        "link": f"https://jobs.example.com/admin/joblog/logDetailPage?id={run.id}",
        "title": "",
        "message": "",
    }


@pytest.mark.parametrize("stored", ["by this version", "by the one before"])
def test_a_retry_does_not_reach_a_channel_that_has_the_alarm_under_another_name(
    config: Config, hook: FakeExecutor, stored: str
) -> None:
    channel_id = add("Ops #2", "webhook", webhook(hook))
    fail_run(make_job())
    with FakeExecutor() as broken, notifying(config, alarm_urls=(json_url(broken),)) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
        if stored == "by this version":
            change(channel_id, ChannelDraft("renamed", ChannelKind.WEBHOOK, webhook(hook)))
        else:
            rename_results({"channel Ops #2": OK, "1 json://… #12345678": "refused"})
        tick_until(notifier, T0 + RETRY_MS, "SENT")
        assert (len(hook.requests), len(broken.requests)) == (1, 2)
    assert "channel Ops #2" in results(only_row(Alarm))


def rename_results(outcome: dict[str, str]) -> None:
    with session_scope() as session:
        session.merge(only_row(Alarm)).outcome = json.dumps(outcome)


def test_a_changed_channel_gets_the_alarm_at_its_new_address(config: Config, hook: FakeExecutor) -> None:
    channel_id = add("Ops", "webhook", webhook(hook, "old"))
    fail_run(make_job())
    with FakeExecutor() as broken, notifying(config, alarm_urls=(json_url(broken),)) as notifier:
        broken.respond("*", Answer(status=500), Answer())
        eventually(lambda: notifier.tick(T0) and only_row(Alarm).outcome)
        change(channel_id, ChannelDraft("Ops", ChannelKind.WEBHOOK, webhook(hook, "new")))
        tick_until(notifier, T0 + RETRY_MS, "SENT")
    assert [request.target for request in hook.requests] == ["/old", "/new"]


def test_a_recovery_is_a_success_and_a_summary_a_warning(config: Config, hook: FakeExecutor) -> None:
    job, muted = make_job(), make_job()
    add("all", "webhook", webhook(hook))
    add("own", "webhook", webhook(hook, "own"), job_ids=[muted.id])
    fail_run(job)
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
        assert call_back(make_run(job).id, 200, "", now_ms=T0)
        eventually(lambda: notifier.tick(T0 + HOUR) and len(hook.requests) == 2, message="recovery")
        mute(muted)
        fail_run(muted)
        tick_until(notifier, T0, "CLOSED", "MUTED")
        eventually(lambda: notifier.tick(T0 + 2 * HOUR) and len(hook.requests) == 4, message="summary")
    assert [each["type"] for each in messages(hook)] == ["failure", "success", "warning", "warning"]
    assert [each["state"] for each in messages(hook)] == ["failed", "recovered", "unmuted", "unmuted"]


@pytest.mark.parametrize("wide", ["channel", "group", "installation"])
def test_a_summary_to_one_destination_of_several_targets_is_of_all_their_jobs(
    config: Config, hook: FakeExecutor, wide: str
) -> None:
    url = json_url(hook)
    group = make_group(alarm_urls=url if wide == "group" else None)
    jobs_of_group = [make_job(job_group=group.id, job_desc=name) for name in ("first", "second")]
    add("narrow", "apprise", {"url": url}, job_ids=[jobs_of_group[0].id])
    if wide == "channel":
        add("wide", "apprise", {"url": url})
    assert jobs_in_summary(config, hook, group.id, urls=[url] if wide == "installation" else []) == [
        "first",
        "second",
    ]


def test_a_summary_to_two_channels_with_one_address_is_of_the_jobs_of_both(
    config: Config, hook: FakeExecutor
) -> None:
    group = make_group()
    for name in ("first", "second", "third"):
        job = make_job(job_group=group.id, job_desc=name)
        if name != "third":
            add(name, "webhook", webhook(hook), job_ids=[job.id])
    assert jobs_in_summary(config, hook, group.id) == ["first", "second"]


def json_url(server: FakeExecutor) -> str:
    return server.address.replace("http", "json", 1)


def jobs_in_summary(config: Config, hook: FakeExecutor, group_id: int, urls: Sequence[str] = ()) -> list[str]:
    """Mute a group, fail a run of each of its jobs; return the jobs that the one summary names."""
    mute(group_id=group_id)
    all_jobs = all_rows(Job)
    for job in all_jobs:
        fail_run(job)
    with notifying(config, alarm_urls=tuple(urls)) as notifier:
        tick_until(notifier, T0, *["MUTED"] * len(all_jobs))
        eventually(lambda: notifier.tick(T0 + HOUR) and all_rows(Mute) == [])
    (summary,) = messages(hook)
    return [job.job_desc for job in all_jobs if f"{job.job_desc} (job {job.id})" in summary["message"]]


def test_apprise_gets_the_type_of_a_message(config: Config, hook: FakeExecutor) -> None:
    add("other", "apprise", {"url": json_url(hook)})
    fail_run(make_job())
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
    assert messages(hook)[0]["type"] == "failure"


def test_ntfy_gets_topic_token_and_text(config: Config, hook: FakeExecutor) -> None:
    settings = {"server": hook.address.rstrip("/"), "topic": "alarms", "token": "tk_1/2"}
    add("phone", "ntfy", settings)
    fail_run(make_job(job_desc="Nightly"))
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SENT")
    (request,) = hook.requests
    assert request.json["topic"] == "alarms"
    assert "Nightly" in request.json["title"]
    assert request.headers["Authorization"] == "Bearer tk_1/2"


def test_mail_channels_join_the_addresses_of_the_job(config: Config) -> None:
    job = make_job(alarm_email="ops@example.com")
    add("team", "mail", {"addresses": "ops@example.com, dev@example.com"}, group_ids=[job.job_group])
    fail_run(job)
    with mail_server() as (inbox, port):
        mail = MailConfig(host="127.0.0.1", port=port, security="none", sender="xxl@example.com")
        with notifying(replace(config, mail=mail)) as notifier:
            tick_until(notifier, T0, "SENT")
    receivers = sorted(mail.rcpt_tos[0] for mail, _ in inbox.mails)
    assert receivers == ["dev@example.com", "ops@example.com"]


def test_without_a_mail_server_the_alarm_says_which_mails_were_not_sent(config: Config) -> None:
    add("team", "mail", {"addresses": "dev@example.com"})
    fail_run(make_job(alarm_email="ops@example.com"))
    with notifying(config) as notifier:
        tick_until(notifier, T0, "SILENT")
    unset = "XXL_JOB_MAIL_HOST is not set"
    assert json.loads(only_row(Alarm).outcome or "") == {
        "mail ops@example.com": unset,
        "mail dev@example.com": unset,
    }


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(b"", 204), OK),
        (Answer(status=500), "the webhook answered with the status 500"),
        (
            Answer(status=302, headers=MOVED),
            "the channel answered with a redirect",
        ),
        (
            Answer(b"", 302, (("Location", "http://["),)),
            "the channel answered with a redirect",
        ),
        (Answer(verbatim=CUT_REDIRECT, close_after=True), "ChunkedEncodingError"),
    ],
)
def test_a_webhook_answers(hook: FakeExecutor, answer: Answer, problem: str) -> None:
    hook.respond("*", answer)
    sent = send_webhook(hook.address + "p%2Fq?a=1&a=2", Message("t", "b", MessageType.INFO, {"job": 7}))
    assert sent.startswith(problem)
    (request,) = hook.requests
    assert request.json == {"job": 7, "type": "info", "title": "t", "message": "b"}


def test_a_webhook_never_leads_to_metadata_services() -> None:
    assert "link-local or metadata" in send_webhook("http://169.254.169.254/", Message("t", "b"))
    assert send_webhook("http://127.0.0.1:1/secret", Message("t", "b")) == "ConnectionError"


@every_database
def test_a_channel_is_stored_sealed_and_audited_without_secrets() -> None:
    job = make_job()
    channel_id = add("Ops", "dingtalk", DING, job_ids=[job.id])
    draft = ChannelDraft(" Ops  2 ", ChannelKind.DINGTALK, {}, for_all=False, group_ids=[job.job_group])
    change(channel_id, draft)
    with read_scope() as session:
        stored = session.execute(text("SELECT settings FROM xxl_job_channel")).scalar_one()
        found = channel_setup.get_channel(session, channel_id, actor=ACTOR)
    assert stored.startswith("enc1:")
    assert json.loads(found.channel.settings) == DING, "empty secrets keep their values"
    assert (found.channel.name, found.group_ids, found.job_ids) == ("Ops 2", {job.job_group}, set())
    trail = all_rows(AuditEntry, object_type="channel")
    assert [entry.action for entry in trail] == ["channel.add", "channel.update"]
    assert json.loads(trail[1].changes or "") == {
        "name": ["Ops", "Ops 2"],
        "groups": [[], [job.job_group]],
        "jobs": [[job.id], []],
    }
    assert "aB12" not in "".join(entry.changes or "" for entry in trail)
    change(channel_id, replace(draft, dropped={"secret"}))
    assert "SEC1" not in only_row(AlarmChannel).settings


DING = {"url": "https://oapi.dingtalk.com/robot/send?access_token=aB12", "secret": "SEC1"}


def change(channel_id: int, draft: ChannelDraft) -> None:
    with session_scope() as session:
        channel_setup.update_channel(session, channel_id, draft, actor=ACTOR, now_ms=T0)


def test_all_errors_of_a_channel_are_refused_at_once() -> None:
    add("Ops", "mail", {"addresses": "a@b.example"})
    with pytest.raises(InvalidInput) as refused:
        add("ops", "slack", {"url": "x"}, group_ids=[999])
    assert {error.field for error in refused.value.errors} == {"name", "url", "groups"}
    with pytest.raises(InvalidInput, match="Choose at least one executor or job"):
        add("other", "mail", {"addresses": "a@b.example"}, group_ids=[])
    phone = add("phone", "ntfy", {"server": "https://ntfy.sh", "topic": "t", "token": "tk_1"})
    with pytest.raises(InvalidInput, match="the server has changed"):
        change(
            phone, ChannelDraft("phone", ChannelKind.NTFY, {"server": "https://evil.example", "topic": "t"})
        )


def test_the_number_of_channels_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_setup, "CHANNELS_MAX", 1)
    add("one", "mail", {"addresses": "a@b.example"})
    with pytest.raises(Conflict, match="1 alarm channels already"):
        add("two", "mail", {"addresses": "a@b.example"})


@every_database
def test_a_deleted_job_leaves_its_channels() -> None:
    job, kept = make_job(), make_job()
    channel_id = add("job", "mail", {"addresses": "a@b.example"}, job_ids=[job.id, kept.id])
    with session_scope() as session:
        jobs.remove_job(session, job.id, actor=ACTOR, now_ms=T0)
    assert [row.job_id for row in all_rows(ChannelScope)] == [kept.id]
    with session_scope() as session:
        channel_setup.remove_channel(session, channel_id, actor=ACTOR, now_ms=T0)
    assert (all_rows(AlarmChannel), all_rows(ChannelScope)) == ([], [])


def test_a_start_with_another_application_key_names_the_channel(config: Config) -> None:
    add("Ops", "mail", {"addresses": "a@b.example"})
    sealed_tokens.check(config)
    use_key(lambda: "another key of at least thirty-two characters")
    with pytest.raises(NotConfigured, match="the alarm channel Ops was encrypted with another"):
        sealed_tokens.check(config)


def test_a_channel_of_no_job_is_for_none(config: Config) -> None:
    group = make_group()
    add("job", "mail", {"addresses": "a@b.example"}, group_ids=[group.id])
    with read_scope() as session:
        assert channels.find_for(session, group_ids=[0], job_ids=[0]) == []
        assert len(channels.find_for(session, group_ids=[group.id])) == 1
