"""Pages of users, the account, the login, the page frame and the error pages."""

import re
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from flask import Flask

from app.clock import DAY_MS, now_ms
from app.console.web.current import COOKIE
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.user import User
from app.services.accounts import users
from app.settings.config import Config
from app.store.accounts import rights
from tests.console.pages import TOKEN, is_at_login, markup_of, path_after, submit, text_of, unnamed_path_after
from tests.support.console import ACTOR, ADMIN_PASSWORD, PASSWORD, Console, add_group, add_user

PAGES = ("/user", "/user/new", "/user/1/edit", "/user/1/delete", "/user/audit")
FORM = {"username": "nina", "password": PASSWORD, "role": "0"}


def cookie_of(console: Console) -> str:
    cookie = console.client.get_cookie(COOKIE)
    assert cookie is not None
    return cookie.value


def user_named(username: str) -> User:
    with read_scope() as session:
        return session.query(User).filter_by(username=username).one()


def test_without_a_login_every_page_redirects_to_the_login(console: Console) -> None:
    for path in ("/account", *PAGES):
        assert is_at_login(console.get(path)), path


def test_users_are_for_administrators(admin: Console, normal_user: Callable[..., Console]) -> None:
    norman = normal_user()
    assert {norman.get(path).status_code for path in PAGES} == {403}
    assert submit(norman, "/user/new", **{**FORM, "role": "1"}).status_code == 403


def test_a_user_is_added_with_the_selected_rights(admin: Console) -> None:
    group_id, other = add_group(), add_group("other-app", "Other")
    path = unnamed_path_after(
        submit(
            admin,
            "/user/new",
            **FORM,
            right=[
                f"{group_id}:operate",
                f"{other}:view",
                f"{other}:operate",
                f"{other}:edit",
                f"{other}:glue",
            ],
        )
    )
    assert path == "/user?done=added"
    nina = user_named("nina")
    assert nina.group_ids == sorted([group_id, other])
    with read_scope() as session:
        assert rights.rights_of(session, nina.id) == {group_id: "view,operate"}
    form = markup_of(admin.get(f"/user/{nina.id}/edit"))
    assert f'value="{group_id}:operate" aria-label="Sample: Operate" checked' in form
    assert f'value="{group_id}:edit" aria-label="Sample: Edit">' in form
    assert f'value="{other}:glue" aria-label="Other: GLUE" checked' in form


@pytest.mark.parametrize(("granted", "stored"), [({Right.VIEW}, "view"), (set(Right), None)])
def test_a_change_without_rights_leaves_them(admin: Console, granted: set[Right], stored: str | None) -> None:
    group_id, other = add_group(), add_group("other-app", "Other")
    user_id = add_user("nina", [group_id], {group_id: frozenset(granted)})
    with session_scope() as session:
        session.get_one(User, user_id).disabled = 1
    draft = users.UserDraft(username="nina", group_ids=(group_id, other), disabled=None)
    with session_scope() as session:
        users.update_user(session, user_id, draft, actor=ACTOR, now_ms=now_ms())
    with read_scope() as session:
        assert rights.rights_of(session, user_id).get(group_id) == stored
        assert rights.rights_of(session, user_id)[other] == "view,operate,edit"
    assert user_named("nina").disabled == 1


def test_a_change_gives_no_rights_on_a_group_that_was_listed_without_any(admin: Console) -> None:
    group_id = add_group()
    user_id = add_user("nina", [group_id], {group_id: frozenset({Right.VIEW})})
    with session_scope() as session:
        rights.replace_rights(session, user_id, {group_id: ""})
    draft = users.UserDraft(username="nina", group_ids=(group_id,))
    with session_scope() as session:
        users.update_user(session, user_id, draft, actor=ACTOR, now_ms=now_ms())
    assert user_named("nina").group_ids == []
    with read_scope() as session:
        assert rights.rights_of(session, user_id) == {}


