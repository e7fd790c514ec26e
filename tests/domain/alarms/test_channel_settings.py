"""Settings of alarm channels: what is refused with which words, and the Apprise URL of each kind."""

from typing import Any

import apprise
import pytest

from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.domain.alarms.channel_settings import check_settings, mails_of_channel, summary_of, url_of
from app.errors import InvalidInput
from tests.support.truth_table import truth_table

# Apprise loads all its plugins at the first URL, some with old imports
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SLACK = "https://hooks.slack.com/services/T0AAa/B0BBb/cCdD12"
DING = "https://oapi.dingtalk.com/robot/send?access_token=aB12"
WECOM = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=aB-1_2"


@truth_table(
    "kind, entered, url, attributes",
    [
        ("slack", {"url": f" {SLACK}/ "}, "slack://T0AAa/B0BBb/cCdD12/?image=no", {"token_c": "cCdD12"}),
        (
            "feishu",
            {"url": "https://open.feishu.cn/open-apis/bot/v2/hook/aB-1_2"},
            "feishu://aB-1_2/?image=no",
            {"token": "aB-1_2"},
        ),
        (
            "feishu",
            {"url": "https://open.larksuite.com/open-apis/bot/v2/hook/aB-1"},
            "lark://aB-1/?image=no",
            {"token": "aB-1"},
        ),
        ("dingtalk", {"url": DING}, "dingtalk://aB12/?image=no", {"token": "aB12", "secret": None}),
        (
            "dingtalk",
            {"url": DING, "secret": "SECf00"},
            "dingtalk://SECf00@aB12/?image=no",
            {"token": "aB12", "secret": "SECf00"},
        ),
        ("wecom", {"url": WECOM}, "wecombot://aB-1_2/?image=no", {"key": "aB-1_2"}),
        (
            "ntfy",
            {"server": "https://ntfy.sh/", "topic": "a-b_C"},
            "ntfys://ntfy.sh/a-b_C?mode=private&image=no",
            {"host": "ntfy.sh", "secure": True, "topics": ["a-b_C"], "mode": "private"},
        ),
        (
            "ntfy",
            {"server": "http://[::1]:8080", "topic": "t", "token": "tk_/@?#%&+:"},
            "ntfy://tk_%2F%40%3F%23%25%26%2B%3A@[::1]:8080/t?mode=private&image=no&auth=token",
            {"port": 8080, "secure": False, "topics": ["t"], "token": "tk_/@?#%&+:"},
        ),
        ("apprise", {"url": "tgram://123:abc/4"}, "tgram://123:abc/4", {}),
    ],
)
def test_a_channel_becomes_one_apprise_url(
    kind: ChannelKind, entered: dict[str, str], url: str, attributes: dict[str, Any]
) -> None:
    kind = ChannelKind(kind)
    assert url_of(kind, check_settings(kind, entered)) == url
    plugin = apprise.Apprise.instantiate(url)
    assert plugin is not None or not attributes
    assert {name: getattr(plugin, name) for name in attributes} == attributes


def test_a_webhook_keeps_its_url_and_mail_has_none() -> None:
    url = "https://user:p%40ss@hooks.example.com:8443/a%2Fb?x=1&x=2;y=%20"
    assert url_of(ChannelKind.WEBHOOK, check_settings(ChannelKind.WEBHOOK, {"url": url})) == url
    settings = check_settings(ChannelKind.MAIL, {"addresses": "a@b.example; c@d.example\n a@b.example,"})
    assert settings == {"addresses": "a@b.example, c@d.example"}
    assert mails_of_channel(settings) == ["a@b.example", "c@d.example"]
    assert url_of(ChannelKind.MAIL, settings) == ""


