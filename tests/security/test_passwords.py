"""Common passwords: refused for new ones; adopted ones must be changed in a browser, scripts have a grace."""

import gzip
import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.commands.flask_app import create_command_app
from app.database.engine import session_scope
from app.domain.access.passwords import check_new_password
from app.domain.enums import Role, WeakPassword
from app.errors import InvalidInput, NotConfigured
from app.models.audit import AuditEntry
from app.models.user import User
from app.services.accounts import password_list as source
from app.services.accounts.password_list import common_passwords
from app.services.installation import startup
from app.settings.config import Config
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_row
from tests.support.factories import all_rows, only_row
from tests.support.plan import every_database

#: tried by attackers; all but five were accepted before
COMMON_TEXT = """
    mercedes spiderman einstein november cocacola P@ssw0rd123 Password@123 Admin@1234 Welcome2024 password11
    iloveyou12 Admin@123456 L3tm31n! Summer2024! 123456admin admin!@#$ qq12345678 rootroot1 passwordpassword
    1qaz2wsx3edc 13912345678 monkey#2023 adm1n1234 !!dragon99 MERCEDES pa$$word11 xxl-job-2024 Scheduler#1
    norman2024 N0rman!! !norman! normannorman abababab abcdefgh 87654321
"""
GOOD = (
    "correct-horse-7",
    "battery-staple-9",
    "correct horse battery staple",
    "密码很长很长很长",
    "iloveyou-but-not-mondays",
    "admin-of-the-lake",
    "sunshine#48151623",
    "password-is-not-here",
    "kestrel7orbit",
    "kT9#vQ2!xB",
)


@pytest.mark.parametrize("password", COMMON_TEXT.split())
def test_a_common_password_and_its_variants_are_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="common password"):
        check_new_password(password, username="norman", common=common_passwords())


@pytest.mark.parametrize("password", GOOD)
def test_passphrases_with_common_words_are_accepted(password: str) -> None:
    check_new_password(password, username="norman", common=common_passwords())


def test_every_long_enough_password_of_the_list_is_refused_and_there_are_over_ten_thousand() -> None:
    listed = common_passwords()
    assert len(listed) > 10_000
    for password in sorted(word for word in listed if len(word) >= 8)[::200]:
        with pytest.raises(InvalidInput):
            check_new_password(password.upper(), username="norman", common=listed)


