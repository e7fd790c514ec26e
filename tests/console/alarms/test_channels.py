"""Pages of alarm channels: forms by kind, save and test, secrets, deletion; where alarms cannot arrive."""

import json
import re
from dataclasses import replace

import pytest

from app.clock import MINUTE_MS, now_ms
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel, ChannelScope
from app.services.alarms.deliveries import LEASE_MS
from app.services.alarms.targets import destinations_of
from tests.console.pages import path_after, submit, text_of
from tests.support.console import CONTEXT, Console, add_group, add_job
from tests.support.console_alarms import configure, titles
from tests.support.factories import T0, all_rows, make_group, make_job, make_log, only_row, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.statements import statements

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SLACK = "https://hooks.slack.com/services/T0000/B0000/s3cr3t"
SLACK_FORM = {"kind": "slack", "name": "Slack", "url": SLACK, "scope": "all", "groups": "", "jobs": ""}


def test_each_kind_has_a_form_with_an_example_and_where_to_find_the_value(admin: Console) -> None:
    page = admin.get("/alarmchannels").text
    for kind, each in KINDS.items():
        assert f'href="{CONTEXT}/alarmchannels/new?kind={kind}"' in page
        form = admin.get(f"/alarmchannels/new?kind={kind}").text
        for field in each.fields:
            assert f'placeholder="{field.example}"'.replace("&", "&amp;") in form
            assert field.hint in text_of(admin.get(f"/alarmchannels/new?kind={kind}"))
    assert path_after(admin.get("/alarmchannels/new?kind=unknown")) == "/alarmchannels"


def test_a_channel_is_added_changed_and_deleted_without_showing_its_secret(admin: Console) -> None:
    job_id = add_job(add_group())
    assert "done=added&" in path_after(submit(admin, "/alarmchannels/new?kind=slack", **SLACK_FORM))
    channel = only_row(AlarmChannel)
    assert (channel.name, channel.for_all, json.loads(channel.settings)) == ("Slack", 1, {"url": SLACK})
    assert "Slack 2" in admin.get("/alarmchannels/new?kind=slack").text, "a free name is offered"
    edit = f"/alarmchannels/{channel.id}/edit"
    changes = {"name": "Ops", "url": "", "scope": "chosen", "groups": "", "jobs": f"{job_id}, {job_id}"}
    shown = [admin.get("/alarmchannels"), admin.get(edit), submit(admin, edit, **(changes | {"jobs": ""}))]
    assert "Choose at least one executor or job, or all jobs" in shown[2].text
    assert "done=saved&" in path_after(submit(admin, edit, **changes))
    assert json.loads(only_row(AlarmChannel).settings) == {"url": SLACK}
    assert [row.job_id for row in all_rows(ChannelScope)] == [job_id]
    shown += [admin.get("/alarmchannels"), admin.get("/user/audit?object=channel")]
    assert "Ops Slack https://hooks.slack.com/… Quiet" in text_of(shown[3])
    assert f"0 sent {job_id} nightly report" in text_of(shown[3])
    assert "changed alarm channel Ops Name: Slack → Ops For all jobs: yes → no Chosen jobs:" in text_of(
        shown[4]
    )
    assert not any("s3cr3t" in page.text for page in shown)
    assert "done=removed&" in path_after(submit(admin, f"/alarmchannels/{channel.id}/delete"))
    assert (all_rows(AlarmChannel), all_rows(ChannelScope)) == ([], [])
    assert admin.get(edit).status_code == 404


def test_the_daily_message_is_ticked_and_removed(admin: Console) -> None:
    submit(admin, "/alarmchannels/new?kind=slack", **SLACK_FORM, daily="y")
    channel = only_row(AlarmChannel)
    assert (channel.daily, len(channel.daily_day)) == (1, 10)
    edit = f"/alarmchannels/{channel.id}/edit"
    assert re.search(r'name="daily"[^>]*checked|checked[^>]*name="daily"', admin.get(edit).text)
    submit(admin, edit, **SLACK_FORM, daily="")
    assert only_row(AlarmChannel).daily == 0
    assert "Daily message: yes → no" in text_of(admin.get("/user/audit?object=channel"))


def test_all_errors_are_shown_at_their_fields(admin: Console) -> None:
    form = {"kind": "ntfy", "name": "", "server": "ntfy.sh", "topic": "ö", "scope": "chosen", "jobs": "x"}
    page = submit(admin, "/alarmchannels/new?kind=ntfy", **form)
    assert page.status_code == 400
    for field in ("name", "server", "topic", "jobs"):
        assert f'id="{field}-error"' in page.text
    assert all_rows(AlarmChannel) == []


def test_save_and_test_sends_one_message_and_shows_the_result(admin: Console, hook: FakeExecutor) -> None:
    form = {"kind": "webhook", "name": "Hook", "url": hook.address + "s3cr3t", "scope": "all", "test": "1"}
    sent = submit(admin, "/alarmchannels/new?kind=webhook", **form)
    assert sent.status_code == 307, "the browser repeats the form at the page of the test"
    path = sent.headers["Location"].removeprefix(CONTEXT)
    page = submit(admin, path)
    assert "channel Hook Sent" in text_of(page)
    assert "s3cr3t" not in page.text
    assert titles(hook) == ["[Duetime] TEST alarm, nothing has failed: all jobs"]
    assert hook.requests[0].json["type"] == "info"
    hook.respond("*", Answer(status=404))
    assert "channel Hook Failed the webhook answered with the status 404" in text_of(submit(admin, path))