@pytest.mark.parametrize("group", ["9" * 20, "9" * 5_000, "-1", "x"])
def test_a_selected_group_that_does_not_exist_is_ignored(admin: Console, group: str) -> None:
    path_after(submit(admin, "/user/new", **FORM, right=[f"{group}:glue"]))
    assert user_named("nina").group_ids == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"username": "ab"}, "username"),
        ({"password": "short"}, "password"),
        ({"username": "admin"}, "username"),
    ],
)
def test_an_error_is_shown_at_its_field(admin: Console, changes: dict[str, str], field: str) -> None:
    page = submit(admin, "/user/new", **{**FORM, **changes})
    assert page.status_code == 400
    assert f'id="{field}-error"' in page.text
    assert PASSWORD not in page.text


def test_the_form_of_a_new_user_states_what_names_and_passwords_may_be(admin: Console) -> None:
    form = text_of(admin.get("/user/new"))
    assert "4 to 20 characters: no spaces, quotation marks, angle brackets or ampersands." in form
    assert "8 to 128 characters, not a common password." in form
    path_after(submit(admin, "/user/new", **{**FORM, "username": "J.Smith!"}))
    user_id = user_named("J.Smith!").id
    assert "8 to 128 characters, and not be a common one." in text_of(admin.get(f"/user/{user_id}/edit"))


def test_a_user_is_disabled_and_logged_out(admin: Console, normal_user: Callable[..., Console]) -> None:
    norman = normal_user()
    user_id = user_named("norman").id
    path_after(submit(admin, f"/user/{user_id}/edit", username="norman", password="", role="0", disabled="y"))
    assert is_at_login(norman.get("/"))
    assert "Disabled" in admin.get("/user").text


def test_a_user_is_deleted(admin: Console) -> None:
    user_id = add_user("norman")
    assert "logins of the user end" in text_of(admin.get(f"/user/{user_id}/delete"))
    path_after(submit(admin, f"/user/{user_id}/delete"))
    assert admin.get(f"/user/{user_id}/edit").status_code == 404


def test_the_current_account_cannot_be_changed_here(admin: Console) -> None:
    own_id = user_named("admin").id
    assert submit(admin, f"/user/{own_id}/delete").status_code == 409
    assert submit(admin, f"/user/{own_id}/edit", role="0").status_code == 409


def test_the_change_history_shows_changes_and_hides_secrets(admin: Console) -> None:
    path_after(submit(admin, "/user/new", **FORM))
    page = admin.get("/user/audit?action=user.").text
    assert "added <a" in page
    assert PASSWORD not in page
    assert "login" not in text_of(admin.get("/user/audit?action=user.")).split("Change Address")[-1]


def test_entries_of_the_change_history_stand_below_their_day(admin: Console) -> None:
    for name in ("nina", "oscar"):
        path_after(submit(admin, "/user/new", **{**FORM, "username": name}))
    old_ms = now_ms() - 40 * DAY_MS
    with session_scope() as session:
        oldest = session.query(AuditEntry).order_by(AuditEntry.id).first()
        assert oldest is not None
        oldest.at_ms = old_ms
    heads = re.findall(
        r'<th scope="rowgroup"[^>]*>([^<]*)<span class="muted">([-\d]{10})', admin.get("/user/audit").text
    )
    assert [title.strip() for title, _day in heads] == ["Today", ""]
    assert heads[0][1] > heads[1][1]


def test_the_filters_of_users_and_changes_are_fields_with_the_former_names(admin: Console) -> None:
    for path, expected in (
        ("/user?role=1&weak=1", ["username", "role", "weak", "sort"]),
        (
            "/user/audit?object=user&id=1&action=login&refusals=1",
            ["username", "action", "object", "id", "range", "refusals", "from", "to", "sort"],
        ),
    ):
        page = admin.get(path).text
        folded = page[page.index('<details class="picks">') :]
        fields = re.findall(r' name="(\w+)"', folded[: folded.index("</details>")])
        assert [name for name in fields if name != "q"] == expected, path  # that of the picker


