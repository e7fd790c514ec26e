"""Connection check: which instances answer, and which accept any token."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import update

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.models.audit import AuditEntry
from app.models.group import Group
from executor_client.wire.protocol import TOKEN_HEADER
from tests.browser.serving import stub_executor
from tests.console.pages import is_at_login, markup_of, submit, text_of
from tests.pipeline.steps import register
from tests.support.console import Console, add_group, add_job
from tests.support.fake_executor import FakeExecutor


@pytest.fixture
def executor() -> Iterator[str]:
    """An executor that never checks the token."""
    with stub_executor() as address:
        yield address


def test_only_administrators_check(console: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    assert is_at_login(console.get(f"/jobgroup/{group_id}/test"))
    norman = normal_user(group_id)
    assert norman.get(f"/jobgroup/{group_id}/test").status_code == 403
    assert submit(norman, f"/jobgroup/{group_id}/test").status_code == 403


def test_a_get_probes_nothing(admin: Console, executor: str) -> None:
    group_id = add_group(addresses=executor)
    assert admin.get(f"/jobgroup/{group_id}/test").headers["Location"].endswith(f"/jobgroup/{group_id}")
    page = text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "Test connection" in page
    assert "Connection" not in page
    assert admin.post(f"/jobgroup/{group_id}/test").status_code == 403


def test_open_and_silent_instances_are_distinguished(admin: Console, executor: str) -> None:
    group_id = add_group(addresses=f"{executor},http://127.0.0.1:65533")
    page = text_of(submit(admin, f"/jobgroup/{group_id}/test"))
    assert "Answered in" in page
    assert "An instance accepts any token." in page
    assert page.count("No answer") == 1
    assert "connection refused: nothing listens on this port" in page
    with read_scope() as session:
        assert session.query(AuditEntry).filter_by(action="group.check", object_id=group_id).count() == 1


def test_addresses_entered_by_hand_show_their_last_check(admin: Console, executor: str) -> None:
    group_id = add_group(addresses=f"{executor},http://127.0.0.1:65533")
    add_job(group_id)
    add_job(group_id)
    add_group("idle-app", "Idle")
    pages = ("/jobgroup", f"/jobgroup/{group_id}")
    for page in pages:
        assert "2 addresses, not checked" in text_of(admin.get(page))
    assert ' aria-label="2 jobs of Sample">' in markup_of(admin.get("/jobgroup"))
    submit(admin, f"/jobgroup/{group_id}/test")
    for page in pages:
        assert "1 does not take runs 1 reachable" in text_of(admin.get(page))
    assert "checked just now" in text_of(admin.get(pages[1]))
    form = {"app_name": "sample-app", "title": "Sample", "address_type": "1", "address_list": executor}
    with session_scope() as session:  # as if the check were of yesterday
        session.execute(update(AuditEntry).values(at_ms=now_ms() - DAY_MS))
    submit(admin, f"/jobgroup/{group_id}/edit", **form)
    assert "1 address, not checked" in text_of(admin.get("/jobgroup"))


def test_an_unlisted_instance_of_a_manual_group_does_not_get_its_token(admin: Console) -> None:
    """It may have been registered by someone who knows the token from a leak."""
    with FakeExecutor() as listed, FakeExecutor() as registered:
        group_id = add_group(addresses=listed.address)
        with session_scope() as session:
            session.get_one(Group, group_id).access_token = "the-groups-own-token"
        register(registered.address, app_name="sample-app", now_ms=now_ms())
        submit(admin, f"/jobgroup/{group_id}/test")
        assert listed.requests[0].headers[TOKEN_HEADER] == "the-groups-own-token"
        assert registered.requests[0].headers[TOKEN_HEADER] == ""


def test_a_missing_group_is_not_found(admin: Console) -> None:
    assert admin.get("/jobgroup/2147483647/test", follow_redirects=True).status_code == 404
    assert submit(admin, "/jobgroup/2147483647/test").status_code == 404
