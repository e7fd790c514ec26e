"""The page that connects an executor: its programs, the access token, and who has registered or tried to."""

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask

from app.clock import MINUTE_MS, now_ms
from app.console.executors.snippets import LANGUAGES, TOKEN_GAP, Target
from app.domain.access.permissions import Right, unknown_actor
from app.models.audit import AuditEntry
from app.models.group import Group
from app.services.auditing import refusals
from app.settings.config import Config
from app.settings.home import access_tokens
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import ADMIN_PASSWORD, Console, add_group
from tests.support.console_executors import registered
from tests.support.factories import make_group, only_row

PAGE = "/connect?appname=my-app"
GROUP_TOKEN = "the-token-of-billing-only"


@pytest.fixture
def settings(settings: Config) -> Config:
    """Settings of a console whose access token is in a file of its home."""
    return replace(settings, access_tokens=())


@pytest.fixture
def token(app: Flask) -> str:
    return access_tokens(app.config["XXL_JOB"])[0]


def refuse(action: str, app_name: str, address: str = "10.0.0.7", ago_ms: int = 0) -> None:
    refusals.note(
        action,
        unknown_actor(address),
        now_ms=now_ms() - ago_ms,
        detail={"app_name": app_name, "reason": "no net"},
    )


def test_the_first_executor_is_suggested_and_added(admin: Console) -> None:
    add_group("accounting")
    page = admin.get("/connect").text
    assert "--appname my-app --port 9998" in page
    path = path_after(submit(admin, "/connect/group?appname=my-app&language=java", app_name="my-app"))
    assert path == "/connect?appname=my-app&language=java"
    assert only_row(Group, app_name="my-app").title == "my-app"
    assert "Add the executor group" not in admin.get("/connect").text
    assert submit(admin, "/connect/group", app_name="x").status_code == 400


def test_every_language_has_the_address_and_the_app_name(admin: Console) -> None:
    add_group("billing-exec")
    for language in LANGUAGES:
        page = admin.get(f"/connect?appname=billing-exec&language={language}")
        assert "http://localhost/xxl-job-admin" in page.text, language
        assert text_of(page).count("billing-exec") >= 3, language


@pytest.mark.parametrize("language", LANGUAGES)
def test_values_are_quoted(language: str) -> None:
    nasty = 'x\'; touch "/tmp/$(id)" #`'
    target = Target("http://host/a b", nasty, token=nasty, token_file="", client=nasty)
    shell = next(block.text for block in LANGUAGES[language][1](target) if not block.name)
    assert subprocess.run(["bash", "-n", "-c", shell]).returncode == 0
    assert f"XXL_JOB_ACCESS_TOKEN={nasty}" in shlex.split(shell, comments=False)


def test_on_loopback_the_commands_read_the_token_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "access token"
    file.write_text("a-token-in-a-file\n")
    target = Target("http://x", "my-app", token_file=str(file))
    printed = subprocess.run(
        ["bash", "-c", f'{target.export}; echo "$XXL_JOB_ACCESS_TOKEN"'], capture_output=True, text=True
    )
    assert printed.stdout == "a-token-in-a-file\n"
    assert TOKEN_GAP in Target("http://x", "my-app").export


def test_only_administrators_see_paths_of_the_host(
    admin: Console, normal_user: Callable[..., Console], settings: Config
) -> None:
    norman = normal_user(add_group("my-app"))
    for_admin = admin.get(PAGE).text
    assert (str(settings.home) in for_admin) == settings.on_loopback
    assert ("pip install duetime-executor" in for_admin) != settings.on_loopback
    page = norman.get(PAGE).text
    assert str(settings.home) not in page
    assert TOKEN_GAP in page
    assert "pip install duetime-executor" in page


def test_the_token_is_shown_on_request_and_audited(admin: Console, token: str) -> None:
    assert token not in admin.get(PAGE).text
    page = submit(admin, PAGE)
    assert f"export XXL_JOB_ACCESS_TOKEN={token}" in page.text
    assert page.headers["Cache-Control"] == "no-store"
    assert token not in admin.get(PAGE).text
    entry = only_row(AuditEntry, action="group.token_show")
    assert (entry.username, entry.object_id) == ("admin", 0)
    assert token not in str(vars(entry))


def test_a_group_with_a_token_of_its_own_shows_that(admin: Console, token: str) -> None:
    group = make_group(app_name="billing-exec", access_token=GROUP_TOKEN)
    page = submit(admin, "/connect?appname=billing-exec").text
    assert GROUP_TOKEN in page
    assert token not in page
    assert only_row(AuditEntry, action="group.token_show").object_id == group.id


