"""Logins: session rows, limits, throttling, adopted password hashes. Time is passed as an argument."""

import hashlib
import threading
from typing import Any

import pytest
from sqlalchemy import select, update

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, session_scope
from app.database.rows import bulk
from app.domain.access.permissions import Right, system_actor
from app.domain.enums import WeakPassword
from app.errors import Conflict, InvalidInput, TooManyAttempts
from app.models.audit import AuditEntry
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts import login, login_throttle, own_password, passwords, users
from app.services.accounts.login import Attempt, Login, Visitor
from app.services.accounts.users import UserDraft
from app.store.accounts import rights
from tests.support.plan import every_database

pytestmark = [pytest.mark.usefixtures("database"), every_database]

NOW: Millis = 1_714_530_000_000
PASSWORD = "correct-horse-7"
HASH = passwords.hash_password(PASSWORD)
MD5 = hashlib.md5(PASSWORD.encode(), usedforsecurity=False).hexdigest()
SHA256 = hashlib.sha256(PASSWORD.encode()).hexdigest()
ADMIN = system_actor("test")


def add_user(username: str = "norman", password: str = HASH, *, role: int = 0, permission: str = "") -> int:
    with session_scope() as session:
        user = User(username=username, password=password, role=role, permission=permission)
        session.add(user)
        session.flush()
        return user.id


def log_in(
    username: str = "norman",
    password: str = PASSWORD,
    *,
    now_ms: Millis = NOW,
    remember: bool = False,
    address: str = "10.0.0.1",
) -> Login:
    return login.log_in(Attempt(username, password, remember, address, "test"), now_ms=now_ms)


def visitor(token: str, now_ms: Millis) -> Visitor | None:
    with session_scope() as session:
        found = login.find_session(session, [token], address="10.0.0.1", now_ms=now_ms)
        if found is not None and login.needs_touch(found, now_ms):
            login.touch(session, found, now_ms=now_ms)
        return found


def stored(user_id: int) -> str:
    with read_scope() as session:
        user = session.get(User, user_id)
        assert user is not None
        return user.password


@pytest.mark.parametrize(
    ("remember", "idle_ms", "whole_ms"),
    [(False, 12 * 60 * MINUTE_MS, 7 * DAY_MS), (True, 90 * DAY_MS, 365 * DAY_MS)],
)
def test_a_login_ends_when_idle_and_at_its_maximum_age(
    remember: bool, idle_ms: Millis, whole_ms: Millis
) -> None:
    add_user()
    idle, used = log_in(remember=remember).token, log_in(remember=remember).token
    assert visitor(idle, NOW + idle_ms) is not None
    assert visitor(log_in(remember=remember).token, NOW + idle_ms + 1) is None
    for at_ms in range(NOW, NOW + whole_ms, idle_ms):
        assert visitor(used, at_ms) is not None
    assert visitor(used, NOW + whole_ms) is None


def test_last_seen_is_written_at_most_once_a_minute() -> None:
    add_user()
    token = log_in().token
    for at_ms, last_seen_ms in (
        (NOW + 59_000, NOW),
        (NOW + 61_000, NOW + 61_000),
        (NOW + 100_000, NOW + 61_000),
    ):
        visitor(token, at_ms)
        with read_scope() as session:
            assert session.scalar(select(LoginSession.last_seen_ms)) == last_seen_ms


def test_expired_logins_are_deleted_at_the_next_login() -> None:
    add_user()
    log_in()
    log_in(now_ms=NOW + 8 * DAY_MS)
    with read_scope() as session:
        assert len(list(session.scalars(select(LoginSession.id)))) == 1


