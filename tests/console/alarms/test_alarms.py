"""Pages of test alarms and mutes: rights, forms, stored rows and marks on other pages."""

import json
import re
from collections.abc import Callable
from threading import Event

import pytest

from app.clock import MINUTE_MS, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.alarms.muting import UNTIL_UNDONE_MS
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.mute import Mute
from app.models.throttle import Throttle
from app.services.alarms import mutes, test_alarms
from app.services.alarms.mutes import MuteDraft
from app.services.executors import groups
from app.settings.config import MailConfig
from tests.console.pages import is_at_login, path_after, submit, text_of
from tests.support.alarms import url_of
from tests.support.console import ACTOR, Console, add_group, add_job
from tests.support.console_alarms import configure, titles
from tests.support.factories import all_rows, make_group, make_log, only_row, save
from tests.support.fake_executor import Answer, FakeExecutor

# Apprise loads all its plugins at the first message, some with old imports
pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]

HOUR = 60 * MINUTE_MS
OPERATOR = frozenset({Right.VIEW, Right.OPERATE})


def audited(action: str) -> list[AuditEntry]:
    return [entry for entry in all_rows(AuditEntry) if entry.action == action]


def mute(*, job_id: int = 0, group_id: int = 0, span: str = "8h", reason: str = "") -> None:
    with session_scope() as session:
        if job_id:
            mutes.mute_job(session, job_id, MuteDraft(span, reason), actor=ACTOR, now_ms=now_ms())
        else:
            mutes.mute_group(session, group_id, MuteDraft(span, reason), actor=ACTOR, now_ms=now_ms())


def test_without_a_login_every_page_redirects_to_the_login(console: Console) -> None:
    for path in (
        "/jobinfo/1/mute",
        "/jobinfo/1/unmute",
        "/jobgroup/1/mute",
        "/jobinfo/1/test-alarm",
        "/alarms/test",
    ):
        assert is_at_login(console.post(path))


def test_a_test_reaches_the_targets_of_a_real_alarm_and_shows_each_result(
    admin: Console, hook: FakeExecutor
) -> None:
    with FakeExecutor() as everywhere, FakeExecutor() as broken:
        broken.respond("*", Answer(status=500))
        group = make_group(alarm_urls=f"{url_of(hook, '/s3cret')}\n{url_of(broken)}")
        job_id = add_job(group.id, alarm_email="ops@example.com")
        configure(admin, alarm_urls=(url_of(everywhere), url_of(hook, "/s3cret")))
        shown = text_of(admin.get(f"/jobinfo/{job_id}/test-alarm"))
        assert (
            "No mail server is configured (XXL_JOB_MAIL_HOST), so nothing is sent to ops@example.com."
            in shown
        )
        assert (hook.requests, everywhere.requests) == ([], []), "a GET sends nothing"
        response = submit(admin, f"/jobinfo/{job_id}/test-alarm")
        page = text_of(response)
        assert (
            "Apprise URL 1, json://… Sent Apprise URL 2, json://… Failed"
            " the channel refused the message or did not answer Apprise URL 3, json://… Sent" in page
        )
        assert "s3cret" not in response.text
        assert (
            titles(hook)
            == titles(everywhere)
            == [f"[Duetime] TEST alarm, nothing has failed: nightly report (job {job_id})"]
        )
        assert "Sent by admin" in hook.requests[0].json["message"]
        submit(admin, f"/jobgroup/{group.id}/test-alarm")
        submit(admin, "/alarms/test")
        assert (len(hook.requests), len(everywhere.requests), len(broken.requests)) == (3, 3, 2)
    entries = audited("alarm.test")
    assert [(entry.object_type, entry.object_id) for entry in entries] == [
        ("job", job_id),
        ("group", group.id),
        ("", 0),
    ]
    assert json.loads(entries[0].changes or "") == {"targets": ["1 json://…", "2 json://…", "3 json://…"]}
    assert all_rows(Alarm) == []


def test_addresses_of_the_request_are_ignored(admin: Console, hook: FakeExecutor) -> None:
    group = make_group(alarm_urls=url_of(hook))
    with FakeExecutor() as stranger:
        submit(
            admin,
            f"/jobgroup/{group.id}/test-alarm",
            alarm_urls=url_of(stranger),
            url=url_of(stranger),
            target=url_of(stranger),
        )
        assert (len(hook.requests), stranger.requests) == (1, [])


