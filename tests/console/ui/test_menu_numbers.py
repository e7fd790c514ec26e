"""Number of failing jobs in the menu of every page."""

import re
from collections.abc import Callable

import pytest

from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.services.report import failing
from tests.console.pages import markup_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import make_log
from tests.support.statements import statements


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_last_failures", "_numbers"):
        monkeypatch.setattr(failing, name, {})


def add_failing_job(group_id: int) -> None:
    job_id = add_job(group_id)
    with read_scope() as session:
        make_log(session.get_one(Job, job_id), handle_code=500)


def number_of(console: Console, path: str = "/help") -> tuple[str, str]:
    """Return the number that the menu shows, and the name of its link."""
    page = markup_of(console.get(path))
    item = re.findall(r'<li data-failing-jobs="\d+".*?</li>', page)[0]
    shown = re.findall(r'class="menu-number" aria-hidden="true">([^<]*)<', item)
    return "".join(shown), re.findall(r'aria-label="([^"]+)"', item)[0]


def test_the_menu_has_the_number_of_failing_jobs_that_one_may_see(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, other = add_group(), add_group("other-app", "Other")
    norman = normal_user(own, rights={own: frozenset({Right.VIEW})})
    assert number_of(admin) == ("", "Jobs")
    failing._numbers.clear()
    add_failing_job(other)
    assert number_of(admin) == ("1", "Jobs, 1 failing")
    assert number_of(norman) == ("", "Jobs")
    add_failing_job(own)
    failing._numbers.clear()
    assert number_of(admin)[0] == "2"
    assert number_of(norman)[0] == "1"


def test_the_number_is_read_now_and_then_only(admin: Console) -> None:
    group_id = add_group()
    add_failing_job(group_id)
    assert number_of(admin)[0] == "1"
    with statements() as executed:
        admin.get("/help")
    assert not any("xxl_job_log" in sql for sql in executed)
    add_failing_job(group_id)
    assert number_of(admin)[0] == "1"
    assert number_of(admin, "/jobinfo")[0] == "2", "the list has them anyway"
    assert number_of(admin)[0] == "2"


def test_without_a_group_there_is_no_number(normal_user: Callable[..., Console]) -> None:
    norman = normal_user(add_group(), rights={})
    assert number_of(norman) == ("", "Jobs")
