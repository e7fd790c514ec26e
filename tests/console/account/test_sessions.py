"""Login sessions: shown on the account page and, to administrators, per user; one or all can be ended."""

from collections.abc import Callable

import pytest
from sqlalchemy import select, update

from app.clock import DAY_MS, MINUTE_MS, now_ms
from app.console.account.sessions import browser_name
from app.database.engine import read_scope, session_scope
from app.models.audit import AuditEntry
from app.models.session import LoginSession
from app.store.accounts import users as user_store
from tests.console.pages import is_at_login, path_after, submit, text_of
from tests.support.console import Console, add_user


def logins_of(username: str) -> list[LoginSession]:
    """Return the rows of a user, oldest first."""
    with read_scope() as session:
        user = user_store.find_by_name(session, username)
        assert user is not None
        logins = select(LoginSession).where(LoginSession.user_id == user.id).order_by(LoginSession.id)
        return list(session.scalars(logins))


def user_id_of(username: str) -> int:
    return logins_of(username)[0].user_id


def audited_ends() -> list[tuple[str, int | None, str]]:
    """Return user, object id and changes of the audited ends of logins."""
    with read_scope() as session:
        entries = session.scalars(
            select(AuditEntry).where(AuditEntry.action == "login.end").order_by(AuditEntry.id)
        )
        return [(entry.username, entry.object_id, entry.changes or "") for entry in entries]


def change_login(login_id: int, **values: object) -> None:
    with session_scope() as session:
        session.execute(update(LoginSession).where(LoginSession.id == login_id).values(**values))


