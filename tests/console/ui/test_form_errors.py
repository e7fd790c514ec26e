"""Forms of all areas: every wrong field is marked and named in one round."""

import re

import pytest

from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group, add_job

GROUP = {
    "app_name": "My App",
    "title": " ",
    "address_type": "1",
    "address_list": "http://10.0.0.5:9999,ftp://x,nonsense",
    "access_token": "short",
    "alarm_urls": "gopher://x",
}
CASES = [
    ("/jobgroup/new", GROUP, ("app_name", "title", "address_list", "access_token", "alarm_urls")),
    ("/user/new", {"username": "x", "password": "y", "role": "0"}, ("username", "password")),
    (
        "/account/password",
        {"old_password": "", "new_password": "short", "repeated": "other"},
        ("old_password", "new_password", "repeated"),
    ),
    (
        "/jobinfo/{job}/run",
        {"executor_param": "x" * 2_049, "address_list": "http://10.9.9.9:1,http://10.9.9.8:1"},
        ("executor_param", "address_list"),
    ),
    ("/alarmchannels/new?kind=ntfy", {"server": "x", "topic": "ä"}, ("server", "topic")),
    ("/jobinfo/{job}/mute", {"span": "forever", "reason": "x" * 201}, ("span", "reason")),
    (
        "/jobcode?jobId={job}",
        {"glue_source": "x" * 500_001, "glue_remark": "no"},
        ("glue_source", "glue_remark"),
    ),
]


@pytest.mark.parametrize(("path", "fields", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_every_wrong_field_is_shown_at_once(
    admin: Console, path: str, fields: dict[str, str], wrong: tuple[str, ...]
) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", executor_handler="", glue_source="id")
    page = submit(admin, path.format(job=job_id), **fields)
    assert page.status_code == 400
    assert f"{len(wrong)} fields are wrong" in text_of(page)
    for field in wrong:
        assert f'<a href="#{field}">' in page.text
        assert f' id="{field}"' in page.text
        assert f'id="{field}-error"' in page.text
    assert page.text.count(" autofocus ") <= 1
    if path != "/jobinfo/{job}/mute":  # the first of several buttons
        assert re.search(rf'<[^>]* autofocus [^>]*id="{wrong[0]}"', page.text)


def test_the_first_field_of_the_job_form_gets_the_focus_if_it_is_wrong(admin: Console) -> None:
    add_group()
    add_group("another-app", "Another")
    page = submit(admin, "/jobinfo/new", glue_type="BEAN", executor_handler="x")
    assert re.search(r'<select [^>]*autofocus [^>]*id="job_group"', page.text)


def test_an_error_names_what_is_wrong(admin: Console) -> None:
    page = text_of(submit(admin, "/jobgroup/new", **GROUP))
    assert '"My App" contains a space; use lowercase letters, digits and - only' in page
    assert "ftp://x" in page
    assert "nonsense" in page
    assert "10.0.0.5" not in page.split("fields are wrong")[1].split("AppName *")[0]