def test_a_page_without_targets_says_what_to_configure(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    norman = normal_user(group_id)
    for reader, hint in ((admin, "Alarm channels"), (norman, "ask an administrator")):
        for response in (
            reader.get(f"/jobinfo/{job_id}/test-alarm"),
            submit(reader, f"/jobinfo/{job_id}/test-alarm"),
        ):
            page = text_of(response)
            assert "No channel configured" in page
            assert all(text in page for text in ("XXL_JOB_MAIL_HOST", "DingTalk", hint))
    assert "No channel configured" in text_of(admin.get("/alarms/test"))
    assert audited("alarm.test") == []


def test_mails_are_tested_if_there_is_a_mail_server(admin: Console) -> None:
    job_id = add_job(add_group(), alarm_email="ops@example.com, dev@example.com")
    configure(admin, mail=MailConfig(host="127.0.0.1", port=1, security="none"))
    page = text_of(submit(admin, f"/jobinfo/{job_id}/test-alarm"))
    assert re.search(r"mail ops@example\.com Failed .*refused.* mail dev@example\.com Failed", page)


def test_a_hanging_target_is_given_up_and_delays_no_other(
    admin: Console, hook: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_alarms, "WAIT_S", 1)
    release = Event()
    with FakeExecutor() as hanging:
        hanging.respond("*", Answer(wait=release))
        group = make_group(alarm_urls=f"{url_of(hanging)}\n{url_of(hook)}")
        page = text_of(submit(admin, f"/jobgroup/{group.id}/test-alarm"))
        release.set()
    assert "Apprise URL 1, json://… Failed no answer in 1 s Apprise URL 2, json://… Sent" in page


def test_tests_are_limited_per_user_and_in_total(
    admin: Console, hook: FakeExecutor, normal_user: Callable[..., Console], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group(alarm_urls=url_of(hook))
    norman = normal_user(group.id)
    for _ in range(test_alarms.TESTS_MAX):
        assert submit(norman, f"/jobgroup/{group.id}/test-alarm").status_code == 200
    refused = submit(norman, f"/jobgroup/{group.id}/test-alarm")
    assert (refused.status_code, int(refused.headers["Retry-After"]) <= 600) == (429, True)
    assert re.search(r"Too many test alarms; try again in \d+ s", text_of(refused))
    assert len(hook.requests) == len(audited("alarm.test")) == test_alarms.TESTS_MAX
    assert submit(admin, f"/jobgroup/{group.id}/test-alarm").status_code == 200, (
        "other users are not affected"
    )
    row = next(
        row
        for row in all_throttles()
        if row.subject.startswith("test-alarm:") and row.failures == test_alarms.TESTS_MAX
    )
    row.first_ms -= test_alarms.WINDOW_MS
    save_again(row)
    assert submit(norman, f"/jobgroup/{group.id}/test-alarm").status_code == 200
    monkeypatch.setattr(test_alarms, "_slots", NoSlot())
    assert "Too many tests are running" in text_of(submit(admin, f"/jobgroup/{group.id}/test-alarm"))


class NoSlot:
    """Semaphore of a console that runs the maximum of tests."""

    def acquire(self, *, blocking: bool) -> bool:
        return False


def all_throttles() -> list[Throttle]:
    with session_scope() as session:
        return list(session.query(Throttle))


def save_again(row: Throttle) -> None:
    with session_scope() as session:
        session.merge(row)


def test_a_test_covers_a_limited_number_of_targets(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_alarms, "TARGETS_MAX", 1)
    with FakeExecutor() as first, FakeExecutor() as second:
        group = make_group(alarm_urls=f"{url_of(first)}\n{url_of(second)}")
        page = text_of(submit(admin, f"/jobgroup/{group.id}/test-alarm"))
        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert "skipped: a test covers at most 1 targets" in page


@pytest.mark.parametrize(
    ("span", "hours"),
    [("1h", 1), ("8h", 8), ("24h", 24), ("7d", 168), ("undone", None)],
)
def test_muting_stores_the_end_and_shows_it(admin: Console, span: str, hours: int | None) -> None:
    job_id, before_ms = add_job(add_group()), now_ms()
    form = text_of(admin.get(f"/jobinfo/{job_id}/mute"))
    assert "No alarms are sent for this job." in form
    there = path_after(submit(admin, f"/jobinfo/{job_id}/mute", span=span, reason="  moving\nhouse "))
    assert there.startswith(f"/jobinfo/{job_id}?done=muted")
    row = only_row(Mute)
    assert (row.job_id, row.group_id, row.username, row.reason) == (job_id, 0, "admin", "moving house")
    if hours is None:
        assert row.until_ms == UNTIL_UNDONE_MS
    else:
        assert before_ms + hours * HOUR <= row.until_ms <= now_ms() + hours * HOUR
    (entry,) = audited("alarm.mute")
    assert (entry.object_type, entry.object_id) == ("job", job_id)
    assert json.loads(entry.changes or "")["reason"] == "moving house"
    page = admin.get(there)
    assert "moving house" in text_of(page)
    assert f"/jobinfo/{job_id}/unmute" in page.text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"span": "99d"}, "Choose one of the listed values"),
        ({"span": "1h", "reason": "x" * 201}, "at most 200 characters"),
    ],
    ids=["unknown span", "long reason"],
)
def test_a_bad_form_is_refused_at_its_field(admin: Console, fields: dict[str, str], message: str) -> None:
    job_id = add_job(add_group())
    response = submit(admin, f"/jobinfo/{job_id}/mute", **fields)
    assert response.status_code == 400
    assert message in text_of(response)
    assert all_rows(Mute) == []