def test_the_account_lists_its_logins_and_marks_the_current_one(admin: Console) -> None:
    admin.another().log_in()
    first, second = logins_of("admin")
    change_login(
        second.id,
        address="10.9.8.7",
        agent="Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    )
    page = admin.get("/account")
    page_text = text_of(page)
    assert page_text.count("This login") == 1
    assert "Firefox 128 · Linux 10.9.8.7" in page_text
    assert f"/account/logins/{second.id}/end" in page.text
    assert f"/account/logins/{first.id}/end" not in page.text


def test_other_users_logins_and_expired_ones_are_not_listed(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    normal_user()
    for changes in ({"expires_ms": now_ms() - 1}, {"last_seen_ms": now_ms() - DAY_MS}):
        admin.another().log_in()
        change_login(logins_of("admin")[-1].id, **changes)
    admin.another().log_in()
    change_login(logins_of("admin")[-1].id, last_seen_ms=now_ms() - DAY_MS, remember=1)
    assert admin.get("/account").text.count('data-label="Last seen"') == 2


def test_another_login_is_ended_after_a_confirmation(admin: Console) -> None:
    other = admin.another().log_in()
    row = logins_of("admin")[1]
    question = text_of(admin.get(f"/account/logins/{row.id}/end"))
    assert "End the login?" in question
    assert "127.0.0.1" in question
    assert not is_at_login(other.get("/"))
    assert path_after(submit(admin, f"/account/logins/{row.id}/end")) == "/account?done=ended"
    assert is_at_login(other.get("/"))
    assert not is_at_login(admin.get("/"))
    ((username, user_id, changes),) = audited_ends()
    assert (username, user_id) == ("admin", row.user_id)
    assert '"address": "127.0.0.1"' in changes
    assert submit(admin, f"/account/logins/{row.id}/end").status_code == 404
    assert len(audited_ends()) == 1


def test_all_other_logins_end_and_this_one_stays(admin: Console, normal_user: Callable[..., Console]) -> None:
    others = [admin.another().log_in() for _ in range(2)]
    norman = normal_user()
    assert "2 other logins of admin" in text_of(admin.get("/account/logins/end"))
    assert path_after(submit(admin, "/account/logins/end")) == "/account?done=ended"
    assert all(is_at_login(other.get("/")) for other in others)
    assert not is_at_login(admin.get("/"))
    assert not is_at_login(norman.get("/"))
    assert audited_ends() == [("admin", logins_of("admin")[0].user_id, '{"logins": 2}')]


def test_only_valid_logins_are_counted_in_the_audit(admin: Console) -> None:
    for changes in ({"last_seen_ms": now_ms() - DAY_MS}, {"last_seen_ms": now_ms()}):
        admin.another().log_in()
        change_login(logins_of("admin")[-1].id, **changes)
    assert "1 other login of admin" in text_of(admin.get("/account/logins/end"))
    path_after(submit(admin, "/account/logins/end"))
    assert [audited for _username, _user_id, audited in audited_ends()] == ['{"logins": 1}']
    assert len(logins_of("admin")) == 1


def test_ending_the_current_login_logs_out(admin: Console) -> None:
    (own_login,) = logins_of("admin")
    assert path_after(submit(admin, f"/account/logins/{own_login.id}/end")) == "/account?done=ended"
    assert is_at_login(admin.get("/account?done=ended"))
    assert len(audited_ends()) == 1


def test_a_login_of_another_user_cannot_be_ended_from_ones_own_account(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user()
    (row,) = logins_of("admin")
    assert norman.get(f"/account/logins/{row.id}/end").status_code == 404
    assert submit(norman, f"/account/logins/{row.id}/end").status_code == 404
    for path in (
        f"/user/{row.user_id}/logins",
        f"/user/{row.user_id}/logins/end",
        f"/user/{row.user_id}/logins/{row.id}/end",
    ):
        assert norman.get(path).status_code == 403
        assert submit(norman, path).status_code in {403, 405}
    assert not is_at_login(admin.get("/"))


def test_a_login_is_ended_only_by_a_form_with_a_token(admin: Console) -> None:
    other = admin.another().log_in()
    row = logins_of("admin")[1]
    of_user = f"/user/{row.user_id}/logins"
    for path in (
        "/account/logins/end",
        f"/account/logins/{row.id}/end",
        f"{of_user}/end",
        f"{of_user}/{row.id}/end",
    ):
        admin.get(path)
        assert admin.post(path).status_code == 403
    assert not is_at_login(other.get("/"))


def test_an_administrator_ends_one_login_of_a_user(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user()
    second = norman.another().log_in("norman")
    first_row, second_row = logins_of("norman")
    path = f"/user/{first_row.user_id}/logins"
    assert path in admin.get("/user").text
    listed = admin.get(path)
    assert "norman" in text_of(listed)
    assert "This login" not in text_of(listed)
    assert "End all" in text_of(listed)
    assert path_after(submit(admin, f"{path}/{second_row.id}/end")) == f"{path}?done=ended"
    assert is_at_login(second.get("/"))
    assert not is_at_login(norman.get("/"))
    assert [(username, user_id) for username, user_id, _changes in audited_ends()] == [
        ("admin", first_row.user_id)
    ]


def test_an_administrator_ends_all_logins_of_a_user_but_never_the_current_one(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user()
    path = f"/user/{user_id_of('norman')}/logins"
    assert "1 login of norman" in text_of(admin.get(f"{path}/end"))
    path_after(submit(admin, f"{path}/end"))
    assert is_at_login(norman.get("/"))
    assert "Not logged in" in text_of(admin.get(path))
    assert not is_at_login(admin.get("/"))
    other = admin.another().log_in()
    path_after(submit(admin, f"/user/{user_id_of('admin')}/logins/end"))
    assert is_at_login(other.get("/"))
    assert not is_at_login(admin.get("/"))


def test_the_newest_of_many_logins_are_shown_and_all_are_counted(admin: Console) -> None:
    user_id = add_user("robot")
    at_ms = now_ms()
    with session_scope() as session:
        for number in range(60):
            row = LoginSession(
                token_hash=f"{number:064x}",
                user_id=user_id,
                remember=0,
                created_ms=at_ms,
                last_seen_ms=at_ms - number * MINUTE_MS,
                expires_ms=at_ms + DAY_MS,
                address=f"10.0.0.{number}",
                agent="curl/8.5.0",
            )
            session.add(row)
    page_text = text_of(admin.get(f"/user/{user_id}/logins"))
    assert "Showing the 50 most recent of 60 logins." in page_text
    assert "10.0.0.49 " in page_text
    assert "10.0.0.50 " not in page_text


def test_disabling_a_user_ends_the_logins_permanently(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user()
    user_id = user_id_of("norman")
    for disabled in ("y", None):
        ticked = {"disabled": disabled} if disabled else {}
        path_after(submit(admin, f"/user/{user_id}/edit", username="norman", password="", role="0", **ticked))
        assert is_at_login(norman.get("/"))
    assert logins_of("norman") == []


GECKO = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox 128 · Linux"),
        (
            f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {GECKO} Chrome/126.0.0.0 Safari/537.36 Edg/126.0",
            "Edge 126 · Windows",
        ),
        (
            f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {GECKO} Chrome/126.0.0.0 Mobile Safari/537.36",
            "Chrome 126 · Android",
        ),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {GECKO} Version/17.5 Safari/604.1",
            "Safari 17 · iOS",
        ),
        (
            f"Mozilla/5.0 (X11; Linux x86_64) {GECKO} HeadlessChrome/140.0.0.0 Safari/537.36",
            "Chrome 140 · Linux",
        ),
        (
            f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {GECKO} Chrome/126.0.0.0 Mobile Safari/537.36"
            " EdgA/126.0",
            "Edge 126 · Android",
        ),
        (
            f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {GECKO} Version/17.0 EdgiOS/126.0"
            " Safari/604.1",
            "Edge 126 · iOS",
        ),
        ("Firefox/" + "9" * 240, "Firefox 9999"),
        ("python-requests/2.32.3", "python-requests/2.32.3"),
        ("x" * 200, "x" * 40),
        ("", ""),
    ],
)
def test_browsers_are_named_by_their_user_agent(agent: str, name: str) -> None:
    assert browser_name(agent) == name