@truth_table(
    "kind, entered, errors",
    [
        ("mail", {"addresses": "ops@example.com, me"}, {"addresses": '"me": not a mail address'}),
        ("mail", {"addresses": " "}, {"addresses": "Enter a value, such as ops@example.com"}),
        (
            "mail",
            {"addresses": ",".join(f"a{n}@b.example" for n in range(21))},
            {"addresses": "At most 20 addresses"},
        ),
        ("slack", {"url": "https://evil.example/services/T/B/x"}, {"url": '"https://evil.example" is not'}),
        ("slack", {"url": "https://hooks.slack.com@evil.example/"}, {"url": '"https://evil.example" is not'}),
        ("slack", {"url": SLACK.replace("https", "http")}, {"url": "is not https://hooks.slack.com"}),
        (
            "slack",
            {"url": "https://hooks.slack.com/services/T0/B0"},
            {"url": "it has the form https://hooks"},
        ),
        ("slack", {"url": SLACK + "?to=x"}, {"url": "it has the form"}),
        ("slack", {"url": "https://[bad"}, {"url": '"…" is not https://hooks.slack.com'}),
        (
            "dingtalk",
            {"url": DING + "&redirect=1", "secret": "SEC-1"},
            {"url": "it has the form", "secret": "letters and digits"},
        ),
        ("wecom", {"url": ""}, {"url": "Enter a value, such as https://qyapi"}),
        (
            "ntfy",
            {"server": "ntfy.sh", "topic": "über a", "token": "a b"},
            {"server": "starts with https://", "topic": '" " "ü": at most 64', "token": "no spaces"},
        ),
        (
            "ntfy",
            {"server": "https://ntfy.sh/x", "topic": "a" * 65},
            {"server": "Only scheme", "topic": "65:"},
        ),
        (
            "ntfy",
            {"server": "http://169.254.169.254", "topic": "t"},
            {"server": "169.254.169.254 is a link-local or metadata address"},
        ),
        ("webhook", {"url": "ftp://a.example/"}, {"url": "starts with https:// or http://"}),
        ("webhook", {"url": "http://2852039166/"}, {"url": "link-local or metadata"}),
        ("webhook", {"url": "https://metadata.google.internal/"}, {"url": "link-local or metadata"}),
        ("webhook", {"url": "https://a.example/#x"}, {"url": "no part after #"}),
        ("webhook", {"url": "https://a.example:99999/"}, {"url": "starts with"}),
        ("webhook", {"url": "https://a.example/" + "x" * 1000}, {"url": "At most 1000 characters"}),
        ("webhook", {"url": "https://a.example/\x07"}, {"url": "cannot be printed"}),
        ("apprise", {"url": "file:///etc/passwd"}, {"url": "must start with one of"}),
        ("apprise", {"url": "json://a.example json://b.example"}, {"url": "one Apprise URL"}),
        ("apprise", {"url": "json://a.example?redirect=yes"}, {"url": "redirect= is not allowed"}),
    ],
)
def test_every_wrong_field_is_refused_in_words(
    kind: str, entered: dict[str, str], errors: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_settings(ChannelKind(kind), entered)
    found = {error.field: str(error.message) for error in refused.value.errors}
    assert found.keys() == errors.keys()
    for field, part in errors.items():
        assert part in found[field]


def test_what_is_shown_contains_no_secret() -> None:
    shown = {
        ChannelKind.SLACK: summary_of(ChannelKind.SLACK, {"url": SLACK}),
        ChannelKind.WEBHOOK: summary_of(
            ChannelKind.WEBHOOK, {"url": "https://u:pass@a.example:8/path?key=1"}
        ),
        ChannelKind.OTHER: summary_of(ChannelKind.OTHER, {"url": "tgram://123:abc/4"}),
        ChannelKind.NTFY: summary_of(
            ChannelKind.NTFY, {"server": "https://n.example", "topic": "t", "token": "s"}
        ),
    }
    assert list(shown.values()) == [
        "https://hooks.slack.com/…",
        "https://a.example/…",
        "tgram://…",
        "https://n.example/t",
    ]


def test_the_examples_of_all_kinds_are_accepted() -> None:
    for kind, each in KINDS.items():
        check_settings(kind, {field.name: field.example for field in each.fields})
