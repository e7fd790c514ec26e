"""Common passwords: refused for new ones; adopted ones must be changed in a browser, scripts have a grace."""

import gzip
from pathlib import Path

import pytest

from app.domain.passwords import check_new_password
from app.errors import InvalidInput, NotConfigured
from app.services.accounts import password_list as source
from app.services.accounts.password_list import common_passwords

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


@pytest.mark.parametrize("content", [None, b"no gzip", gzip.compress(b"password\n" * 9)[:-9]])
def test_without_the_list_one_error_names_the_command(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(source, "FILE", tmp_path / "list.gz")
    if content is not None:
        source.FILE.write_bytes(content)
    common_passwords.cache_clear()
    with pytest.raises(NotConfigured, match=r"list\.gz\); run: python3 manage\.py setup"):
        common_passwords()