def test_a_search_text_becomes_filters_of_users_and_changes(admin: Console) -> None:
    for path, typed, expected in (
        ("/user", "nor man", "username=nor+man"),
        ("/user", "role:admin", "role=1"),
        ("/user", 'role:"Normal user" nina', "role=0&username=nina"),
        ("/user", "password:weak", "weak=1"),
        ("/user/audit", "norman", "username=norman"),
        ("/user/audit", "object:executor id:7", "object=group&id=7"),
        ("/user/audit", "action:jobs refusals:only", "action=job.&refusals=1"),
        ("/user/audit", "period:yesterday", "range=yesterday"),
        ("/user/audit", "from:2024-05-01", "from=2024-05-01T00:00:00&range=custom"),
    ):
        address = admin.get(path, query_string={"q": typed}).headers.get("Location", "")
        assert unquote(address).endswith(f"{path}?{expected}"), typed
    for path, typed, hint in (
        ("/user", "group:a", "There is no filter “group:”. There are: name, role, password."),
        ("/user", "role:guest", "“role:” can be one of: normal-user, administrator."),
        ("/user/audit", "id:7", "in “object:job id:12”"),
        ("/user/audit", "object:job id:x", "in “object:job id:12”"),
    ):
        assert hint in text_of(admin.get(path, query_string={"q": typed})), typed


def test_the_login_page_works_as_a_plain_form(console: Console) -> None:
    assert re.search(r'id="userName"[^>]* autofocus', console.get("/toLogin").text)
    wrong = console.post("/toLogin", {"userName": "admin", "password": "no"})
    assert 'value="admin"' in wrong.text
    assert re.findall(r'id="(\w+)"[^>]* aria-describedby="login-error" autofocus', wrong.text) == ["password"]
    assert wrong.status_code == 400
    assert "Wrong user name or password" in wrong.text
    assert path_after(console.post("/toLogin", {"userName": "admin", "password": ADMIN_PASSWORD})) == "/"
    assert console.get("/").status_code == 200


def test_a_logout_ends_the_login(admin: Console) -> None:
    assert path_after(submit(admin, "/account/logout")) == "/toLogin?done=out"
    assert is_at_login(admin.get("/"))


def test_a_changed_password_ends_every_login_but_this_one(admin: Console) -> None:
    other = admin.another().log_in()
    cookie = cookie_of(admin)
    fields = {
        "old_password": ADMIN_PASSWORD,
        "new_password": "another-good-one",
        "repeated": "another-good-one",
    }
    assert path_after(submit(admin, "/account/password", **fields)) == "/account?done=password"
    assert cookie_of(admin) != cookie
    assert admin.get("/").status_code == 200
    admin.client.set_cookie(COOKIE, cookie)
    assert is_at_login(admin.get("/"))
    assert is_at_login(other.get("/"))
    admin.another().log_in("admin", "another-good-one")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"old_password": "wrong-one"}, "old_password"),
        ({"new_password": "short"}, "new_password"),
        ({"repeated": "different"}, "repeated"),
    ],
)
def test_an_invalid_new_password_is_refused_at_its_field(
    admin: Console, changes: dict[str, str], field: str
) -> None:
    fields = {
        "old_password": ADMIN_PASSWORD,
        "new_password": "another-good-one",
        "repeated": "another-good-one",
    }
    if field == "new_password":
        changes["repeated"] = changes["new_password"]
    page = submit(admin, "/account/password", **{**fields, **changes})
    assert page.status_code == 400
    assert f'id="{field}-error"' in page.text


def test_a_first_password_allows_only_its_change(admin: Console) -> None:
    draft = users.UserDraft(username="nina", password=PASSWORD, must_change=True)
    with session_scope() as session:
        users.add_user(session, draft, actor=ACTOR, now_ms=now_ms())
    nina = admin.another().log_in("nina", PASSWORD)
    assert nina.get("/jobinfo").headers["Location"].endswith("/account")
    page = nina.get("/account").text
    assert "Choose your own" in page
    assert "Language and time zone" not in page
    assert 'id="old_password"' not in page
    form = {"new_password": PASSWORD, "repeated": PASSWORD, "csrf_token": TOKEN.findall(page)[0]}
    assert "The new password is the same as the old one" in text_of(nina.post("/account/password", form))
    form |= {"new_password": "another-good-one", "repeated": "another-good-one"}
    assert path_after(nina.post("/account/password", form)) == "/?done=password"
    assert nina.get("/").status_code == 200


