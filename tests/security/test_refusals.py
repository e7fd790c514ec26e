"""Refusals leave a trace: one audit entry each, aggregated under a flood, and log lines of failed logins."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.domain.access.permissions import Actor, Right
from app.models.audit import AuditEntry
from app.models.group import Group
from app.services.auditing import refusals
from app.services.auditing.refusals import FIRST_PERIOD_MS, KEYS_MAX, LONGEST_PERIOD_MS, Recorder
from tests.console.pages import submit, text_of
from tests.support.api import TOKEN, Executor
from tests.support.console import ADMIN_PASSWORD, Console, add_group, add_job
from tests.support.factories import all_rows

REGISTRATION = {"registryGroup": "EXECUTOR", "registryKey": "some-app", "registryValue": "http://10.0.0.5:9"}
ANYBODY = Actor(user_id=0, username="", is_admin=False, address="10.0.0.1")
EVENT_AT = 1_700_000_000_000


class Clock:
    """A monotonic clock set by the test."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Recorder:
    """A recorder without refusals, which writes in the refusing thread."""
    made = Recorder(clock)
    monkeypatch.setattr(refusals, "recorder", made)
    return made


@pytest.fixture
def norman(console: Console, normal_user: Callable[..., Console]) -> Console:
    """A user of the first of two groups, without the right to change its code."""
    own = add_group("own-app")
    add_job(own)
    add_job(add_group("foreign-app"))
    return normal_user(own, rights={own: frozenset(Right) - {Right.GLUE}})


def refused() -> list[tuple[str, str, str, int]]:
    """Return action, user, kind and id of the object of all refusals."""
    return [
        (entry.action, entry.username, entry.object_type, entry.object_id)
        for entry in all_rows(AuditEntry)
        if "refused" in entry.action
    ]


def changes_of(action: str) -> list[dict[str, Any]]:
    return [json.loads(entry.changes or "{}") for entry in all_rows(AuditEntry) if entry.action == action]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/jobinfo/start", {"id": 2}),
        ("/jobinfo/remove", {"id": 2}),
        ("/jobinfo/trigger", {"id": 2}),
        ("/jobinfo/2", None),
        ("/jobinfo/bulk/start?id=2", None),
    ],
)
def test_a_request_for_a_foreign_object(norman: Console, path: str, fields: dict[str, Any] | None) -> None:
    norman.get(path) if fields is None else norman.post(path, fields)
    assert refused() == [("refused.object", "norman", "group", 2)]
    (changes,) = changes_of("refused.object")
    assert changes["path"] == "/xxl-job-admin" + path.partition("?")[0]
    assert changes.get("id") == (None if fields is None and "?" not in path else "2")


@pytest.mark.parametrize("path", ["/jobinfo/987654", "/joblog/987654", "/no/such/page"])
def test_a_missing_object_is_no_refusal(norman: Console, path: str) -> None:
    assert norman.get(path).status_code == 404
    assert norman.call("/jobinfo/remove", id=987_654)["code"] == 200
    assert refused() == []


def test_a_job_naming_a_foreign_group_or_child(console: Console, normal_user: Callable[..., Console]) -> None:
    own, foreign = add_group("own-app"), add_group("foreign-app")
    job_id = add_job(foreign)
    nina = normal_user(own, username="nina")
    bean = {"jobDesc": "mine", "author": "nina", "scheduleType": "NONE", "executorHandler": "x"}
    bean |= {"misfireStrategy": "DO_NOTHING", "executorRouteStrategy": "FIRST", "glueType": "BEAN"}
    bean |= {"executorBlockStrategy": "SERIAL_EXECUTION"}
    assert nina.call("/jobinfo/add", **bean, jobGroup=987_654)["code"] == 500
    assert nina.call("/jobinfo/add", **bean, jobGroup=own, childJobId="987654")["code"] == 500
    assert refused() == []
    assert nina.call("/jobinfo/add", **bean, jobGroup=foreign)["msg"] == "Choose an executor group"
    assert nina.call("/jobinfo/add", **bean, jobGroup=own, childJobId=job_id)["code"] == 500
    assert [changes["field"] for changes in changes_of("refused.value")] == ["jobGroup"]
    refusals.recorder.flush(last=True)
    assert [changes.get("count") for changes in changes_of("refused.value")] == [None, 1]


