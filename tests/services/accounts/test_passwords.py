"""Cost of a stored password for an attacker; without the cheap hasher of the other tests."""

import pytest
from argon2 import PasswordHasher, Type, extract_parameters

from app.domain.access import stored_passwords
from app.services.accounts import passwords

PASSWORD = "correct-horse-7"
WEAK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)

pytestmark = pytest.mark.usefixtures("real_hasher")


@pytest.mark.parametrize("must_change", [False, True])
def test_a_hash_costs_as_much_as_rfc_9106_recommends(must_change: bool) -> None:
    stored = passwords.hash_password(PASSWORD, must_change=must_change)
    cost = extract_parameters(stored.removeprefix(stored_passwords.FIRST_PREFIX))
    assert cost.type is Type.ID
    assert (cost.time_cost, cost.memory_cost, cost.parallelism) == (3, 64 * 1024, 4)
    assert (cost.salt_len, cost.hash_len) == (16, 32)
    assert passwords.verify(stored, PASSWORD)
    assert not passwords.verify(stored, PASSWORD + "x")
    assert not passwords.is_outdated(stored)


def test_a_cheaper_hash_still_matches_and_must_be_renewed() -> None:
    assert passwords.verify(WEAK, PASSWORD)
    assert passwords.is_outdated(WEAK)


@pytest.mark.parametrize("stored", [None, "0" * 32, "0" * 64], ids=["none", "md5", "sha256"])
def test_without_a_stored_hash_a_dummy_is_checked_all_the_same(
    monkeypatch: pytest.MonkeyPatch, stored: str | None
) -> None:
    checked: list[str] = []

    def matches(against: str, text: str) -> bool:
        checked.append(against)
        return False

    monkeypatch.setattr(passwords, "_matches", matches)
    passwords._dummy.cache_clear()
    try:
        assert not passwords.verify(stored, PASSWORD)
        assert [extract_parameters(checked_hash).memory_cost for checked_hash in checked] == [64 * 1024]
    finally:
        passwords._dummy.cache_clear()
