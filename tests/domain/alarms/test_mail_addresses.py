"""Mail addresses of alarms."""

import pytest

from app.domain.alarms.mail_addresses import check_mails, is_mail, with_ascii_host
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


@truth_table(
    "address",
    [
        "ops@example.com",
        "first.last+alarm@sub.example.co.uk",
        "o'brien@example.com",
        "root@mailhost",
        "dev@münchen.example",
        "报警@例子.中国",
    ],
)
def test_an_address_is_accepted(address: str) -> None:
    assert is_mail(address)


@truth_table(
    "address",
    [
        "not an address",
        "ops",
        "@example.com",
        "ops@",
        "ops@example..com",
        "ops@-example.com",
        "ops@example.com.",
        "a@b@c",
        "a@b.c; d@e.f",
        "Ops <ops@example.com>",
        ".ops@example.com",
        "o..ps@example.com",
        "ops@under_score.example",
        "ops\u200b@example.com",
        f"{'o' * 65}@example.com",
        f"ops@{'o' * 64}.example",
    ],
)
def test_an_invalid_address_is_refused(address: str) -> None:
    assert not is_mail(address)


def test_an_error_names_the_invalid_addresses_but_no_kept_one() -> None:
    check_mails("")
    check_mails("old value, ops@example.com", current=["old value"])
    with pytest.raises(InvalidInput) as raised:
        check_mails("one, ops@example.com,two ", current=["old value"])
    assert raised.value.field == "alarmEmail"
    assert raised.value.message.startswith('"one", "two": not a mail address')


def test_an_international_host_is_sent_in_ascii() -> None:
    assert with_ascii_host("dev@münchen.example") == "dev@xn--mnchen-3ya.example"
    assert with_ascii_host("not an address") == "not an address"
