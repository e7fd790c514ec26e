"""Asking the executors of a group whether they answer, and whether they answer anybody."""

from collections.abc import Callable, Iterator

import pytest

from app.db import read_scope
from app.models.audit import AuditEntry
from tests.browser.serving import stub_executor
from tests.console.conftest import Console, add_group
from tests.console.pages import is_at_login, submit, text_of


@pytest.fixture
def executor() -> Iterator[str]:
    """An executor that never looks at the token."""
    with stub_executor() as address:
        yield address


def test_only_an_administrator_asks(console: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    assert is_at_login(console.get(f"/jobgroup/{group_id}/test"))
    norman = normal_user(group_id)
    assert norman.get(f"/jobgroup/{group_id}/test").status_code == 403
    assert submit(norman, f"/jobgroup/{group_id}/test").status_code == 403


def test_nobody_is_asked_before_the_button_is_pressed(admin: Console, executor: str) -> None:
    group_id = add_group(addresses=executor)
    assert admin.get(f"/jobgroup/{group_id}/test").headers["Location"].endswith(f"/jobgroup/{group_id}")
    page = text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "Test the connection" in page
    assert "Connection" not in page.replace("Test the connection", "")
    assert admin.post(f"/jobgroup/{group_id}/test").status_code == 403


def test_an_executor_that_takes_any_token_is_told_apart_from_a_silent_one(
    admin: Console, executor: str
) -> None:
    group_id = add_group(addresses=f"{executor},http://127.0.0.1:65533")
    page = text_of(submit(admin, f"/jobgroup/{group_id}/test"))
    assert "Answers after" in page
    assert "An executor accepts any token." in page
    assert page.count("No answer") == 1
    assert "connection refused: nothing listens on this port" in page
    with read_scope() as session:
        assert session.query(AuditEntry).filter_by(action="group.check", object_id=group_id).count() == 1


def test_a_missing_group_is_not_found(admin: Console) -> None:
    assert admin.get("/jobgroup/2147483647/test", follow_redirects=True).status_code == 404
    assert submit(admin, "/jobgroup/2147483647/test").status_code == 404
