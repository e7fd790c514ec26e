"""Allowed addresses as a table, and the URLs made of them."""

from ipaddress import ip_address

import pytest

from app.domain.executors.networks import is_allowed, read_literal
from app.domain.runs.trace_templates import WHYS, find_template
from app.errors import InvalidInput
from app.executors.addresses import check_address, join, refusal
from app.settings.config import Config

NETWORKS = Config.from_env({}, dotenv=None).executor_networks
ALLOWED = [
    "http://127.0.0.1:9999/",
    "http://127.0.0.1:9999",
    "http://127.255.255.254:65535/",
    "http://10.1.2.3",
    "http://10.1.2.3:80/",
    "https://10.1.2.3:443/",
    "https://10.1.2.3/",
    "http://10.1.2.3:1024/",
    "http://172.16.0.1:9999/job",
    "http://172.31.255.254:9999/a/b/",
    "http://192.168.0.1:9999/",
    "http://100.64.0.1:9999/",
    "http://[::1]:9999/",
    "http://[fd12:3456::1]:9999/",
    "http://[::ffff:10.0.0.1]:9999/",
    "http://executor-1.example.com:9999/",
    "http://executor_1:9999/",
    "http://localhost:9999/",
    "HTTP://10.1.2.3:9999/",
    " http://10.1.2.3:9999/ ",
    "http://a.example.:9999/",
    "http://1a.2b:9999/",
]
REFUSED = {
    "": "must start with http",
    "10.1.2.3:9999": "must start with http",
    "ftp://10.1.2.3:9999/": "must start with http",
    "file:///etc/passwd": "must start with http",
    "gopher://10.1.2.3:9999/": "must start with http",
    "//10.1.2.3:9999/": "must start with http",
    "javascript:alert(1)": "must start with http",
    "http://": "neither a name nor",
    "http:///x": "neither a name nor",
    "http://:9999/": "neither a name nor",
    "http://10.1.2.3:22/": "port 22",
    "http://10.1.2.3:1023/": "port 1023",
    "http://10.1.2.3:0/": "port 0",
    "http://10.1.2.3:65536/": "its host or port is invalid",
    "http://10.1.2.3:x/": "its host or port is invalid",
    "http://user@10.1.2.3:9999/": "user",
    "http://user:word@10.1.2.3:9999/": "user",
    "http://@10.1.2.3:9999/": "user",
    "http://10.1.2.3:9999/?x=1": "query",
    "http://10.1.2.3:9999/#x": "query",
    "http://10.1.2.3:9999/internal/admin?": "query",
    "http://10.1.2.3:9999/internal/admin#": "query",
    "http://10.1.2.3:9999/internal/admin%3f": "query",
    "http://10.1.2.3:9999/internal/admin%23": "query",
    "http://10.1.2.3:9999?": "query",
    "http://10.1.2.3:9999#/": "query",
    "http://10.1.2.3:9999/a b": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/a\tb": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/a\x00": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/a\u00a0b": "characters that are not allowed in an address",
    "http://8.8.8.8:9999/": "outside",
    "http://172.32.0.1:9999/": "outside",
    "http://192.169.0.1:9999/": "outside",
    "http://[2001:4860:4860::8888]:9999/": "outside",
    "http://[::ffff:8.8.8.8]:9999/": "outside",
    "http://0.0.0.0:9999/": "outside",
    "http://[::]:9999/": "outside",
    "http://255.255.255.255:9999/": "outside",
    "http://224.0.0.1:9999/": "outside",
    "http://[ff02::1]:9999/": "outside",
    "http://169.254.169.254/": "outside",
    "http://[::ffff:169.254.169.254]/": "outside",
    "http://[fe80::1]:9999/": "outside",
    "http://[fd00:ec2::254]/": "outside",
    "http://100.100.100.200/": "outside",
    "http://192.0.0.192/": "outside",
    "http://metadata.google.internal/": "outside",
    "http://METADATA.google.internal./": "outside",
    "http://2130706433:9999/": "neither a name nor",
    "http://127.1:9999/": "neither a name nor",
    "http://0x7f000001:9999/": "neither a name nor",
    "http://0177.0.0.1:9999/": "neither a name nor",
    "http://[::1:9999/": "its host or port is invalid",
    "http://10.1.2.3:9999，http://10.1.2.4:9999": "characters that are not allowed in an address",
    "http://a b:9999/": "characters that are not allowed in an address",
    "http://a\n.b:9999/": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/\r\nX: y": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/<b>": "characters that are not allowed in an address",
    'http://10.1.2.3:9999/"': "characters that are not allowed in an address",
    "http://10.1.2.3:9999/,http://10.1.2.4:9999/": "characters that are not allowed in an address",
    "http://10.1.2.3:9999/\\x": "characters that are not allowed in an address",
    "http://行.example:9999/": "characters that are not allowed in an address",
    "http://-a.example:9999/": "neither a name nor",
    "http://a..b:9999/": "neither a name nor",
    "http://" + "a" * 64 + ".example:9999/": "neither a name nor",
    "http://" + "a" * 254 + ":9999/": "longer",
    "http://10.1.2.3:9999/" + "x" * 250: "longer than 255",
}


@pytest.mark.parametrize("address", ALLOWED)
def test_an_allowed_address(address: str) -> None:
    check_address(address, NETWORKS)


@pytest.mark.parametrize("address", REFUSED)
def test_a_refused_address(address: str) -> None:
    with pytest.raises(InvalidInput, match=REFUSED[address]):
        check_address(address, NETWORKS)


def test_our_reasons_have_templates() -> None:
    reasons = {refusal(address, NETWORKS) or "" for address in REFUSED}
    assert len(reasons) > 5
    assert [reason for reason in reasons if find_template(reason, WHYS) is None] == []


def test_a_wider_network_never_allows_link_local_and_metadata_addresses() -> None:
    all_networks = Config.from_env(
        {"XXL_JOB_EXECUTOR_NETWORKS": "0.0.0.0/0,::/0"}, dotenv=None
    ).executor_networks
    check_address("http://8.8.8.8:9999/", all_networks)
    for address in (
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "fe80::1",
        "::",
        "100.100.100.200",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "168.63.129.16",
    ):
        assert not is_allowed(ip_address(address), all_networks), address


def test_without_a_network_no_address_is_allowed() -> None:
    with pytest.raises(InvalidInput, match="outside"):
        check_address("http://127.0.0.1:9999/", ())


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://10.0.0.1:9999", "http://10.0.0.1:9999/run"),
        ("http://10.0.0.1:9999/", "http://10.0.0.1:9999/run"),
        ("http://10.0.0.1:9999//", "http://10.0.0.1:9999/run"),
        (" http://10.0.0.1:9999/job ", "http://10.0.0.1:9999/job/run"),
        ("http://10.0.0.1:9999/job/", "http://10.0.0.1:9999/job/run"),
    ],
)
def test_exactly_one_slash_precedes_the_action(address: str, url: str) -> None:
    assert join(address, "run") == url


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("2852039166", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("0251.0376.0251.0376", "169.254.169.254"),
        ("169.0xfe.43518", "169.254.169.254"),
        ("169.254.169.254.", "169.254.169.254"),
        ("[fd00:ec2::254]", "fd00:ec2::254"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_every_form_of_an_ip_address_is_read(host: str, address: str) -> None:
    assert read_literal(host) == ip_address(address)


@pytest.mark.parametrize("host", ["", "a.example", "1.2.3.4.5", "行", "1.2.3.4\0"])
def test_a_name_is_no_ip_address(host: str) -> None:
    assert read_literal(host) is None