def test_unmuting_ends_a_mute_at_once_and_repeating_it_changes_nothing(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    mute(job_id=job_id)
    mute(group_id=group_id)
    for _ in range(2):
        assert "done=unmuted" in path_after(submit(admin, f"/jobinfo/{job_id}/unmute"))
    assert [row.until_ms <= now_ms() for row in all_rows(Mute)] == [True, False], "the group stays muted"
    assert len(audited("alarm.unmute")) == 1
    submit(admin, f"/jobgroup/{group_id}/unmute")
    assert [row.until_ms <= now_ms() for row in all_rows(Mute)] == [True, True]
    assert [(entry.object_type, entry.object_id) for entry in audited("alarm.unmute")] == [
        ("job", job_id),
        ("group", group_id),
    ]


def test_mutes_are_shown_on_pages_with_failures(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id, foreign = add_group(), add_group("other-app", "Other")
    by_job, by_group, secret = (
        add_job(group_id),
        add_job(foreign, job_desc="of a group"),
        add_job(foreign, job_desc="secret <b>"),
    )
    for job_id in (by_job, by_group):
        make_log(only_row(Job, id=job_id), trigger_time=now_ms() - 5_000, handle_code=500)
    mute(job_id=by_job, reason="<b>disk</b>")
    mute(group_id=foreign, span="undone")
    mute(job_id=secret)
    board, listed = admin.get("/"), text_of(admin.get("/jobinfo"))
    assert text_of(board).count("Muted, no end") == 1, "in the list of mutes; muted jobs have no row"
    assert "2 failing jobs are muted" in text_of(board)
    assert "all jobs of Other" in text_of(board)
    assert "<b>disk" not in board.text
    assert (listed.count("Muted until 2"), listed.count("Muted, no end")) == (1, 2)
    assert "Muted, no end" in text_of(admin.get(f"/jobinfo/{by_group}"))
    assert "Muted, no end" in text_of(admin.get(f"/jobgroup/{foreign}"))
    assert "Test alarms are still sent" not in text_of(admin.get(f"/jobgroup/{foreign}/test-alarm")), (
        "the group has no channel"
    )
    norman = text_of(normal_user(group_id).get("/"))
    assert ("Muted until 2" in norman, "Other" in norman, "secret" in norman) == (True, False, False)


def test_a_viewer_sees_the_mute_but_no_buttons(normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    mute(job_id=job_id, reason="holiday")
    mute(group_id=group_id)
    viewer = normal_user(group_id, username="vera", rights={group_id: frozenset({Right.VIEW})})
    operator = normal_user(group_id, username="otto", rights={group_id: OPERATOR})
    for path in (f"/jobinfo/{job_id}", f"/jobgroup/{group_id}"):
        assert "Muted until" in text_of(viewer.get(path))
        assert not re.search(r"/(mute|unmute|test-alarm)\"", viewer.get(path).text)
        assert "Unmute" in operator.get(path).text
        assert "test-alarm" not in operator.get(path).text
    assert "holiday" in text_of(viewer.get(f"/jobinfo/{job_id}"))


def test_removing_a_group_ends_its_mute(admin: Console) -> None:
    """Held alarms of jobs that were moved away before are then sent."""
    group_id, _other = add_group(), add_group("other-app", "Other")
    mute(group_id=group_id)
    with session_scope() as session:
        groups.remove_group(session, group_id, actor=ACTOR, now_ms=now_ms())
    assert [mute.until_ms <= now_ms() for mute in all_rows(Mute)] == [True]


def test_the_page_of_a_job_shows_muted_alarms(admin: Console) -> None:
    job_id = add_job(add_group())
    assert "No alarm yet" in text_of(admin.get(f"/jobinfo/{job_id}?tab=alarms"))
    outcome = json.dumps({"muted": "by ann until 2026-01-01 08:00:00 UTC"})
    save(Alarm(log_id=5, job_id=job_id, reason="failed", state="MUTED", created_ms=now_ms(), outcome=outcome))
    page = text_of(admin.get(f"/jobinfo/{job_id}?tab=alarms"))
    assert "Failed 5 just now muted" in page
    assert "by ann until 2026-01-01 08:00:00 UTC" in page