def test_an_endpoint_of_administrators_and_one_that_needs_a_right(norman: Console) -> None:
    norman.get("/user")
    norman.call("/user/pageList", role=-1)
    norman.call("/jobcode/save", id=1)
    assert refused() == [("refused.admin", "norman", "", 0), ("refused.right", "norman", "", 0)]


def test_another_sites_request_and_a_form_with_a_wrong_token(admin: Console) -> None:
    admin.post("/jobgroup/save", {"appname": "evil-app"}, headers={"Origin": "http://evil.example"})
    admin.post("/account/password", {"csrf_token": "0" * 64, "old_password": ADMIN_PASSWORD})
    assert refused() == [("refused.origin", "", "", 0), ("refused.form", "admin", "", 0)]
    assert changes_of("refused.origin")[0]["origin"] == "http://evil.example"
    assert ADMIN_PASSWORD not in str(changes_of("refused.form"))


def test_a_manual_run_on_an_address_that_is_not_the_groups(admin: Console) -> None:
    job_id = add_job(add_group(addresses="http://10.0.0.5:9999"))
    assert admin.call("/jobinfo/trigger", id=job_id, addressList="http://10.0.0.99:9999")["code"] == 500
    page = submit(admin, f"/jobinfo/{job_id}/run", address_list="http://10.0.0.98:9999")
    assert page.status_code == 400
    assert refused() == [("refused.value", "admin", "", 0)]
    assert changes_of("refused.value")[0]["field"] == "addressList"
    refusals.recorder.flush(last=True)
    assert changes_of("refused.value")[1]["count"] == 1


def test_a_missing_token_a_wrong_one_and_a_refused_registration(executor: Executor) -> None:
    body = json.dumps(REGISTRATION)
    assert executor.call("registry", body, token=None)[0] == 500
    assert executor.call("registry", body, token="not-the-token-1")[0] == 500
    wrong_address = json.dumps(REGISTRATION | {"registryValue": "http://root:hunter22@10.0.0.5:9999"})
    assert executor.call("registry", wrong_address)[0] == 500
    actions = ["refused.no_token", "refused.token", "refused.registration"]
    assert [action for action, *_ in refused()] == actions
    names = [changes_of(action)[0]["app_name"] for action in actions]
    assert names == [REGISTRATION["registryKey"]] * 3
    text = "".join(entry.changes or "" for entry in all_rows(AuditEntry))
    assert "not-the-token-1" not in text
    assert "hunter22" not in text
    assert TOKEN not in text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"registryKey":' + b'"x"' * 3_000])
def test_an_unreadable_registration_without_a_token_is_refused_like_any(
    executor: Executor, body: bytes
) -> None:
    answer = executor.call("registry", body, token=None, headers={"XXL-JOB-APPNAME": "my-app" * 50})
    assert answer == (500, "No access token was given.")
    assert changes_of("refused.no_token")[0]["app_name"] == ("my-app" * 50)[:64]