def test_the_token_needs_a_confirmed_login(console: Console, token: str) -> None:
    admin = console.log_in("admin", ADMIN_PASSWORD)
    for password in ("", "wrong"):
        page = submit(admin, PAGE, password=password)
        assert page.status_code == 400
        assert token not in page.text
        assert 'id="password-error"' in page.text
    assert token in submit(admin, PAGE, password=ADMIN_PASSWORD).text
    assert token in submit(admin, PAGE).text


def test_a_registered_executor_is_connected_and_offers_a_job(admin: Console) -> None:
    group_id = add_group("my-app")
    assert "Waiting for a program that registers as my-app" in text_of(admin.get(PAGE))
    registered("my-app", "http://10.0.0.9:9998/", ago_ms=5 * MINUTE_MS)
    assert "Waiting for a program" in text_of(admin.get(PAGE))
    registered("my-app", "http://10.0.0.7:9998/")
    page = admin.get(PAGE)
    assert "Connected http://10.0.0.7:9998/" in text_of(page)
    form = f"/jobinfo/new?jobGroup={group_id}&handler=demoJobHandler"
    assert form.replace("&", "&amp;") in page.text
    assert 'value="demoJobHandler"' in admin.get(form).text
    assert '<option selected value="NONE">' in markup_of(admin.get(form))
    held = admin.get(PAGE, headers={"X-Parts": "", "X-Refresh": "auto"}).get_json()["parts"]
    assert set(held) == {"connected", "menu-jobs", "menu-incidents"}


def test_refused_attempts_are_named_until_that_host_is_connected(admin: Console) -> None:
    refuse("refused.token", "my-app", ago_ms=11 * MINUTE_MS)
    refuse("refused.no_token", "my-app")
    refuse("refused.token", "other-app", "10.0.0.8")
    refuse("refused.token", "my-app", "10.0.0.9")
    refuse("refused.registration", "my-app")
    page = text_of(admin.get(PAGE))
    assert "10.0.0.7 tried to register as my-app without an access token" in page
    assert "10.0.0.9 tried to register as my-app with a wrong access token" in page
    assert "10.0.0.7 tried to register as my-app and was refused no net" in page
    assert page.count(" tried to register as ") == 3
    registered("my-app", "http://10.0.0.7:9998/")
    assert text_of(admin.get(PAGE)).count(" tried to register as ") == 1


def test_results_of_lost_runs_are_shown_although_their_executor_is_connected(admin: Console) -> None:
    add_group("my-app")
    registered("my-app", "http://10.0.0.7:9998/")
    refuse("refused.other_run", "my-app")
    assert "10.0.0.7 reported runs of my-app whose ids other runs have now" in text_of(admin.get(PAGE))


def test_runs_reported_without_a_result_are_shown_with_the_reason(admin: Console) -> None:
    add_group("my-app")
    registered("my-app", "http://10.0.0.7:9998/")
    refuse("refused.no_result", "my-app")
    page = text_of(admin.get(PAGE))
    assert "10.0.0.7 reported runs of my-app without a result; they were not stored no net" in page


def test_others_see_neither_foreign_executors_nor_refused_attempts(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    viewer = normal_user(add_group("own-app"), rights={})
    add_group("my-app")
    registered("my-app", "http://10.0.0.7:9998/")
    registered("own-app", "http://10.0.0.6:9998/")
    refuse("refused.token", "own-app")
    page = text_of(viewer.get(PAGE))
    assert "10.0.0.7" not in page
    assert "An administrator adds it" in page
    own = text_of(viewer.get("/connect?appname=own-app"))
    assert "Connected http://10.0.0.6:9998/" in own
    assert "tried to register" not in own
    assert submit(viewer, PAGE).status_code == 403


def test_only_editors_are_offered_a_job(normal_user: Callable[..., Console]) -> None:
    group_id = add_group("own-app")
    registered("own-app", "http://10.0.0.6:9998/")
    viewer = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    assert "Add a job for it" not in text_of(viewer.get("/connect?appname=own-app"))


@pytest.mark.parametrize("name", ["", "x" * 65, "a%0Ab", "%E2%80%8B"])
def test_an_unusable_app_name_is_replaced(admin: Console, name: str) -> None:
    assert "--appname my-app " in admin.get(f"/connect?appname={name}").text


def test_the_registration_by_http_is_one_that_the_console_reads() -> None:
    (block,) = LANGUAGES["http"][1](Target("http://x", 'my-"app'))
    words = shlex.split(block.text)
    body = json.loads(words[words.index("-d") + 1])
    assert body == {
        "registryGroup": "EXECUTOR",
        "registryKey": 'my-"app',
        "registryValue": "http://127.0.0.1:9998/",
    }