def test_unused_logins_are_deleted_a_thousand_at_a_time() -> None:
    """A script that logs in for every request leaves one each time, and none is used again."""
    user_id, half_a_day_ms = add_user(), 12 * 60 * MINUTE_MS
    rows = [
        {
            "token_hash": f"{number:064d}",
            "user_id": user_id,
            "remember": number % 2,
            "created_ms": NOW,
            "last_seen_ms": NOW,
            "expires_ms": NOW * 2,
        }
        for number in range(3_000)
    ]
    with session_scope() as session:
        bulk.insert_many(session, LoginSession, [row | {"address": "", "agent": "script"} for row in rows])

    def left(now_ms: Millis) -> int:
        log_in(now_ms=now_ms)
        with read_scope() as session:
            return len(list(session.scalars(select(LoginSession.id).where(LoginSession.agent == "script"))))

    assert left(NOW + half_a_day_ms) == 3_000
    assert [left(NOW + half_a_day_ms + SECOND_MS * number) for number in (1, 2, 3)] == [2_000, 1_500, 1_500]
    assert left(NOW + 90 * DAY_MS + SECOND_MS) == 500


def test_rights_are_read_at_every_request() -> None:
    user_id = add_user(permission="1,2,x,")
    token = log_in().token
    with session_scope() as session:
        rights.replace_rights(session, user_id, {2: "view,operate", 3: "view"})
    found = visitor(token, NOW)
    assert found is not None
    assert found.actor.group_ids(Right.VIEW) == {1, 2}
    assert found.actor.group_ids(Right.OPERATE) == {1, 2}
    assert found.actor.group_ids(Right.EDIT) == {1}
    with session_scope() as session:
        user = session.get(User, user_id)
        assert user is not None
        user.permission = ""
    found = visitor(token, NOW)
    assert found is not None
    assert found.actor.group_ids(Right.VIEW) == frozenset()


@pytest.mark.parametrize("change", ["disable", "password", "role", "remove"])
def test_changes_of_an_account_end_its_logins_at_once(change: str) -> None:
    user_id = add_user()
    add_user("admin", role=1)
    token = log_in().token
    with session_scope() as session:
        if change == "remove":
            users.remove_user(session, user_id, actor=ADMIN, now_ms=NOW)
        else:
            draft = UserDraft(
                username="norman",
                password="new-secret-88" if change == "password" else "",
                role=int(change == "role"),
                disabled=change == "disable",
            )
            users.update_user(session, user_id, draft, actor=ADMIN, now_ms=NOW)
    assert visitor(token, NOW) is None


def test_a_disabled_user_is_refused_like_an_unknown_one() -> None:
    user_id = add_user()
    add_user("admin", role=1)
    with session_scope() as session:
        users.update_user(session, user_id, UserDraft("norman", disabled=True), actor=ADMIN, now_ms=NOW)
    with pytest.raises(InvalidInput, match="Wrong user name or password"):
        log_in()


def test_an_account_waits_longer_after_each_five_failures_up_to_a_limit() -> None:
    add_user()
    at_ms, waits = NOW, []
    for number in range(18):
        with pytest.raises(InvalidInput):
            log_in(password="wrong", now_ms=at_ms, address=f"10.0.1.{number}")
        try:
            log_in(password="wrong", now_ms=at_ms, address="10.0.2.1")
        except TooManyAttempts as exc:
            waits.append(exc.retry_after_s)
            at_ms += exc.retry_after_s * SECOND_MS
        except InvalidInput:
            waits.append(0)
    assert waits[:3] == [0, 0, 1]  # each round of the first ones fails twice
    assert waits[3:8] == [2, 4, 8, 16, 32]
    assert waits[-1] == 900
    assert log_in(now_ms=at_ms).username == "norman"
    with pytest.raises(InvalidInput):  # success resets the account
        log_in(password="wrong", now_ms=at_ms)


def test_a_name_logs_in_in_any_case_as_it_is_stored() -> None:
    user_id = add_user("Norman-Å")
    for typed in ("Norman-Å", "nORMAN-Å"):
        made = log_in(typed)
        found = visitor(made.token, NOW)
        assert found is not None
        assert (made.username, found.actor.username, found.actor.user_id) == ("Norman-Å", "Norman-Å", user_id)
    with pytest.raises(InvalidInput, match="Wrong user name or password"):
        log_in("Nörman-Å")  # equal for MySQL