@pytest.mark.parametrize("content", [None, b"no gzip", gzip.compress(b"password\n" * 9, mtime=0)[:-9]])
def test_without_the_list_one_error_names_the_command(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(source, "FILE", tmp_path / "list.gz")
    if content is not None:
        source.FILE.write_bytes(content)
    common_passwords.cache_clear()
    with pytest.raises(NotConfigured, match=r"list\.gz\); run: python3 manage\.py setup"):
        common_passwords()


# --- adopted users -----------------------------------------------------------------------------------------

OLD, NEW = "123456", "correct-horse-8"
#: headers of a browser; to a host without TLS it sends only the second with a POST
BROWSER = {"Sec-Fetch-Site": "same-origin"}
PLAIN_BROWSER = {"Origin": "http://localhost"}


@pytest.fixture
def adopted(console: Console) -> Console:
    """A console with an adopted administrator, whose password is common, beside the usual one."""
    add_row("olga", OLD, Role.ADMIN)
    return console


def mark_of(username: str) -> int:
    return only_row(User, username=username).weak_password


def log_in_by_page(console: Console, password: str = OLD) -> str:
    return path_after(console.post("/toLogin", {"userName": "olga", "password": password}, headers=BROWSER))


def test_a_browser_with_a_common_password_gets_no_further_than_changing_it(adopted: Console) -> None:
    assert log_in_by_page(adopted) == "/"
    for path in ("/", "/jobinfo", "/user", "/joblog", "/start", "/jobinfo/export"):
        refused = adopted.get(path, headers=BROWSER)
        assert (refused.status_code, refused.headers["Location"]) == (302, "/xxl-job-admin/account"), path
    assert "on the list of common passwords" in text_of(adopted.get("/account", headers=BROWSER))
    for headers in (BROWSER, PLAIN_BROWSER):
        for path in ("/jobgroup/pageList", "/user/pageList?role=-1", "/jobinfo/add"):
            assert "common password" in adopted.post(path, headers=headers).get_json()["msg"]
    fields = {"new_password": "Mercedes11", "repeated": "Mercedes11"}
    token = adopted.get("/account").text.split('name="csrf_token" value="')[1].split('"')[0]
    assert adopted.post("/account/password", {"csrf_token": token, **fields}).status_code == 400
    fields |= {"new_password": NEW, "repeated": NEW, "csrf_token": token}
    assert path_after(adopted.post("/account/password", fields)) == "/?done=password"
    assert mark_of("olga") == WeakPassword.NO
    assert adopted.get("/").status_code == 200


def test_a_script_goes_on_until_an_administrator_ends_its_grace(adopted: Console) -> None:
    add_group()
    script = adopted.another().log_in("olga", OLD)
    assert script.post("/jobgroup/pageList").get_json()["recordsTotal"] == 1
    assert script.get("/jobinfo").headers["Location"] == "/xxl-job-admin/account", "pages are for browsers"
    assert mark_of("olga") == WeakPassword.GRACE

    admin = adopted.another().log_in()
    assert "1 user logs in with a common password" in text_of(admin.get("/"))
    assert "olga" in (listed := text_of(admin.get("/user?weak=1")))
    assert "Weak password" in listed
    assert "admin" not in listed.partition("Weak password")[2].partition("olga")[0]
    path = f"/user/{only_row(User, username='olga').id}/weak-password/end"
    assert "1 user: olga" in text_of(admin.get(path))
    assert path_after(submit(admin, path)) == "/user?done=grace_ended"
    assert (only_row(AuditEntry, action="user.grace_end").username, mark_of("olga")) == ("admin", 2)

    assert "common password" in script.call("/jobgroup/pageList")["msg"], "its present login"
    for _ in range(8):  # a right password is no failed login: the account is not slowed down
        answer = script.call("/login", userName="olga", password=OLD)
        assert (answer["code"], "log in with a browser" in answer["msg"]) == (500, True)
    pretended = adopted.another()
    assert log_in_by_page(pretended) == "/", "the user still gets in to change it"
    assert pretended.call("/jobgroup/pageList")["code"] == 500, "and gets no further, script or not"
    assert submit(admin, path).status_code == 409
    assert "logs in with a common password" not in text_of(admin.get("/")), "the warning ends with the grace"


def test_the_grace_of_all_is_ended_at_once_and_by_administrators_only(
    adopted: Console, normal_user: Callable[..., Console]
) -> None:
    add_row("otto", "qwerty123", Role.NORMAL)
    for name, password in (("olga", OLD), ("otto", "qwerty123")):
        adopted.another().log_in(name, password)
    norman = normal_user()
    assert norman.get("/user/weak-passwords/end").status_code == 403
    assert submit(norman, "/user/weak-passwords/end").status_code == 403
    assert "common password" not in text_of(norman.get("/"))
    admin = adopted.another().log_in()
    assert admin.post("/user/weak-passwords/end").status_code == 403, "without the token of a page"
    assert "2 users: olga, otto" in text_of(admin.get("/user/weak-passwords/end"))
    submit(admin, "/user/weak-passwords/end")
    assert (mark_of("olga"), mark_of("otto"), mark_of("admin")) == (2, 2, 0)
    assert len(all_rows(AuditEntry, action="user.grace_end")) == 2


def test_a_password_changed_elsewhere_removes_the_mark(adopted: Console) -> None:
    """A Java admin on the same database changes the hash, not the mark."""
    changed = hashlib.md5(NEW.encode(), usedforsecurity=False).hexdigest()
    with session_scope() as session:
        session.execute(update(User).where(User.username == "olga").values(weak_password=2, password=changed))
    adopted.log_in("olga", NEW)
    assert mark_of("olga") == WeakPassword.NO


@every_database
@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "with Java"])
def test_adopted_hashes_of_listed_passwords_are_marked_at_the_start(
    database: str, config: Config, is_shared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    hashes = {
        "olga": hashlib.md5(b"123456").hexdigest(),
        "otto": hashlib.sha256(b"password").hexdigest().upper(),
        "paul": hashlib.md5(b"paul").hexdigest(),
        "rita": hashlib.md5(NEW.encode()).hexdigest(),
    }
    with session_scope() as session:
        session.add_all(User(username=name, password=text, role=0) for name, text in hashes.items())
    with caplog.at_level(logging.WARNING):
        startup.prepare(replace(config, shared_with_java=is_shared))
    assert [mark_of(name) for name in hashes] == [1, 1, 1, 0]
    assert "users with a common password count=3 names=olga,otto,paul" in caplog.text
    kept = [only_row(User, username=name).password == text for name, text in hashes.items()]
    assert kept == [is_shared] * 4


def test_check_config_warns_of_common_passwords(adopted: Console) -> None:
    adopted.another().log_in("olga", OLD)
    printed = (
        create_command_app(adopted.app.config["XXL_JOB"]).test_cli_runner().invoke(args=["check-config"])
    )
    assert printed.exit_code == 0, printed.output
    assert "warning: users with a common password: 1;" in printed.output


def test_the_list_is_a_set_of_its_lines() -> None:
    listed = common_passwords()
    assert {"password", "123456"} <= listed
    assert not {"", "password\n123456", "passwor"} & listed
    assert len(set(listed)) == len(listed) > 10_000
    assert (listed | {"product"}) - listed == {"product"}