def test_a_mail_channel_needs_the_mail_server(admin: Console) -> None:
    config = admin.app.config["XXL_JOB"]
    configure(admin, mail=replace(config.mail, host=""))
    assert "XXL_JOB_MAIL_HOST" in text_of(admin.get("/alarmchannels/new?kind=mail"))
    form = {"kind": "mail", "name": "Team", "addresses": "a@b.example, c@d.example", "scope": "all"}
    submit(admin, "/alarmchannels/new?kind=mail", **form)
    channel_id = only_row(AlarmChannel).id
    missing = "2 mail addresses, but XXL_JOB_MAIL_HOST is not set"
    assert missing in text_of(admin.get(f"/alarmchannels/{channel_id}/test"))
    assert "No mail server is configured" in text_of(admin.get("/alarmchannels"))
    job_id = add_job(add_group(), alarm_email="a@b.example")
    save_alarm(job_id)
    page = text_of(admin.get(f"/jobinfo/{job_id}?tab=alarms"))
    assert "Nothing is sent to 2 mail addresses: XXL_JOB_MAIL_HOST is not set. Alarm channels" in page
    assert "No channel configured" not in page
    assert "not sent: no mail server" in page
    assert "1 job has an alarm mail, but XXL_JOB_MAIL_HOST is not set" in text_of(admin.get("/"))
    configure(admin, mail=replace(config.mail, host="127.0.0.1"))
    assert "Alarms go to: mail a@b.example, mail c@d.example" in text_of(
        admin.get(f"/jobinfo/{job_id}?tab=alarms")
    )
    assert "XXL_JOB_MAIL_HOST" not in text_of(admin.get("/"))


def save_alarm(job_id: int) -> None:
    outcome = json.dumps({"mail a@b.example": "XXL_JOB_MAIL_HOST is not set"})
    save(Alarm(log_id=1, job_id=job_id, reason="failed", state="SILENT", created_ms=T0, outcome=outcome))


def test_a_job_without_any_channel_says_so(admin: Console) -> None:
    job_id = add_job(add_group())
    assert "No channel configured: failures of this job are not reported." in text_of(
        admin.get(f"/jobinfo/{job_id}?tab=alarms")
    )


def test_channels_set_up_elsewhere_are_named(admin: Console) -> None:
    urls = "json://a.example/s3cr3t\nntfy://b.example/t"
    group_id = make_group(title="Orders", alarm_urls=urls).id
    configure(admin, alarm_urls=("json://c.example/s3cr3t",))
    page = admin.get("/alarmchannels")
    assert "1 channel of the configuration (XXL_JOB_ALARM_URLS), for all jobs" in text_of(page)
    assert "2 channels of the executor Orders" in text_of(page)
    assert f"/jobgroup/{group_id}/edit" in page.text
    assert "s3cr3t" not in page.text


def test_kinds_of_a_newer_version_are_listed_and_not_edited(admin: Console) -> None:
    channel = save(AlarmChannel(name="later", kind="pigeon", settings="{}", for_all=1))
    assert "later pigeon" in text_of(admin.get("/alarmchannels"))
    assert admin.get(f"/alarmchannels/{channel.id}/edit").status_code == 404
    assert admin.get(f"/alarmchannels/{channel.id}/test").status_code == 200
    assert ChannelKind.MAIL in KINDS


def test_the_list_names_what_channels_are_for_in_a_constant_number_of_statements(admin: Console) -> None:
    group_id = make_group(title="Orders").id
    job_ids = [add_job(group_id, job_desc=f"night {number}") for number in range(4)]

    def add_channel(name: str) -> None:
        channel = save(AlarmChannel(name=name, kind="webhook", settings="{}"))
        save(ChannelScope(channel_id=channel.id, group_id=group_id))
        for job_id in job_ids:
            save(ChannelScope(channel_id=channel.id, job_id=job_id))

    add_channel("one")
    with statements() as of_one:
        page = text_of(admin.get("/alarmchannels"))
    assert f"Orders, {job_ids[0]} night 0, {job_ids[1]} night 1 and 2 more" in page
    for number in range(5):
        add_channel(f"further {number}")
    with statements() as of_six:
        admin.get("/alarmchannels")
    assert len(of_six) == len(of_one)


def test_a_channel_that_loses_messages_is_shown_as_broken(admin: Console) -> None:
    channel = save(
        AlarmChannel(
            name="pager", kind="webhook", settings=json.dumps({"url": "http://127.0.0.1:1/x"}), for_all=1
        )
    )
    (target,) = destinations_of(channel)
    job = make_job()
    for minutes in (20, 15):
        at_ms = now_ms() - minutes * MINUTE_MS
        outcome = json.dumps({target: "HTTP 500"})
        row = {"job_id": job.id, "log_id": make_log(job).id, "reason": "failed", "created_ms": at_ms}
        save(Alarm(**row, state="FAILED", lease_until=at_ms + LEASE_MS, outcome=outcome))
    page = admin.get("/alarmchannels").text
    assert "Broken" in page
    assert "2 messages lost" in page
    assert "HTTP 500" in page