def test_names_that_differ_only_in_case_are_separate_accounts(database: str) -> None:
    if database.startswith("mysql"):
        pytest.skip("the unique key of the column ignores case")
    add_user("norman", "-")
    add_user("Norman")
    assert log_in("Norman").username == "Norman"
    for username in ("norman", "NORMAN"):
        with pytest.raises(InvalidInput, match="Wrong user name or password"):
            log_in(username)


def test_failures_count_per_name_in_any_case() -> None:
    add_user()
    for username in ("norman", "Norman", "NORMAN", "nOrman", "normaN"):
        with pytest.raises(InvalidInput):
            log_in(username, "wrong")
    with pytest.raises(TooManyAttempts):
        log_in("NorMan")


def test_a_correct_password_is_not_checked_during_a_wait() -> None:
    add_user()
    for _ in range(5):
        with pytest.raises(InvalidInput):
            log_in(password="wrong")
    with pytest.raises(TooManyAttempts):
        log_in()
    assert log_in(now_ms=NOW + SECOND_MS).username == "norman"


def fail(count: int, **attempt: Any) -> None:
    for _ in range(count):
        with pytest.raises(InvalidInput):
            log_in(password="wrong", **attempt)


def test_failures_elsewhere_do_not_lock_out_a_source_that_has_logged_in() -> None:
    add_user()
    log_in(address="10.0.0.1")
    fail(5, address="10.0.0.2")
    with pytest.raises(TooManyAttempts):
        log_in(address="10.0.0.2")
    assert log_in(address="10.0.0.1").username == "norman"
    with pytest.raises(TooManyAttempts):  # the login does not give others further attempts
        log_in(address="10.0.0.2")


def test_a_source_that_has_logged_in_has_to_wait_for_its_own_failures() -> None:
    add_user()
    log_in(address="10.0.0.1")
    fail(5, address="10.0.0.1")
    with pytest.raises(TooManyAttempts):
        log_in(address="10.0.0.1")
    assert log_in(address="10.0.0.2").username == "norman"
    assert log_in(address="10.0.0.1", now_ms=NOW + SECOND_MS).username == "norman"


def test_a_source_is_known_to_the_account_that_has_logged_in_there_only() -> None:
    add_user()
    add_user("other")
    log_in("other", address="10.0.0.1")
    fail(5, address="10.0.0.2")
    with pytest.raises(TooManyAttempts):
        log_in(address="10.0.0.1")


def test_a_new_password_by_an_administrator_makes_every_source_unknown() -> None:
    user_id = add_user()
    log_in(address="10.0.0.1")
    with session_scope() as session:
        draft = UserDraft(username="norman", password="new-secret-88")
        users.update_user(session, user_id, draft, actor=ADMIN, now_ms=NOW)
    fail(5, address="10.0.0.2")
    with pytest.raises(TooManyAttempts):
        log_in(address="10.0.0.1")


def test_a_logged_in_user_can_confirm_the_password_while_others_guess_it() -> None:
    user_id = add_user()
    fail(5, address="10.0.0.2")
    assert login.check_password(user_id, PASSWORD, field="password", address="10.0.0.3", now_ms=NOW)


def test_a_new_password_by_an_administrator_ends_the_wait() -> None:
    user_id = add_user()
    for _ in range(5):
        with pytest.raises(InvalidInput):
            log_in(password="wrong")
    with session_scope() as session:
        draft = UserDraft(username="norman", password="new-secret-88")
        users.update_user(session, user_id, draft, actor=ADMIN, now_ms=NOW)
    assert log_in(password="new-secret-88").username == "norman"


def test_an_address_waits_after_fifty_failures_of_any_accounts() -> None:
    add_user()
    for number in range(50):
        with pytest.raises(InvalidInput):
            log_in(f"guess{number}", "wrong", now_ms=NOW + number)
    with pytest.raises(TooManyAttempts) as refused:
        log_in(now_ms=NOW + 100)
    assert refused.value.retry_after_s == 300
    assert log_in(address="10.0.0.2", now_ms=NOW + 100).username == "norman"
    assert log_in(now_ms=NOW + 5 * MINUTE_MS).username == "norman"