def test_the_stored_first_password_is_deleted_with_its_change(
    app: Flask, settings: Config, console: Console
) -> None:
    stored = settings.home / "admin_password"
    stored.write_text(ADMIN_PASSWORD, encoding="utf-8")
    with session_scope() as session:
        draft = users.UserDraft(username="admin", password=ADMIN_PASSWORD, must_change=True)
        users.set_password(session, draft, actor=ACTOR, now_ms=now_ms())
    admin = console.log_in()
    token = TOKEN.findall(admin.get("/account").text)[0]
    fields = {"new_password": "another-good-one", "repeated": "another-good-one", "csrf_token": token}
    path_after(admin.post("/account/password", fields))
    assert not stored.exists()


def test_language_and_zone_are_stored_with_the_user(admin: Console) -> None:
    assert (
        path_after(submit(admin, "/account/settings", language="zh_CN", time_zone="Europe/Paris"))
        == "/account?done=saved"
    )
    page = admin.get("/account").text
    assert "账号与设置" in page
    assert "Europe/Paris" in page
    assert submit(admin, "/account/settings", language="tlh", time_zone="").status_code == 400


@pytest.mark.parametrize(
    ("accepted", "shown"),
    [("zh-TW,zh;q=0.9", "登入"), ("zh-CN", "登录"), ("en-GB,en;q=0.8", "Log in"), ("fr", "Log in")],
)
def test_the_browser_chooses_the_language_of_the_login_page(
    console: Console, accepted: str, shown: str
) -> None:
    assert shown in console.get("/toLogin", headers={"Accept-Language": accepted}).text


def test_the_language_is_chosen_before_a_login(console: Console) -> None:
    answer = console.post("/preferences", {"language": "zh_TW", "next": "/xxl-job-admin/toLogin"})
    assert path_after(answer) == "/toLogin"
    page = console.get("/toLogin", headers={"Accept-Language": "en"}).text
    assert '<html lang="zh-Hant"' in page
    assert "記住密碼" in page
    assert path_after(console.post("/preferences", {"language": "en", "next": "http://["})) == "/toLogin"


def test_theme_and_sidebar_are_applied_by_the_server(admin: Console) -> None:
    assert "data-bs-theme=" not in admin.get("/").text
    admin.post("/preferences", {"theme": "dark", "sidebar": "mini"})
    page = admin.get("/").text
    assert 'data-bs-theme="dark"' in page
    assert 'class="sidebar-mini"' in page
    admin.post("/preferences", {"theme": 'pink"><script>'})
    assert 'data-bs-theme="dark"' in admin.get("/").text


def test_a_toast_shows_only_fixed_texts(admin: Console) -> None:
    assert "Saved." in admin.get("/?done=saved").text
    assert "<b>you won</b>" not in admin.get("/?done=<b>you won</b>").text
    assert "data-toast " not in admin.get("/?done=nothing").text


def test_error_pages_are_in_the_frame_and_escape(admin: Console) -> None:
    missing = admin.get("/no/such/<b>page</b>", headers={"Accept": "text/html"})
    assert missing.status_code == 404
    assert "Page not found" in missing.text
    assert 'class="sidebar"' in missing.text
    assert "<b>page" not in missing.text
    assert "Job id is invalid" in admin.get("/jobinfo/4711", headers={"Accept": "text/html"}).text
    forbidden = admin.post("/account/logout", headers={"Accept": "text/html"})
    assert forbidden.status_code == 403
    assert "Permission denied" in forbidden.text


def test_every_page_is_free_of_inline_code(admin: Console) -> None:
    add_group()
    for path in (
        "/",
        "/jobinfo",
        "/jobinfo/new",
        "/joblog",
        "/jobgroup",
        "/user",
        "/user/new",
        "/account",
        "/help",
    ):
        page = admin.get(path)
        assert " style=" not in page.text, path
        assert " onclick=" not in page.text, path
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