def test_a_throttled_login_and_a_line_for_each_failed_one(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    name = 'admin" address=10.9.9.9\nlogin refused address=10.8.8.8'
    for _ in range(7):
        console.post("/login", {"userName": name, "password": "my-secret-typo"})
    actions = [action for action, *_ in refused()]
    assert actions == ["login.refused"] * 5 + ["refused.login"]
    lines = [record.getMessage() for record in caplog.records if "login refused" in record.getMessage()]
    assert len(lines) == 6
    escaped = r'"admin\" address=10.9.9.9\nlogin refused address=10.8.8.8"'
    assert lines[0] == f"login refused address=127.0.0.1 username={escaped} reason=password"
    assert lines[5].endswith("reason=wait")
    addresses = {re.sub(r"login refused address=(\S+) username=\".*", r"\1", line) for line in lines}
    assert addresses == {"127.0.0.1"}
    assert "my-secret-typo" not in caplog.text


def test_the_change_history_shows_refusals_only(admin: Console, norman: Console) -> None:
    norman.get("/user")
    admin.post("/login", {"userName": "unknown", "password": "x"})
    filters, _, table = text_of(admin.get("/user/audit?refusals=1")).partition("User Change Address")
    assert "norman requested a page for administrators Request: GET Page: /xxl-job-admin/user" in table
    assert "unknown was refused login Refused logins: 1" in table
    assert "added user" not in table
    assert "Refusals: only" in filters


def note(count: int, **changes: Any) -> None:
    for number in range(count):
        actor = changes.get("actor") or Actor(0, f"user{number}", is_admin=False, address="10.0.0.1")
        refusals.note(changes.get("action", "refused.token"), actor, now_ms=EVENT_AT + number)


def test_a_flood_is_one_entry_and_then_one_with_the_count(database: str, clock: Clock) -> None:
    note(1_000, actor=ANYBODY)
    assert len(refused()) == 1
    clock.ms += FIRST_PERIOD_MS
    refusals.recorder.flush()
    assert [changes.get("count") for changes in changes_of("refused.token")] == [None, 999]
    assert [entry.at_ms for entry in all_rows(AuditEntry)] == [EVENT_AT, EVENT_AT + 999]


def test_a_refusal_that_goes_on_is_written_ever_more_rarely(database: str, clock: Clock) -> None:
    """An executor with an old token asks every 30 s for days."""
    for _ in range(24 * 120):
        note(1, actor=ANYBODY)
        clock.ms += 30_000
    refusals.recorder.flush(last=True)
    counts = [changes.get("count", 1) for changes in changes_of("refused.token")]
    assert sum(counts) == 24 * 120
    assert len(counts) < 24 * 3_600_000 / LONGEST_PERIOD_MS + 10


def test_different_keys_are_bounded_for_each_action(database: str, clock: Clock) -> None:
    note(KEYS_MAX + 300)
    note(1, action="refused.admin")
    assert len(refused()) == KEYS_MAX + 1
    clock.ms += FIRST_PERIOD_MS
    refusals.recorder.flush()
    assert changes_of("refused.more") == [{"refused.token": 300}]
    note(1)
    assert len(refused()) == KEYS_MAX + 3


def test_a_database_that_is_away_neither_delays_nor_fails_a_refusal(
    recorder: Recorder,
    clock: Clock,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts = []

    def away(*_: object) -> None:
        attempts.append(1)
        raise OperationalError("INSERT", None, Exception("gone away"))

    with monkeypatch.context() as patch:
        patch.setattr(refusals, "_write", away)
        note(50)
        clock.ms += 20_000
        note(1, action="refused.admin")
    assert len(attempts) == 2
    assert [record.getMessage() for record in caplog.records].count(
        "refusals not written count=1 database_error=gone away"
    ) == 1
    clock.ms += 20_000
    refusals.recorder.flush()
    assert len(refused()) == 51


def test_a_thread_writes_them_once_started(recorder: Recorder, database: str) -> None:
    recorder.start()
    note(3)
    recorder.stop()
    assert len(refused()) == 3
    assert all_rows(Group) == []


def test_a_text_of_an_attacker_is_stored_as_text(database: str) -> None:
    actor = Actor(0, "a\x00b" * 100, is_admin=False, address="x" * 300)
    refusals.note("refused.token", actor, now_ms=EVENT_AT, detail={"path": "/\x00" + "y" * 5_000})
    (entry,) = all_rows(AuditEntry)
    assert (len(entry.username), len(entry.address)) == (64, 64)
    assert len(entry.changes or "") < 600