@pytest.mark.parametrize("ahead_ms", [login_throttle.LONGEST_WAIT_MS * 3, 365 * DAY_MS])
def test_waits_of_a_clock_that_was_ahead_are_ignored(ahead_ms: Millis) -> None:
    add_user()
    for number in range(50):
        with pytest.raises((InvalidInput, TooManyAttempts)):
            log_in("norman" if number < 5 else f"guess{number}", "wrong", now_ms=NOW + ahead_ms)
    with pytest.raises(InvalidInput):
        log_in(password="wrong")
    assert log_in(now_ms=NOW + login_throttle.LONGEST_WAIT_MS).username == "norman"
    for number in range(50):  # counted anew
        with pytest.raises(InvalidInput):
            log_in(f"guess{number}", "wrong")
    with pytest.raises(TooManyAttempts):
        log_in()


def test_blank_fields_do_not_count() -> None:
    add_user()
    for _ in range(10):
        with pytest.raises(InvalidInput, match="Enter"):
            log_in(password="")
    assert log_in().username == "norman"


@pytest.mark.parametrize("username", ["nor\x00man", "\udc80"])
def test_a_name_that_cannot_be_stored_is_an_unknown_one(username: str) -> None:
    with pytest.raises(InvalidInput, match="Wrong user name or password"):
        log_in(username)


def test_failures_are_forgotten_after_a_day() -> None:
    add_user()
    for _ in range(4):
        with pytest.raises(InvalidInput):
            log_in(password="wrong")
    for _ in range(4):
        with pytest.raises(InvalidInput):
            log_in(password="wrong", now_ms=NOW + DAY_MS)


def test_concurrent_guesses_are_counted_one_by_one() -> None:
    add_user()
    outcomes: list[str] = []

    def guess(number: int) -> None:
        try:
            log_in(password="wrong", address=f"10.0.3.{number}")
        except (InvalidInput, TooManyAttempts) as exc:
            outcomes.append(type(exc).__name__)

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["InvalidInput"] * 5 + ["TooManyAttempts"] * 7


def test_addresses_of_an_ipv6_network_are_one_source() -> None:
    assert (
        login_throttle.address_subject("2001:db8:1:2::7")
        == login_throttle.address_subject("2001:db8:1:2:ffff::1")
        == "address:2001:db8:1:2::/64"
    )
    assert login_throttle.address_subject("10.0.0.1") == "address:10.0.0.1"
    assert login_throttle.address_subject("::ffff:10.0.0.1") == "address:10.0.0.1"
    assert login_throttle.address_subject("") == "address:"


@pytest.mark.parametrize("adopted", [MD5, MD5.upper(), SHA256])
def test_an_adopted_hash_logs_in_wrapped_and_is_replaced(adopted: str) -> None:
    wrapped = passwords.wrap(adopted)
    assert adopted.lower() not in wrapped
    user_id = add_user(password=wrapped)
    with pytest.raises(InvalidInput):
        log_in(password=adopted)  # the hash itself is not a password
    log_in()
    assert stored(user_id).startswith("$argon2id$")
    log_in()


def test_a_shared_database_keeps_the_hash_for_the_java_admin() -> None:
    user_id = add_user(password=MD5)
    login.log_in(Attempt("norman", PASSWORD, False, "", ""), now_ms=NOW, keep_hash=True)
    assert stored(user_id) == MD5
    with pytest.raises(InvalidInput):
        login.log_in(Attempt("norman", "wrong", False, "", ""), now_ms=NOW, keep_hash=True)


@pytest.mark.parametrize(
    "broken", ["", "plain", "$argon2id$broken", "first:", "md5:", "md5:plain", "x" * 255]
)
def test_an_invalid_stored_password_never_matches(broken: str) -> None:
    add_user(password=broken)
    for password in (PASSWORD, broken or "x", broken.removeprefix("md5:") or "x"):
        with pytest.raises((InvalidInput, TooManyAttempts)):
            log_in(password=password)


