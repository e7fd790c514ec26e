"""Help: ways to pages, by the rights of the reader; cron examples in words; anchors that other pages use."""

import re
from collections.abc import Callable

from app.domain.access.permissions import Right
from tests.console.pages import text_of
from tests.support.console import Console, add_group


def test_it_has_contents_ways_states_and_cron_in_words(admin: Console) -> None:
    page = admin.get("/help")
    text = text_of(page)
    index = page.text.split('class="side-index"')[1].split("</nav>")[0]
    for anchor in re.findall(r'href="#([\w-]+)"', index):
        assert f'<section id="{anchor}"' in page.text
    assert {"placeholders", "alarms", "api"} <= set(re.findall(r'<section id="([\w-]+)"', page.text))
    assert "0 0/5 * * * ? Every 5 minutes" in text
    assert "Unresolved It is unknown whether the run started" in text
    assert 'href="/xxl-job-admin/joblog?logStatus=2"' in page.text


def test_ways_that_the_reader_may_not_go_are_left_out(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    assert "Give a user rights" in text_of(admin.get("/help"))
    viewer = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})}).get("/help")
    assert "Find a quiet hour" in text_of(viewer)
    for hidden in ("Give a user rights", "Take an instance out of service", "Move jobs to another"):
        assert hidden not in text_of(viewer)
    assert "/jobinfo/new" not in viewer.text.split('class="help"')[1]


def test_a_user_without_rights_finds_only_pages_that_open(normal_user: Callable[..., Console]) -> None:
    console = normal_user()
    page = console.get("/help")
    assert page.status_code == 200
    for path in set(re.findall(r'href="/xxl-job-admin(/[^"#]*)', page.text.split('class="help"')[1])):
        assert console.get(path.replace("&amp;", "&")).status_code == 200, path