def test_the_first_password_must_be_changed() -> None:
    user_id = add_user(password="first:" + HASH)
    made = log_in()
    assert made.must_change
    found = visitor(made.token, NOW)
    assert found is not None
    assert found.must_change
    own_password.change_password(PASSWORD, "new-secret-88", actor=found.actor, now_ms=NOW)
    assert visitor(made.token, NOW) is None
    assert not log_in(password="new-secret-88").must_change
    assert stored(user_id).startswith("$argon2id$")


@pytest.mark.parametrize("weak", [WeakPassword.NO, WeakPassword.GRACE])
def test_a_forced_change_right_after_the_login_needs_no_old_password(weak: WeakPassword) -> None:
    user_id = add_user(password=HASH if weak else "first:" + HASH)
    with session_scope() as session:
        session.execute(update(User).where(User.id == user_id).values(weak_password=weak))
    made, other = log_in(remember=True), log_in()
    if weak:  # a login marks it anew
        with session_scope() as session:
            session.execute(update(User).where(User.id == user_id).values(weak_password=weak))
    found = visitor(made.token, NOW)
    assert found is not None
    with pytest.raises(InvalidInput, match="the same as the old one"):
        own_password.change_in_login("", PASSWORD, visitor=found, now_ms=NOW)
    cookie = own_password.change_in_login("", "new-secret-88", visitor=found, now_ms=NOW)
    assert cookie.max_age_s == made.max_age_s
    assert [visitor(token, NOW) is not None for token in (cookie.token, made.token, other.token)] == [
        True,
        False,
        False,
    ]
    with pytest.raises(Conflict, match="has been changed already"):  # sent twice
        own_password.change_in_login("", "new-secret-99", visitor=found, now_ms=NOW)
    with pytest.raises(InvalidInput, match="Enter the old password"):
        own_password.change_in_login(
            "", "new-secret-99", visitor=found, now_ms=NOW + own_password.FRESH_MS + 1
        )
    log_in(password="new-secret-88")


def test_a_change_by_choice_needs_the_old_password() -> None:
    add_user()
    found = visitor(log_in().token, NOW)
    assert found is not None
    for old, refusal in (("", "Enter the old password"), ("wrong", "Wrong password")):
        with pytest.raises(InvalidInput, match=refusal):
            own_password.change_in_login(old, "new-secret-88", visitor=found, now_ms=NOW)
    token = own_password.change_in_login(PASSWORD, "new-secret-88", visitor=found, now_ms=NOW).token
    renewed = visitor(token, NOW)
    assert renewed is not None
    assert not renewed.confirmed_ms


@pytest.mark.parametrize(
    "changed",
    [{"password": "first:" + HASH}, {"disabled": 1}, {"identity": "https://idp sub"}],
    ids=["reset", "disabled", "linked"],
)
def test_a_change_does_not_undo_what_an_administrator_does_meanwhile(
    changed: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    user_id = add_user()
    found = visitor(log_in().token, NOW)
    assert found is not None
    real = passwords.hash_password

    def hash_password(password: str, *, must_change: bool = False) -> str:
        with session_scope() as session:
            session.execute(update(User).where(User.id == user_id).values(changed))
        return real(password, must_change=must_change)

    monkeypatch.setattr(passwords, "hash_password", hash_password)
    before = changed.get("password", stored(user_id))
    with pytest.raises(InvalidInput, match="Wrong password"):
        own_password.change_password(PASSWORD, "new-secret-88", actor=found.actor, now_ms=NOW)
    assert stored(user_id) == before


def test_the_audit_has_every_login_and_refusal_but_no_password() -> None:
    add_user()
    with pytest.raises(InvalidInput):
        log_in(password="my-secret-typo")
    log_in()
    with read_scope() as session:
        entries = list(session.scalars(select(AuditEntry).order_by(AuditEntry.id)))
    assert [(entry.action, entry.username, entry.address) for entry in entries] == [
        ("login.refused", "norman", "10.0.0.1"),
        ("login", "norman", "10.0.0.1"),
    ]
    assert "my-secret-typo" not in "".join(str(vars(entry)) for entry in entries)
